"""What users write, on MariaDB and PostgreSQL: keys that differ by case, text that no table holds, broken patterns."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.fakes import Cloud
from tests.real.database_fixtures import database_server, new_databases
from tests.unit.api import seeds
from tests.unit.api.conftest import PROJECT, World
from tests.unit.db.test_patterns import BROKEN, GOOD, SLOW, TEXTS

from kilonova import conf as configuration
from kilonova.api.app import make_app
from kilonova.db import patterns
from kilonova.db.api import cell_mappings
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.wire.rpc.bus import Bus

__all__ = ["database_server"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SMILE = "\U0001f600"


@pytest.fixture(scope="module")
def world(database_server: str) -> Iterator[World]:
    """The API over databases of a server: cell0 and one cell."""
    with new_databases(database_server, ("api", "cell0", "c1")) as urls:
        for url, make in zip(urls, (sync.sync_api, sync.sync_main, sync.sync_main), strict=True):
            database = Database(url)
            make(database)
            database.dispose()
        conf = configuration.new()
        conf([], project="nova", default_config_files=[], default_config_dirs=[])
        conf.set_override("auth_strategy", "noauth2", group="api")
        conf.set_override("connection", urls[0], group="api_database")
        conf.set_override("connection", urls[2], group="database")
        bus_url = f"fake://{uuid.uuid4()}/"
        cells = Cells(conf)
        uuids = {"cell0": CELL0_UUID, "c1": str(uuid.uuid4())}
        with cells.api.write() as tx:
            for (name, cell_uuid), url in zip(uuids.items(), urls[1:], strict=True):
                values = {"uuid": cell_uuid, "name": name, "database_connection": url, "disabled": False}
                transport = "none:///" if name == "cell0" else bus_url
                cell_mappings.cell_mapping_create(tx, values | {"transport_url": transport})
        cloud = Cloud()
        cloud.keystone.projects.add(PROJECT)
        bus = Bus(conf, bus_url)
        yield World(conf, cells, bus, cloud, make_app(conf, cells, bus, cloud.clients), uuids)
        cells.dispose()


@pytest.fixture
def server(world: World) -> str:
    return seeds.server(world)


def dialect(world: World) -> str:
    return world.cells.api.dialect


# ---------------------------------------------------------------- patterns


@pytest.mark.parametrize("name", ["name", "created_at", "ip", "access_ip_v4"])
def test_r01_no_pattern_is_a_fault(world: World, server: str, name: str) -> None:
    for pattern in [*BROKEN, *SLOW, *GOOD, "", SMILE, "a\0"]:
        answer = world.get(f"/servers?{name}={quote(pattern)}", user="admin")
        assert answer.status_code in (200, 400), (pattern, answer.text)
        if pattern in GOOD and pattern:
            assert answer.status_code == 200, (pattern, answer.text)
        if pattern in SLOW:
            assert answer.status_code == 400, (pattern, answer.text)


def test_r01_a_pattern_means_the_same_here(world: World) -> None:
    project = uuid.uuid4().hex
    made = {seeds.server(world, display_name=text, project_id=project): text for text in TEXTS}
    flags = re.IGNORECASE if dialect(world) == "mysql" else 0
    for pattern in GOOD:
        if not pattern:
            continue
        python = re.compile(pattern.replace("[:alpha:]", "a-zA-Z"), flags)
        answer = world.get(f"/servers?name={quote(pattern)}", project=project)
        shown = sorted(made[one["id"]] for one in answer.json["servers"])
        assert shown == sorted(text for text in TEXTS if python.search(text)), pattern


def test_d1_a_statement_with_a_pattern_has_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bound: a pattern that the checks let pass and that the database cannot end."""
    project = uuid.uuid4().hex
    for _ in range(300):
        seeds.server(world, display_name="a" * 255, project_id=project)
    monkeypatch.setattr(patterns, "checked", lambda name, pattern: pattern)
    limits = {
        "postgresql": ("SET LOCAL statement_timeout = 1", None),
        "mariadb": ("SET SESSION max_statement_time = 0.001", "SET SESSION max_statement_time = DEFAULT"),
        "mysql": ("SET SESSION max_execution_time = 1", "SET SESSION max_execution_time = DEFAULT"),
    }
    monkeypatch.setattr(patterns, "_LIMITS", limits)
    slow = "(a?){30}(a*)*(a*)*b|(a{1,50}){1,5}c"
    began = time.monotonic()
    answer = world.get(f"/servers?name={quote(slow)}", project=project)
    assert (answer.status_code, time.monotonic() - began < 30) == (400, True), answer.text
    # The connection is as before.
    monkeypatch.undo()
    assert world.get("/servers?name=a", project=project).status_code == 200
