"""Lists of names that come in any number, from hosts or loops, are asked for so many at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.contract import context, objects
from kilonova.db import flows, query
from kilonova.db.api import build_requests, host_mappings, instance_mappings
from kilonova.db.api.tables import BUILD_REQUESTS, CELL_MAPPINGS, HOST_MAPPINGS, INSTANCE_MAPPINGS
from kilonova.db.cell import instances, tables
from kilonova.db.engine import Database
from kilonova.db.flow_tables import KN_FLOW
from kilonova.db.objects import bdm, compute_node, fault, instance_counts
from kilonova.db.objects import instances as instance_objects
from kilonova.flow.store import NewFlow

CTXT = context.admin()
MANY = [str(uuid.UUID(int=number)) for number in range(1, 2502)]
THERE = [MANY[0], MANY[1200], MANY[2500]]
"""In each slice one."""

Ask = Callable[[Any, list[str]], Any]

API: dict[str, Ask] = {
    "active_subjects": lambda tx, names: flows.active_subjects(tx, names, "op"),
    "known_subjects": flows.known_subjects,
    "build_requests_among": build_requests.build_requests_among,
    "build_request_instances": build_requests.build_request_instances,
    "instance_mapping_list": lambda tx, names: [
        row["instance_uuid"] for row in instance_mappings.instance_mapping_list(tx, names)
    ],
    "host_mapping_list": lambda tx, names: [row["host"] for row in host_mappings.host_mapping_list(tx, hosts=names)],
}

CELL: dict[str, Ask] = {
    "instances_among": instances.instances_among,
    "instance_uuids_by_host": lambda tx, names: [
        host for host, found in instances.instance_uuids_by_host(tx, names).items() if found
    ],
    "instance_usage": lambda tx, names: (
        THERE if instances.instance_usage(tx, "p", but=names)["project"]["instances"] == 0 else []
    ),
    "get_by_filters": lambda tx, names: [
        each.uuid for each in instance_objects.get_by_filters(tx, CTXT, {"uuid": names}, expected_attrs=["fault"])
    ],
    "get_uuids_by_hosts": lambda tx, names: instance_objects.get_uuids_by_hosts(tx, CTXT, names),
    "bdm.get_by_instance_uuids": lambda tx, names: [
        each.instance_uuid for each in bdm.get_by_instance_uuids(tx, CTXT, names)
    ],
    "fault.get_latest_by_instance_uuids": lambda tx, names: [
        each.instance_uuid for each in fault.get_latest_by_instance_uuids(tx, CTXT, names)
    ],
    "fault.get_by_instance_uuids": lambda tx, names: [
        each.instance_uuid for each in fault.get_by_instance_uuids(tx, CTXT, names)
    ],
    "compute_node.get_all_by_uuids": lambda tx, names: [
        each.uuid for each in compute_node.get_all_by_uuids(tx, CTXT, names)
    ],
    "hosts_of_group": lambda tx, names: instance_counts.hosts_of_group(tx, CTXT, objects.InstanceGroup(members=names)),
}


def put_api(tx: Any) -> None:
    tx.execute(CELL_MAPPINGS.insert().values(id=1, uuid=MANY[0], transport_url="", database_connection=""))
    for name in THERE:
        assert flows.offer(tx, NewFlow("op", name, {}))
        tx.execute(BUILD_REQUESTS.insert().values(instance_uuid=name, project_id="p", instance="{}"))
        tx.execute(INSTANCE_MAPPINGS.insert().values(instance_uuid=name, project_id="p"))
        tx.execute(HOST_MAPPINGS.insert().values(host=name, cell_id=1))


def put_cell(tx: Any) -> None:
    numbers = dict.fromkeys(("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used"), 0)
    for name in THERE:
        instances.instance_create(tx, {"uuid": name, "host": name, "project_id": "p", "user_id": "u"})
        tx.execute(tables.INSTANCE_FAULTS.insert().values(instance_uuid=name, code=500, message="no", deleted=0))
        tx.execute(tables.BLOCK_DEVICE_MAPPING.insert().values(uuid=name, instance_uuid=name, deleted=0))
        node = {"host": name, "uuid": name, "hypervisor_type": "x", "hypervisor_version": 1, "cpu_info": ""}
        tx.execute(tables.COMPUTE_NODES.insert().values(**node, **numbers))


def asked(database: Database, ask: Ask) -> tuple[list[str], int]:
    """What is found, and how many values the largest statement had."""
    most = [0]

    def note(_connection: Any, _cursor: Any, _statement: str, parameters: Any, *_more: Any) -> None:
        most[0] = max(most[0], len(parameters))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        return sorted(database.query(ask, MANY)), most[0]
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("name", API)
def test_of_the_api_database(api_db: Database, name: str) -> None:
    KN_FLOW.metadata.create_all(api_db.engine)
    api_db.run(put_api)
    found, most = asked(api_db, API[name])
    assert found == THERE
    assert most <= query.AT_ONCE + 5


@pytest.mark.parametrize("name", CELL)
def test_of_a_cell(cell_db: Database, name: str) -> None:
    cell_db.run(put_cell)
    found, most = asked(cell_db, CELL[name])
    assert found == THERE
    assert most <= query.AT_ONCE + 5


def test_the_order_of_a_list_is_that_of_all_slices(cell_db: Database) -> None:
    cell_db.run(put_cell)
    for direction, wanted in (("asc", THERE), ("desc", THERE[::-1])):
        listed = cell_db.query(
            instance_objects.get_by_filters, CTXT, {"uuid": MANY[::-1]}, sort_keys=["uuid"], sort_dirs=[direction]
        )
        assert [each.uuid for each in listed] == wanted
        assert [each.uuid for each in cell_db.query(
            instance_objects.get_by_filters, CTXT, {"uuid": MANY}, limit=1, marker=wanted[0],
            sort_keys=["uuid"], sort_dirs=[direction],
        )] == [wanted[1]]  # fmt: skip
