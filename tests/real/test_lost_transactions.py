"""Each kind of write loses its transaction to a deadlock at each of its statements, and at last is there once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.real.database_fixtures import database_server, databases

from kilonova.base import ids
from kilonova.contract import context
from kilonova.db import flows, heartbeat
from kilonova.db.api import aggregates, flavors, host_mappings, instance_groups, instance_mappings, key_pairs, quotas
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.engine import Database, Tx
from kilonova.db.objects import action, tag
from kilonova.db.outcomes import Stale, Updated
from kilonova.flow.store import NewFlow

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

CTXT = context.RequestContext(user_id="u", project_id="p", request_id="req-1")
NODE = {
    "vcpus": 1, "memory_mb": 1, "local_gb": 1, "vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0,
    "hypervisor_type": "QEMU", "hypervisor_version": 1, "cpu_info": "",
}  # fmt: skip
FLAVOR = {"memory_mb": 1, "vcpus": 1, "swap": 0, "root_gb": 0, "ephemeral_gb": 0, "rxtx_factor": 1.0}

_DEADLOCK = {
    "mysql": "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found'",
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$",
}


class Loser:
    """Loses a transaction at its statement number `at`, once, by an error of the server's own."""

    def __init__(self, database: Database, at: int) -> None:
        self.lost = False
        self._database = database
        self._left = at

    def __call__(self, _connection: Any, cursor: Any, *_: Any) -> None:
        self._left -= 1
        if self._left < 0 and not self.lost:
            self.lost = True
            cursor.execute(_DEADLOCK[self._database.dialect])

    def __enter__(self) -> Loser:
        sa.event.listen(self._database.engine, "before_cursor_execute", self)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(self._database.engine, "before_cursor_execute", self)


def _instance(tx: Tx, name: str) -> None:
    parts = {"metadata": {"a": "1"}, "system_metadata": {"b": "2"}, "tags": ["t"]}
    instances.instance_create(tx, {"uuid": name, "project_id": "p", **parts})


def _action(tx: Tx, name: str) -> None:
    _instance(tx, name)
    action.action_start(tx, CTXT, name, "stop", want_result=False)


def _group(tx: Tx, name: str) -> None:
    made = instance_groups.instance_group_create(tx, {"uuid": name, "project_id": "p", "user_id": "u"}, "affinity")
    instance_groups.instance_group_members_add(tx, made["id"], [name])


def _aggregate(tx: Tx, name: str) -> None:
    made = aggregates.aggregate_create(tx, name, {"availability_zone": "z"})
    aggregates.aggregate_host_add(tx, made["id"], "h")


WRITES: dict[str, tuple[str, Callable[[Tx, str], Any], str]] = {
    "a server": ("cell", _instance, "SELECT count(*) FROM instances WHERE uuid = '{}'"),
    "its tags": (
        "cell",
        lambda tx, name: tag.create(tx, CTXT, name, ["x"]),
        "SELECT count(*) FROM tags WHERE resource_id = '{}'",
    ),
    "an action": (
        "cell",
        _action,
        "SELECT count(*) FROM instance_actions WHERE instance_uuid = '{}'",
    ),
    "a service": (
        "cell",
        lambda tx, name: heartbeat.service_announce(tx, name, "nova-x", "x"),
        "SELECT count(*) FROM services WHERE host = '{}'",
    ),
    "another service": (
        "cell",
        lambda tx, name: services.service_create(tx, {"host": name, "binary": "b", "topic": "t", "report_count": 0}),
        "SELECT count(*) FROM services WHERE host = '{}'",
    ),
    "a node": (
        "cell",
        lambda tx, name: compute_nodes.compute_node_create(tx, {"uuid": name, "host": name, **NODE}),
        "SELECT count(*) FROM compute_nodes WHERE uuid = '{}'",
    ),
    "a flow": (
        "cell",
        lambda tx, name: flows.offer(tx, NewFlow(op="delete", subject_id=name, frame={})),
        "SELECT count(*) FROM kn_flow WHERE subject_id = '{}'",
    ),
    "a flavor": (
        "api",
        lambda tx, name: flavors.flavor_create(tx, {"flavorid": name, "name": name, **FLAVOR}, {"k": "v"}, ["p"]),
        "SELECT count(*) FROM flavors WHERE flavorid = '{}'",
    ),
    "an aggregate": ("api", _aggregate, "SELECT count(*) FROM aggregates WHERE name = '{}'"),
    "a group": ("api", _group, "SELECT count(*) FROM instance_groups WHERE uuid = '{}'"),
    "a key pair": (
        "api",
        lambda tx, name: key_pairs.key_pair_create(tx, {"user_id": "u", "name": name, "type": "ssh"}),
        "SELECT count(*) FROM key_pairs WHERE name = '{}'",
    ),
    "a quota": (
        "api",
        lambda tx, name: quotas.quota_set(tx, name, "cores", 5),
        "SELECT count(*) FROM quotas WHERE project_id = '{}' AND hard_limit = 5",
    ),
    "a mapping": (
        "api",
        lambda tx, name: instance_mappings.instance_mapping_create(tx, {"instance_uuid": name, "project_id": "p"}),
        "SELECT count(*) FROM instance_mappings WHERE instance_uuid = '{}'",
    ),
}  # fmt: skip


@pytest.fixture
def by_name(databases: tuple[Database, Database]) -> dict[str, Database]:
    return {"api": databases[0], "cell": databases[1]}


@pytest.mark.parametrize("what", WRITES)
def test_written_once_whenever_it_was_lost(by_name: dict[str, Database], what: str) -> None:
    where, write, count = WRITES[what]
    database = by_name[where]
    for at in range(50):
        name = ids.new_uuid()
        with Loser(database, at) as loser:
            database.run(write, name)
        with database.read() as tx:
            assert tx.exec_driver_sql(count.format(name)).scalar_one() == 1, at
        if not loser.lost:
            assert at > 0
            return
    pytest.fail("it never got through")


def test_of_a_lost_change_of_state_the_outcome_is_still_told(by_name: dict[str, Database]) -> None:
    cell, uuid = by_name["cell"], ids.new_uuid()
    cell.run(_instance, uuid)
    with Loser(cell, 0) as loser:
        assert cell.run(instances.instance_update, uuid, {"task_state": "deleting"}, {"task_state": None}) == Updated()
    assert loser.lost
    with Loser(cell, 1) as loser:
        changed = cell.run(instances.instance_update, uuid, {"task_state": "rebooting"}, {"task_state": None})
    assert loser.lost
    assert changed == Stale({"task_state": "deleting"})
    with Loser(cell, 5) as loser:
        assert cell.run(instances.instance_destroy, uuid) == Updated()
    assert loser.lost
    assert cell.query(instances.instance_get, uuid) is None


def test_hosts_are_mapped_once(by_name: dict[str, Database]) -> None:
    api = by_name["api"]
    values = {"uuid": ids.new_uuid(), "name": "c", "database_connection": "d", "transport_url": "t"}
    api.run(lambda tx: tx.execute(sa.text(_CELL), values))
    with Loser(api, 0) as loser:
        api.run(host_mappings.host_mapping_create, "h", 1)
    assert loser.lost
    assert [row["host"] for row in api.query(host_mappings.host_mapping_list)] == ["h"]


_CELL = """INSERT INTO cell_mappings (id, uuid, name, database_connection, transport_url, disabled)
VALUES (1, :uuid, :name, :database_connection, :transport_url, false)"""
