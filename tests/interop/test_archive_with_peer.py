"""Equal databases, cleaned by the commands of the peer and by ours: equal rows left, moved and printed, equal codes.

Needs PEER_PYTHON (a Python with the peer in it, its commands beside it), and MariaDB or PostgreSQL as
tests/real/database_fixtures.py says. Our own tables lie beside them, but for SQLite, where the peer
stops at them.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from tests.needs import check, inapplicable
from tests.real.database_fixtures import database_server, new_databases

from kilonova.cmd import manage
from kilonova.db import flows, query
from kilonova.db.api import cell_mappings, instance_groups, instance_mappings, request_specs
from kilonova.db.cell import instances
from kilonova.db.cell import tables as t
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database, Tx
from kilonova.db.migrations import sync
from kilonova.flow.store import NewFlow

PEER = os.environ.get("PEER_PYTHON")
check("peer", module=True)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]

SCRIPT = pathlib.Path(__file__).with_name("peer_archive.py")

__all__ = ["database_server"]

WINTER, SUMMER = datetime.datetime(2026, 1, 15), datetime.datetime(2026, 7, 15)
CELL = "11111111-1111-1111-1111-111111111111"
NAMES = ("api", "cell0", "cell1")


@dataclass
class Cloud:
    """The databases of one side by name, and the configuration that names them."""

    databases: dict[str, Database]
    conf: pathlib.Path

    def counts(self) -> dict[str, int]:
        """The rows of every table that has some, our own left out."""
        found = {}
        for name, database in self.databases.items():
            tables = set(sa.inspect(database.engine).get_table_names()) - set(sync.OWN.tables)
            with database.read() as tx:
                rows = {t: tx.exec_driver_sql(f"SELECT count(*) FROM {t}").scalar_one() for t in sorted(tables)}
            found |= {f"{name}.{table}": count for table, count in rows.items() if count}
        return found


@pytest.fixture
def pair(database_server: str, tmp_path: pathlib.Path) -> Iterator[tuple[Cloud, Cloud]]:
    """The peer's and ours."""
    if database_server.startswith("postgresql"):
        inapplicable("the peer cannot archive servers there: locked_by has another type in its shadow table")
    sides = ("theirs", "ours")
    with new_databases(database_server, [f"{side}_{name}" for side in sides for name in NAMES]) as urls:
        made = [_cloud(urls[n * 3 : n * 3 + 3], tmp_path / f"{side}.conf") for n, side in enumerate(sides)]
        with _disposed(made):
            yield made[0], made[1]


@pytest.fixture(scope="module")
def sqlite_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cloud, Cloud]]:
    made = []
    for side in ("theirs", "ours"):
        folder = tmp_path_factory.mktemp(side)
        made.append(_cloud([f"sqlite:///{folder}/{name}.db" for name in NAMES], folder / "nova.conf"))
        for name in ("cell0", "cell1"):
            sync.drop_own(made[-1].databases[name])
    with _disposed(made):
        yield made[0], made[1]


@contextlib.contextmanager
def _disposed(clouds: list[Cloud]) -> Iterator[None]:
    yield
    for cloud in clouds:
        for database in cloud.databases.values():
            database.dispose()


