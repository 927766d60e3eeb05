"""kilonova tables: seen, kept while operations go on, dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from kilonova.cmd import kilonova
from kilonova.db import flows
from kilonova.db.api import cell_mappings
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.flow.store import NewFlow


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    api, cell = (Database(f"sqlite:///{tmp_path}/{name}.db") for name in ("api", "cell"))
    sync.sync_api(api)
    sync.sync_main(cell)
    mapping = {
        "uuid": "c",
        "name": "one",
        "transport_url": "none:///",
        "database_connection": f"sqlite:///{tmp_path}/cell.db",
    }
    api.run(cell_mappings.cell_mapping_create, mapping)
    file = tmp_path / "nova.conf"
    file.write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/api.db\n")
    return file


def run(conf: Path, *words: str) -> int:
    return kilonova.main(["tables", "--config-file", str(conf), *words])


def test_shown_dropped_and_made_anew(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(conf, "show") == 0
    assert "one: Nova's tables ab450ba04102, ours 2e9d4c81f5b7, among Nova's" in capsys.readouterr().out
    assert run(conf, "drop") == 0
    assert run(conf, "show") == 0
    assert "api: Nova's tables cdeec0c85668, ours none" in capsys.readouterr().out
    cell = Database(f"sqlite:///{conf.parent}/cell.db")
    assert not [name for name in sa.inspect(cell.engine).get_table_names() if name.startswith("kn_")]
    assert run(conf, "drop") == 0
    sync.sync_main(cell)
    assert not sync.pending(cell, sync.MAIN)


def test_kept_while_operations_go_on(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = Database(f"sqlite:///{conf.parent}/cell.db")
    cell.run(flows.offer, NewFlow(op="delete", subject_id="i", frame={}))
    assert run(conf, "drop") == 1
    assert "one: 1 operations are not finished" in capsys.readouterr().out
    assert sync.version(cell, sync.OWN) is not None
    assert run(conf, "drop", "--force") == 0
    assert sync.version(cell, sync.OWN) is None
