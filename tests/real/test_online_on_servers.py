"""Online data migrations with 100,000 ports, nothing to do and everything to do, on each database."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg
from tests.real.database_fixtures import database_server, databases
from tests.unit.cmd.test_online import interfaces

from kilonova.base import clock
from kilonova.db import online
from kilonova.db.cells import Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SERVERS, PORTS, SECONDS = 20_000, 5, 30.0


def _look(database: Database, limit: int | None = None) -> tuple[int, int]:
    conf = cfg.ConfigOpts()
    run = online.Run(Cells.__new__(Cells), conf, limit)
    online._virtual_interfaces(run, database)
    return run.found, run.done


def _check(database: Database) -> None:
    interfaces(database, SERVERS, PORTS)
    began = clock.monotonic()
    assert _look(database) == (0, 0)
    nothing = clock.monotonic() - began
    interfaces(database, 1000, PORTS, known=False)
    began = clock.monotonic()
    assert _look(database, 50) == (50, 50)
    assert _look(database) == (4950, 4950)
    rest = clock.monotonic() - began
    print(f"{database.dialect}: nothing to do {nothing:.1f} s, five thousand {rest:.1f} s")
    assert nothing < SECONDS
    assert rest < 2 * SECONDS


def test_a_hundred_thousand_ports(databases: tuple[Database, Database]) -> None:
    _check(databases[1])


def test_a_hundred_thousand_ports_on_sqlite(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/cell.db")
    sync.sync_main(database)
    _check(database)
    database.dispose()
