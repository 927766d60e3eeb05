"""Servers, services and events written straight into the databases of a test world."""

from __future__ import annotations

import datetime
from typing import Any

from kilonova.base import clock
from kilonova.db.api import instance_mappings
from kilonova.db.cell import instances, services

PROJECT = "6f70656e737461636b20342065766572"
OTHER = "a" * 32
NOWHERE = "99999999-9999-4999-8999-999999999999"
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
VIF = """[{"id": "p", "address": "fa:16:3e:00:00:01", "network": {"label": "%s", "subnets": [
{"ips": [{"address": "10.0.0.5", "type": "fixed", "floating_ips": [{"address": "172.24.4.9", "type": "floating"}]}]}
]}}]"""


def server(world: Any, cell: str = "c1", **values: Any) -> str:
    """An ACTIVE server on host h1 in a cell; returns its uuid."""
    columns = {
        "project_id": PROJECT,
        "user_id": "joe",
        "display_name": "one",
        "hostname": "one",
        "host": "h1",
        "node": "h1",
        "vm_state": "active",
        "task_state": None,
        "power_state": 1,
        "launched_at": NOW,
        "locked": False,
        "memory_mb": 512,
        "vcpus": 1,
        "image_ref": "",
        "extra": {"flavor": FLAVOR},
        **values,
    }
    with world.cell(cell).database.write() as tx:
        uuid: str = instances.instance_create(tx, columns)["uuid"]
    with world.cells.api.write() as tx:
        mapping = {"instance_uuid": uuid, "cell_id": world.cell(cell).id, "project_id": columns["project_id"]}
        instance_mappings.instance_mapping_create(tx, mapping | {"user_id": columns["user_id"]})
    return uuid


def service(world: Any, host: str = "h1", binary: str = "nova-compute", cell: str = "c1", **values: Any) -> Any:
    """A service that was heard of just now."""
    row = {"host": host, "binary": binary, "topic": binary.removeprefix("nova-"), "version": 74, "report_count": 1}
    row |= {"last_seen_up": clock.naive_now(), "disabled": False, "forced_down": False, **values}
    with world.cell(cell).database.write() as tx:
        return services.service_create(tx, row)


def record(world: Any, uuid: str, cell: str = "c1") -> dict[str, Any]:
    """The server's row with its metadata and tags."""
    with world.cell(cell).database.read() as tx:
        found = instances.instance_get(tx, uuid, ["metadata", "system_metadata", "tags"])
    assert found is not None
    return found


FLAVOR = (
    '{"cur": {"nova_object.name": "Flavor", "nova_object.version": "1.2", "nova_object.namespace": "nova",'
    ' "nova_object.data": {"id": 1, "name": "small", "flavorid": "small", "memory_mb": 512, "vcpus": 1, "root_gb": 1,'
    ' "ephemeral_gb": 0, "swap": 0, "rxtx_factor": 1.0, "vcpu_weight": 0, "disabled": false, "is_public": true,'
    ' "extra_specs": {}, "description": null, "created_at": null, "updated_at": null, "deleted_at": null,'
    ' "deleted": false}}, "old": null, "new": null}'
)