def _cloud(urls: list[str], conf: pathlib.Path) -> Cloud:
    databases = {name: Database(url) for name, url in zip(NAMES, urls, strict=True)}
    for name, database in databases.items():
        (sync.sync_api if name == "api" else sync.sync_main)(database)
    conf.write_text(
        "[DEFAULT]\ntransport_url = rabbit://\n"
        f"[api_database]\nconnection = {urls[0]}\n[database]\nconnection = {urls[2]}\n"
    )
    for uuid, name, url in ((CELL0_UUID, "cell0", urls[1]), (CELL, "cell1", urls[2])):
        values = {"uuid": uuid, "name": name, "database_connection": url, "transport_url": "rabbit://"}
        databases["api"].run(cell_mappings.cell_mapping_create, values)
    for number in range(9):
        _server(databases, "cell1", number, gone=[None, WINTER, SUMMER][number % 3])
    _server(databases, "cell0", 9, gone=WINTER)
    databases["cell1"].run(_others)
    databases["api"].run(_group)
    if databases["api"].dialect != "sqlite":
        databases["cell1"].run(flows.offer, NewFlow(op="delete", subject_id=_uuid(0), frame={}))
    return Cloud(databases, conf)


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _server(databases: dict[str, Database], cell: str, number: int, *, gone: datetime.datetime | None) -> None:
    uuid, api, database = _uuid(number), databases["api"], databases[cell]
    mapped = 1 if cell == "cell0" else 2
    mapping = {"instance_uuid": uuid, "project_id": "p", "user_id": "u", "cell_id": mapped}
    api.run(instance_mappings.instance_mapping_create, mapping)
    api.run(request_specs.request_spec_create, {"instance_uuid": uuid, "spec": "{}"})
    database.run(_record, uuid)
    if gone:
        database.run(instances.instance_destroy, uuid)
        database.run(_date, gone)


def _record(tx: Tx, uuid: str) -> None:
    pairs = {"a": "1", "b": "2"}
    values = {"project_id": "p", "user_id": "u", "metadata": pairs, "system_metadata": pairs, "tags": ["t"]}
    instances.instance_create(tx, {"uuid": uuid, **values})
    own = {"instance_uuid": uuid}
    query.insert(tx, t.INSTANCE_FAULTS, {**own, "code": 500})
    query.insert(tx, t.BLOCK_DEVICE_MAPPING, {**own, "source_type": "image"})
    query.insert(tx, t.VIRTUAL_INTERFACES, {**own, "address": f"a/{uuid}", "uuid": uuid})
    query.insert(tx, t.MIGRATIONS, {**own, "uuid": uuid, "status": "done"})
    for request in ("r1", "r2"):
        action = query.insert(tx, t.INSTANCE_ACTIONS, {**own, "action": "create", "request_id": request})
        query.insert(tx, t.INSTANCE_ACTIONS_EVENTS, {"action_id": action["id"], "event": "e"})


def _date(tx: Tx, when: datetime.datetime) -> None:
    """What was deleted a moment ago was deleted then."""
    for table in _dated():
        tx.execute(table.update().where(table.c.deleted_at > datetime.datetime(2026, 9, 1)).values(deleted_at=when))


def _dated() -> list[sa.Table]:
    found = [getattr(t, name) for name in t.__all__]
    return [table for table in found if isinstance(table, sa.Table) and "deleted_at" in table.c]


def _others(tx: Tx) -> None:
    """Rows that no deleted server takes along."""
    service = {"binary": "nova-compute", "topic": "compute", "report_count": 0}
    gone = {"deleted_at": WINTER}
    query.insert(tx, t.SERVICES, {**service, "host": "old", "deleted": 1, **gone})
    query.insert(tx, t.SERVICES, {**service, "host": "new", "deleted": 0})
    query.insert(tx, t.BLOCK_DEVICE_MAPPING, {"instance_uuid": _uuid(0), "deleted": 99, **gone})
    query.insert(tx, t.MIGRATIONS, {"instance_uuid": _uuid(3), "deleted": 99, "status": "error", **gone})
    for number, when in enumerate((WINTER, SUMMER)):
        entry = {"task_name": "audit", "state": "DONE", "host": "h", "period_beginning": when, "period_ending": when}
        query.insert(tx, t.TASK_LOG, {**entry, "updated_at": when, "message": str(number), "deleted": 0})


def _group(tx: Tx) -> None:
    values = {"uuid": _uuid(99), "project_id": "p", "user_id": "u", "name": "g"}
    group = instance_groups.instance_group_create(tx, values, "affinity")
    instance_groups.instance_group_members_add(tx, group["id"], [_uuid(0), _uuid(1), _uuid(2)])


