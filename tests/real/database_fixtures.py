"""Real database servers for tests; import the fixtures.

KILONOVA_TEST_MYSQL_URL and KILONOVA_TEST_PG_URL name servers to use (a user who may create databases, no database);
otherwise private ones are started where the programs exist.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.needs import lacking
from tests.real import servers

from kilonova.db.engine import Database
from kilonova.db.migrations import sync


@pytest.fixture(scope="module", params=["mysql", "postgresql"])
def database_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server, without a database."""
    name, variable, found, start = {
        "mysql": ("mariadb", "KILONOVA_TEST_MYSQL_URL", servers.mariadb_found, servers.mariadb),
        "postgresql": ("postgresql", "KILONOVA_TEST_PG_URL", servers.postgresql_found, servers.postgresql),
    }[request.param]
    if url := os.environ.get(variable):
        yield url.rstrip("/") + "/"
    elif found():
        # PostgreSQL does not run as root, and pytest's own folders are root's alone.
        with (
            tempfile.TemporaryDirectory(prefix="kn-db-", ignore_cleanup_errors=True) as folder,
            start(Path(folder)) as url,
        ):
            yield url
    else:
        lacking(name, f"no {request.param} server: neither {variable} nor the programs")


@pytest.fixture(scope="module")
def databases(database_server: str) -> Iterator[tuple[Database, Database]]:
    """An API database and a cell's."""
    with new_databases(database_server, ("api", "cell")) as urls:
        api, cell = (Database(url, db_retry_interval=0.05) for url in urls)
        sync.sync_api(api)
        sync.sync_main(cell)
        yield api, cell
        for database in (api, cell):
            database.dispose()


@contextlib.contextmanager
def new_databases(server: str, names: Sequence[str]) -> Iterator[list[str]]:
    """Empty databases, dropped at the end; gives their URLs."""
    mine = [f"kilonova_{name}_{os.getpid()}" for name in names]
    with _administration(server) as execute:
        for name in mine:
            execute(f"CREATE DATABASE {name}" + (" CHARACTER SET utf8" if server.startswith("mysql") else ""))
    yield [server + name for name in mine]
    with _administration(server) as execute:
        for name in mine:
            if server.startswith("mysql"):
                execute(f"DROP DATABASE {name}")
                execute(f"DROP DATABASE IF EXISTS {name}_kilonova")
            else:
                execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def _administration(server: str) -> Iterator[Callable[[str], Any]]:
    url = server if server.startswith("mysql") else f"{server}postgres"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection.exec_driver_sql
    engine.dispose()
