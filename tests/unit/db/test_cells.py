"""Cells: mappings, templates, asking many at once, a cell that is down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.unit.db.test_engine import connections_tried

from kilonova import conf as configuration
from kilonova.base import clock
from kilonova.cmd import assembly
from kilonova.db import templates
from kilonova.db.api import cell_mappings, instance_mappings
from kilonova.db.cells import (
    CELL0_UUID,
    REFRESH_SECONDS,
    RETRY_SECONDS,
    SCATTER_WORKERS,
    Cell,
    CellDown,
    Cells,
    NoApiDatabaseError,
    UnknownCellError,
)
from kilonova.db.engine import Database
from kilonova.db.failures import LostError
from kilonova.db.migrations import sync

ONE = "11111111-1111-1111-1111-111111111111"
TWO = "22222222-2222-2222-2222-222222222222"


@pytest.fixture
def cells(api_db: Database, cell_db: Database, tmp_path: Path) -> Iterator[Cells]:
    for uuid, name, url in (
        (CELL0_UUID, "cell0", f"sqlite:///{tmp_path}/cell0.db"),
        (ONE, "one", "{scheme}:////{path}"),
        (TWO, "two", "mysql+pymysql://u:p@127.0.0.1:1/n"),
    ):
        values = {"uuid": uuid, "name": name, "database_connection": url, "transport_url": "none:///"}
        api_db.run(cell_mappings.cell_mapping_create, values)
    sync.sync_main(Database(f"sqlite:///{tmp_path}/cell0.db"))
    conf = configuration.new()
    conf([], default_config_files=[])
    conf.set_override("connection", str(api_db.url), "api_database")
    conf.set_override("connection", str(cell_db.url), "database")
    found = Cells(conf)
    yield found
    found.dispose()


def answer(cell: Cell) -> str:
    with cell.database.read() as tx:
        tx.execute(sa.text("SELECT 1"))
    return cell.uuid


def test_cells_come_in_the_order_of_their_mappings(cells: Cells) -> None:
    assert [cell.name for cell in cells.all()] == ["cell0", "one", "two"]
    assert [cell.name for cell in cells.all(include_cell0=False)] == ["one", "two"]
    assert cells.cell0.is_cell0


def test_unknown_cell_is_looked_up_again_before_it_is_refused(cells: Cells, api_db: Database) -> None:
    assert len(cells.all()) == 3
    values = {"uuid": "new", "name": "new", "database_connection": "sqlite:////n.db", "transport_url": "none:///"}
    api_db.run(cell_mappings.cell_mapping_create, values)
    assert cells.cell("new").name == "new"
    with pytest.raises(UnknownCellError):
        cells.cell("unknown")


def test_cell_that_is_down_does_not_hide_the_others(cells: Cells) -> None:
    answers = cells.scatter(answer, [cells.cell(CELL0_UUID), cells.cell(TWO)], timeout=20)
    assert answers[CELL0_UUID] == CELL0_UUID
    assert isinstance(answers[TWO], CellDown)


def test_databases_are_waited_for_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = configuration.new()
    conf([], default_config_files=[])
    for group, tries in (("database", 1), ("api_database", 2)):
        conf.set_override("connection", f"mysql+pymysql://u:p@127.0.0.1:1/{group}", group)
        conf.set_override("max_retries", tries, group)
        conf.set_override("retry_interval", 0, group)
    tried = connections_tried(monkeypatch)
    with pytest.raises(sa.exc.OperationalError):
        Cells(conf).wait()
    assert tried == ["api_database"] * 3
    conf.clear_override("connection", "api_database")
    with pytest.raises(sa.exc.OperationalError):
        Cells(conf).wait()
    assert tried[3:] == ["database"] * 2


def test_schedulers_and_conductors_wait_for_their_databases(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Exception):
        pass

    def wait() -> None:
        raise Away

    parts = assembly.Parts(cells._conf)
    monkeypatch.setattr(parts.cells, "wait", wait)
    for make in (assembly.scheduler, assembly.conductor):
        with pytest.raises(Away):
            make(parts)


def test_a_cell_that_hangs_takes_no_thread_from_the_others(cells: Cells) -> None:
    release = threading.Event()
    for _ in range(SCATTER_WORKERS + 1):
        answers = cells.scatter(lambda cell: release.wait(20), [cells.cell(ONE)], timeout=0.0)
        assert isinstance(answers[ONE], CellDown)
    try:
        assert cells.scatter(answer, [cells.cell(CELL0_UUID)], timeout=20) == {CELL0_UUID: CELL0_UUID}
    finally:
        release.set()


def test_cell_that_is_slow_is_down(cells: Cells) -> None:
    release = threading.Event()

    def ask(cell: Cell) -> str:
        if not cell.is_cell0:
            release.wait(20)
        return cell.uuid

    answers = cells.scatter(ask, timeout=0.2)
    release.set()
    assert answers[CELL0_UUID] == CELL0_UUID
    assert answers[ONE] == CellDown(ONE, "no answer in time")
    assert list(answers) == [CELL0_UUID, ONE, TWO]


@pytest.mark.parametrize("url", ["{unknown}://x", "nonsense", "mysql+nodriver://u:secret@h/n", "sqlite://"])
def test_a_mistaken_address_takes_no_other_cell_away(
    cells: Cells, api_db: Database, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    api_db.run(cell_mappings.cell_mapping_update, TWO, {"database_connection": url})
    answers = cells.scatter(answer, timeout=20)
    assert (answers[CELL0_UUID], answers[ONE]) == (CELL0_UUID, ONE)
    assert isinstance(answers[TWO], CellDown)
    assert isinstance(cells.ask(lambda cell: cell.database.run(lambda tx: None), cells.cell(TWO)), CellDown)
    assert "cannot be used" in caplog.text
    assert "secret" not in caplog.text
    url = f"sqlite:///{cells.cell(ONE).database.url.database}"
    api_db.run(cell_mappings.cell_mapping_update, TWO, {"database_connection": url})
    cells.refresh()
    assert cells.scatter(answer)[TWO] == TWO


def test_a_new_address_is_noticed(cells: Cells, api_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(cells.scatter(answer, [cells.cell(TWO)], timeout=20)[TWO], CellDown)
    url = f"sqlite:///{cells.cell(ONE).database.url.database}"
    api_db.run(cell_mappings.cell_mapping_update, TWO, {"database_connection": url})
    monkeypatch.setattr("kilonova.db.cells.REFRESH_SECONDS", 0.0)
    assert cells.scatter(answer, [cells.cell(TWO)]) == {TWO: TWO}


def test_mistakes_of_ours_are_not_a_cell_that_is_down(cells: Cells) -> None:
    def broken(_cell: Cell) -> str:
        raise KeyError("mistake")

    with pytest.raises(KeyError, match="mistake"):
        cells.scatter(broken)


def test_cell_of_an_instance(cells: Cells, api_db: Database) -> None:
    mapping = {"instance_uuid": "i", "project_id": "p", "user_id": "u", "cell_id": None}
    api_db.run(instance_mappings.instance_mapping_create, mapping)
    assert cells.for_instance("i") is None
    assert cells.for_instance("unknown") is None
    api_db.run(instance_mappings.instance_mapping_set_cell, "i", ONE)
    found = cells.for_instance("i")
    assert found is not None
    assert found.uuid == ONE


def test_own_database_is_shared_with_the_cell_that_has_its_url(api_db: Database, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cell.db"
    values = {"uuid": ONE, "name": "one", "database_connection": url, "transport_url": "none:///"}
    api_db.run(cell_mappings.cell_mapping_create, values)
    conf = configuration.new()
    conf([], default_config_files=[])
    conf.set_override("connection", str(api_db.url), "api_database")
    conf.set_override("connection", url, "database")
    cells = Cells(conf)
    assert cells.cell(ONE).database is cells.own
    assert cells.refresh()[ONE].database is cells.own


def test_without_an_api_database_it_says_so() -> None:
    conf = configuration.new()
    conf([], default_config_files=[])
    cells = Cells(conf)
    assert not cells.has_api
    with pytest.raises(NoApiDatabaseError):
        cells.all()
    with pytest.raises(NoApiDatabaseError):
        assert cells.own


@pytest.mark.parametrize(
    ("template", "own", "filled"),
    [
        (
            "{scheme}://{username}:{password}@db2/{path}?{query}",
            "mysql://u:p%40@h:3306/n?c=u",
            "mysql://u:p%40@db2/n?c=u",
        ),
        ("rabbit://{username}:{password}@{hostname}:{port}/", "rabbit://u:p@h:5672/", "rabbit://u:p@h:5672/"),
        (
            "rabbit://{username1}:{password1}@{hostname1}:1,{username2}:{password2}@{hostname2}:2/",
            "rabbit://a:b@h1:5,c:d@h2:6/v",
            "rabbit://a:b@h1:1,c:d@h2:2/",
        ),
        ("mysql://plain/n", "mysql://u:p@h/n", "mysql://plain/n"),
        ("{scheme}://x", None, "{scheme}://x"),
        ("{unknown}://x", "mysql://u:p@h/n", "{unknown}://x"),
        ("http://{hostname}", "http://[fd00::1]:80/", "http://fd00::1"),
    ],
)
def test_templates(template: str, own: str | None, filled: str) -> None:
    assert templates.fill(template, own) == filled


def test_the_last_known_cells_serve_while_the_api_database_is_away(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cells.all()
    asked: list[float] = []
    now = clock.monotonic()

    def away(*_: object) -> list[object]:
        asked.append(now)
        raise LostError("SELECT", {}, OSError("no route to host"))

    monkeypatch.setattr(cells.api, "query", away)
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    now += REFRESH_SECONDS + 1
    assert [cells.all() for _ in range(3)] == [known, known, known]
    assert cells.cell(ONE) == known[1]
    assert len(asked) == 1, "not everybody waits for it each time"
    with pytest.raises(sa.exc.OperationalError):
        # It may be new: nobody knows.
        cells.cell("33333333-3333-3333-3333-333333333333")
    monkeypatch.undo()
    now += RETRY_SECONDS + 1
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    cells.api.run(cell_mappings.cell_mapping_update, ONE, {"name": "renamed"})
    assert cells.cell(ONE).name == "renamed"


def test_nobody_waits_for_the_list_that_another_one_asks_for(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    known, hangs, answers = cells.all(), threading.Event(), threading.Event()

    def silent(*_: object) -> list[object]:
        hangs.set()
        answers.wait(10)
        raise LostError("SELECT", {}, OSError("nothing came"))

    cells._read_at = float("-inf")
    monkeypatch.setattr(cells.api, "query", silent)
    asking = threading.Thread(target=cells.all)
    asking.start()
    assert hangs.wait(10)
    assert cells.all() == known
    answers.set()
    asking.join(10)


def test_a_service_that_never_read_the_list_says_so(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> list[object]:
        raise LostError("SELECT", {}, OSError("no route to host"))

    monkeypatch.setattr(cells.api, "query", away)
    with pytest.raises(sa.exc.OperationalError):
        cells.all()