def peer(cloud: Cloud) -> list[tuple[int, str, dict[str, int]]]:
    """What the peer's commands answered and printed, and what was left after each."""
    urls = {name: database.url.render_as_string(hide_password=False) for name, database in cloud.databases.items()}
    steps = [(words[0], _by_name(words[1:]), urls) for words in STEPS]
    command = [str(PEER), str(SCRIPT), str(cloud.conf), json.dumps(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    lines = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert len(lines) == len(STEPS), done.stdout + done.stderr
    return [tuple(json.loads(line)) for line in lines]


def _by_name(words: tuple[str, ...]) -> dict[str, Any]:
    """The words of a command as arguments of the peer's function."""
    found: dict[str, Any] = {}
    words = tuple(part for word in words for part in word.split("=", 1))
    for word, following in zip(words, (*words[1:], "--"), strict=False):
        if word.startswith("--"):
            name = {"--all": "purge_all"}.get(word, word.removeprefix("--").replace("-", "_"))
            found[name] = True if following.startswith("--") else following
    return found


def printed(text: str) -> dict[str, str]:
    """The rows of the table that was printed."""
    cells = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): row[1].strip() for row in cells}


def same_table(ours: dict[str, str], theirs: dict[str, str]) -> bool:
    """The peer forgets the rows that went with their server where others of the table went by themselves."""
    fewer = {name for name in _BOTH_WAYS if theirs.get(name, "") < ours.get(name, "")}
    return ours.keys() == theirs.keys() and all(ours[name] == theirs[name] for name in ours.keys() - fewer)


_BOTH_WAYS = ("block_device_mapping", "migrations")

STEPS: tuple[tuple[str, ...], ...] = (
    ("archive_deleted_rows", "--max_rows=-1"),
    ("archive_deleted_rows", "--max_rows", "0"),
    ("archive_deleted_rows", "--max_rows", str(2**31)),
    ("archive_deleted_rows", "--before", "whenever"),
    ("archive_deleted_rows", "--verbose", "--before", "2025-12-31"),
    ("archive_deleted_rows", "--verbose", "--before", "March 1 2026"),
    ("archive_deleted_rows", "--verbose", "--before", "2026-03-01", "--task-log"),
    ("purge",),
    ("purge", "--before", "whenever"),
    ("purge", "--before", "2026-01-01", "--all-cells"),
    ("purge", "--before", "2026-03-01 10:00", "--all-cells", "--verbose"),
    ("archive_deleted_rows", "--max_rows", "7", "--verbose", "--until-complete", "--all-cells", "--task-log"),
    ("archive_deleted_rows", "--verbose", "--all-cells"),
    ("archive_deleted_rows", "--purge"),
    ("purge", "--all", "--verbose"),
    ("purge", "--all", "--all-cells"),
    ("purge", "--all", "--all-cells"),
)


def compare(theirs: Cloud, ours: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    wrong: list[Any] = []
    assert ours.counts() == theirs.counts()
    for words, (code, said, left) in zip(STEPS, peer(theirs), strict=True):
        capsys.readouterr()
        answered = manage.main(["--config-file", str(ours.conf), "db", *words])
        found = capsys.readouterr().out
        if answered != code or not same_table(printed(found), printed(said)):
            wrong.append((words, "theirs", code, said, "ours", answered, found))
        kept = ours.counts()
        differing = {name: (left.get(name), kept.get(name)) for name in left | kept if left.get(name) != kept.get(name)}
        if differing:
            wrong.append((words, differing))
    assert not wrong, "\n".join(map(str, wrong))


def test_cleaned_alike(pair: tuple[Cloud, Cloud], capsys: pytest.CaptureFixture[str]) -> None:
    compare(*pair, capsys)
    # What our operations left there is as it was.
    for cloud in pair:
        assert len(cloud.databases["cell1"].query(flows.active, _uuid(0))) == 1


def test_cleaned_alike_on_sqlite(sqlite_pair: tuple[Cloud, Cloud], capsys: pytest.CaptureFixture[str]) -> None:
    compare(*sqlite_pair, capsys)
