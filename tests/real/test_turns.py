"""Turns on MariaDB and PostgreSQL: of many that count and record at once, as many live as there is room for."""

from __future__ import annotations

import concurrent.futures
import threading

import pytest
from tests.real.database_fixtures import database_server, databases

from kilonova import conf as configuration
from kilonova.api import quota
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.db import turns
from kilonova.db.api import instance_groups, key_pairs
from kilonova.db.engine import Database, Tx

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

MANY = 16
CTXT = RequestContext("joe", "project", overwrite=False)


@pytest.fixture
def conf() -> configuration.cfg.ConfigOpts:
    made = configuration.new()
    made([], project="nova", default_config_files=[], default_config_dirs=[])
    for name in ("key_pairs", "server_groups"):
        made.set_override(name, 5, group="quota")
    return made


def at_once(do: object) -> int:
    """How many of MANY at once were allowed."""
    gate = threading.Barrier(MANY)

    def one(number: int) -> int:
        gate.wait()
        try:
            do(number)
        except exceptions.OverQuota:
            return 0
        return 1

    with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        return sum(pool.map(one, range(MANY)))


def test_q1_key_pairs(databases: tuple[Database, Database], conf: configuration.cfg.ConfigOpts) -> None:
    api = databases[0]

    def make(tx: Tx, number: int) -> None:
        quota.check_key_pairs(tx, conf, CTXT, "joe")
        values = {"user_id": "joe", "name": f"k{number}", "type": "ssh", "fingerprint": "f", "public_key": "p"}
        key_pairs.key_pair_create(tx, values)

    assert at_once(lambda n: turns.run_in_turn(api, turns.of_user("joe"), make, n)) == 5
    assert api.query(key_pairs.key_pair_count, "joe") == 5


def test_q1_server_groups(databases: tuple[Database, Database], conf: configuration.cfg.ConfigOpts) -> None:
    api = databases[0]

    def make(tx: Tx, _number: int) -> None:
        quota.check_server_groups(tx, conf, CTXT)
        instance_groups.instance_group_create(tx, {"project_id": "project", "user_id": "joe", "name": "g"}, "affinity")

    assert at_once(lambda n: turns.run_in_turn(api, turns.of_project("project"), make, n)) == 5
    assert api.query(instance_groups.instance_group_count, "project") == {"project": 5}


def test_q1_servers(databases: tuple[Database, Database]) -> None:
    api = databases[0]
    scope = turns.of_project("another")
    room = quota.Headroom({"instances": 7, "cores": 20, "ram": -1}, {"instances": 0, "cores": 0, "ram": 0})
    before = turns.turn_look(api, scope)
    counted = quota.Counted([room], before)
    ctxt = RequestContext("joe", "another", overwrite=False)

    def take(_number: int) -> None:
        try:
            api.run(quota.take_servers, ctxt, counted, turns.Taken(1, 3, 512))
        except quota.OvertakenError:
            raise exceptions.OverQuota from None

    assert at_once(take) == 6
    assert turns.turn_look(api, scope) - before == turns.Taken(6, 18, 6 * 512)
