"""What the bench asks of a cell's database."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from bench import seed


def test_a_server_is_in_its_cell_only(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cell.db'}"
    engine = sa.create_engine(url)
    with engine.begin() as tx:
        tx.execute(sa.text("CREATE TABLE instances (id INTEGER PRIMARY KEY, uuid TEXT)"))
        tx.execute(sa.text("INSERT INTO instances (uuid) VALUES ('here')"))
    engine.dispose()
    assert seed.holds(url, "here")
    assert not seed.holds(url, "elsewhere")
