"""Services and compute nodes of a cell, and what was done to its instances."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from kilonova.base import clock
from kilonova.contract import context
from kilonova.db import query
from kilonova.db.cell import compute_nodes, instance_actions, instances, services
from kilonova.db.cell.tables import INSTANCE_ACTIONS, INSTANCE_ACTIONS_EVENTS
from kilonova.db.engine import Database
from kilonova.db.objects import service as served
from kilonova.db.outcomes import DuplicateError, MarkerNotFoundError

NODE = dict.fromkeys(
    ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version"), 4
) | {"hypervisor_type": "fake", "cpu_info": "{}"}


def service(db: Database, host: str, binary: str = "nova-compute", **values: Any) -> dict[str, Any]:
    topic = binary.removeprefix("nova-")
    return db.run(services.service_create, {"host": host, "binary": binary, "topic": topic, **values})


def node(db: Database, host: str, name: str | None = None) -> dict[str, Any]:
    values = {**NODE, "host": host, "hypervisor_hostname": name or host}
    return db.run(compute_nodes.compute_node_create, values)


@pytest.mark.parametrize(
    ("values", "up"),
    [
        ({"age": 10}, True),
        ({"age": 61}, False),
        ({"age": 10, "forced_down": True}, False),
        ({"age": 600, "disabled": True}, False),
    ],
)
def test_up_or_down(cell_db: Database, values: dict[str, Any], up: bool) -> None:
    age = datetime.timedelta(seconds=values.pop("age"))
    made = service(cell_db, "h", last_seen_up=clock.now() - age, **values)
    assert services.is_up(made, 60) is up


def test_service_that_never_reported_is_as_old_as_its_record(cell_db: Database) -> None:
    made = service(cell_db, "h")
    assert services.is_up(made, 60)
    assert not services.is_up(made, 60, clock.now() + datetime.timedelta(seconds=100))


def test_services_are_found_by_what_is_asked(cell_db: Database) -> None:
    for host in ("h1", "h2"):
        service(cell_db, host)
    conductor = service(cell_db, "c", "nova-conductor", disabled=True)

    def hosts(**how: Any) -> list[str]:
        return [row["host"] for row in cell_db.query(services.service_list, **how)]

    assert hosts(binary="nova-compute") == ["h1", "h2"]
    assert hosts(topic="conductor") == ["c"]
    assert hosts(disabled=False, hosts=["h2", "c"]) == ["h2"]
    assert hosts(host="h1") == ["h1"]
    assert cell_db.run(services.service_delete, conductor["id"])
    assert hosts(topic="conductor") == []
    assert cell_db.query(services.service_get_by_uuid, conductor["uuid"]) is None
    assert service(cell_db, "c", "nova-conductor")["uuid"] != conductor["uuid"]
    with pytest.raises(DuplicateError):
        service(cell_db, "c", "nova-conductor")


def test_minimum_version(cell_db: Database) -> None:
    for host, version in (("h1", 74), ("h2", 72)):
        service(cell_db, host, version=version)
    found = cell_db.query(services.service_minimum_version, ["nova-compute", "nova-conductor"])
    assert found == {"nova-compute": 72, "nova-conductor": None}
    service(cell_db, "h3", version=50, forced_down=True)
    assert cell_db.query(services.service_minimum_version, ["nova-compute"]) == {"nova-compute": 72}
    # A column that is empty is no other answer for those who ask over the bus.
    service(cell_db, "h4", version=71, forced_down=None)
    ctxt = context.admin()
    assert cell_db.query(services.service_minimum_version, ["nova-compute"]) == {"nova-compute": 71}
    assert cell_db.query(served.get_minimum_version, ctxt, "nova-compute") == 71
    assert cell_db.query(served.get_minimum_version_multi, ctxt, ["nova-compute", "nova-conductor"]) == 71
    service(cell_db, "h5", version=None)
    assert cell_db.query(services.service_minimum_version, ["nova-compute"]) == {"nova-compute": 0}


def test_compute_nodes_by_what_is_asked(cell_db: Database) -> None:
    first, second = node(cell_db, "h1"), node(cell_db, "h2", "node-2")

    def names(**how: Any) -> list[str]:
        return [row["hypervisor_hostname"] for row in cell_db.query(compute_nodes.compute_node_list, **how)]

    assert names() == ["h1", "node-2"]
    assert names(host="h2") == ["node-2"]
    assert names(hypervisor_match="ode-") == ["node-2"]
    assert names(hypervisor_match="%") == []
    assert names(marker=first["id"]) == ["node-2"]
    assert names(uuids=[first["uuid"]]) == ["h1"]
    with pytest.raises(MarkerNotFoundError):
        names(marker=99)
    cell_db.run(compute_nodes.compute_node_set_mapped, [first["id"]])
    assert names(mapped_less_than=1) == ["node-2"]
    found = cell_db.query(compute_nodes.compute_node_get_by_host, "h2", "node-2")
    assert found == cell_db.query(compute_nodes.compute_node_get_by_uuid, second["uuid"])
    assert not cell_db.run(compute_nodes.compute_node_delete, first["id"], "h2")
    assert cell_db.run(compute_nodes.compute_node_delete, first["id"], "h1")
    assert names() == ["node-2"]


def test_node_update_says_that_the_host_lives(cell_db: Database) -> None:
    made = node(cell_db, "h")
    before = clock.naive_now()
    assert cell_db.run(compute_nodes.compute_node_update, made["id"], {})
    found = cell_db.query(compute_nodes.compute_node_get, made["id"])
    assert found is not None
    assert found["updated_at"] >= before


def test_deleted_node_comes_back_under_its_uuid(cell_db: Database) -> None:
    made = node(cell_db, "h")
    cell_db.run(compute_nodes.compute_node_delete, made["id"])
    again = cell_db.run(compute_nodes.compute_node_create, {**NODE, "uuid": made["uuid"], "host": "new", "vcpus": 9})
    assert (again["id"], again["host"], again["vcpus"], again["deleted"]) == (made["id"], "new", 9, 0)
    assert again["deleted_at"] is None
    with pytest.raises(DuplicateError):
        cell_db.run(compute_nodes.compute_node_create, {**NODE, "uuid": made["uuid"], "host": "other"})


def test_statistics_count_enabled_hosts(cell_db: Database) -> None:
    for host, disabled in (("h1", False), ("h2", True)):
        service(cell_db, host, disabled=disabled)
        node(cell_db, host)
    found = cell_db.query(compute_nodes.compute_node_statistics)
    assert (found["count"], found["vcpus"], found["memory_mb"]) == (1, 4, 4)


def test_actions_newest_first_in_pages(cell_db: Database) -> None:
    cell_db.run(instances.instance_create, {"uuid": "i"})
    day = datetime.datetime(2026, 1, 1)
    for n in range(4):
        when = day + datetime.timedelta(minutes=n)
        values = {"instance_uuid": "i", "request_id": f"r{n}", "action": "a", "created_at": when, "updated_at": when}
        made = cell_db.run(query.insert, INSTANCE_ACTIONS, values)
        cell_db.run(query.insert, INSTANCE_ACTIONS_EVENTS, {"action_id": made["id"], "event": f"e{n}"})

    def requests(**how: Any) -> list[str]:
        return [row["request_id"] for row in cell_db.query(instance_actions.action_list, "i", **how)]

    assert requests() == ["r3", "r2", "r1", "r0"]
    assert requests(limit=2, marker="r3") == ["r2", "r1"]
    assert requests(limit=0) == []
    assert requests(changes_since=(day + datetime.timedelta(minutes=2)).replace(tzinfo=datetime.UTC)) == ["r3", "r2"]
    assert requests(changes_before=day) == ["r0"]
    with pytest.raises(MarkerNotFoundError):
        requests(marker="unknown")
    action = cell_db.query(instance_actions.action_get, "i", "r2")
    assert action is not None
    assert [e["event"] for e in cell_db.query(instance_actions.event_list, action["id"])] == ["e2"]
