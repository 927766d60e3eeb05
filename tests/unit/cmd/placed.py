"""A cloud for operator commands that speak to other services: one cell with servers on hosts, services in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests import fakes
from tests.fakes.placement import Consumer
from tests.unit.cmd.cloud import Cloud

from kilonova.base import ids
from kilonova.clients.bundle import Clients
from kilonova.contract import objects
from kilonova.db import query
from kilonova.db.api import cell_mappings, host_mappings, instance_mappings
from kilonova.db.cell import compute_nodes, instances
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING, MIGRATIONS

IMAGE = "44444444-4444-4444-8444-444444444444"
NOWHERE = "99999999-9999-4999-8999-999999999999"
LOST_DATABASE = "mysql+pymysql://u:p@127.0.0.1:1/n"
WHOLE = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 5}


def flavor(**more: Any) -> str:
    """The flavors that a server keeps, as JSON text."""
    values: dict[str, Any] = {
        "flavorid": "small", "name": "small", "vcpus": 2, "memory_mb": 512, "root_gb": 4, "ephemeral_gb": 1, "swap": 0,
        "extra_specs": {}, **more,
    }  # fmt: skip
    return json.dumps({"cur": objects.Flavor(**values).obj_to_primitive(), "old": None, "new": None})


class Placed:
    """`cloud` has the cell `one`; `run` is nova-manage with these services."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud = cloud
        self.services = fakes.Cloud()
        self.placement, self.neutron = self.services.placement, self.services.neutron
        clients = self.services.clients
        monkeypatch.setattr(Clients, "from_conf", classmethod(lambda _cls, _conf: clients))
        self.cell_uuid = cloud.create_cell()

    def run(self, *words: str) -> int:
        return self.cloud.run(*words)

    def heal(self, *words: str) -> int:
        return self.run("placement", "heal_allocations", *words)

    def audit(self, *words: str) -> int:
        return self.run("placement", "audit", *words)

    def host(self, name: str, *, mapped: bool = True, provider: bool = True, **more: Any) -> str:
        """A host with its compute node; the uuid of the node and of its provider."""
        self.cloud.node(name)
        found = self.cloud.cell.query(compute_nodes.compute_node_get_by_host, name, name)
        assert found is not None
        uuid = str(found["uuid"])
        if mapped:
            self.cloud.api.run(host_mappings.host_mapping_create, name, self.cell_id())
        if provider:
            self.placement.host(name, provider=uuid, **more)
        return uuid

    def cell_id(self, name: str = "one") -> int:
        return int(self.cloud.cells()[name]["id"])

    def server(self, host: str | None, *, kept: str | None = None, volume: bool = False, **values: Any) -> str:
        """A server, mapped; its uuid."""
        new = {
            "project_id": "p", "user_id": "u", "vm_state": "active", "host": host, "node": host, "image_ref": IMAGE,
            "extra": {"flavor": kept or flavor()}, **values,
        }  # fmt: skip
        uuid = str(self.cloud.cell.run(instances.instance_create, new)["uuid"])
        if volume:
            device = {
                "uuid": ids.new_uuid(),
                "instance_uuid": uuid,
                "boot_index": 0,
                "destination_type": "volume",
                "deleted": 0,
            }
            self.cloud.cell.run(query.insert, BLOCK_DEVICE_MAPPING, device)
        self.mapping(uuid, self.cell_id())
        return uuid

    def mapping(self, uuid: str, cell_id: int | None) -> None:
        values = {"instance_uuid": uuid, "project_id": "p", "user_id": "u", "cell_id": cell_id}
        self.cloud.api.run(instance_mappings.instance_mapping_create, values)

    def migration(self, server: str, status: str, uuid: str, kind: str = "resize") -> str:
        values = {"uuid": uuid, "instance_uuid": server, "status": status, "migration_type": kind, "deleted": 0}
        self.cloud.cell.run(query.insert, MIGRATIONS, values)
        return uuid

    def hold(self, consumer: str, held: dict[str, dict[str, int]], project: str = "p", user: str = "u") -> None:
        """Let a consumer hold resources, whoever it is."""
        self.placement.consumers[consumer] = Consumer(1, project, user, held)

    def lose_cell(self) -> str:
        """Another cell whose database does not answer; its uuid."""
        uuid = "33333333-3333-4333-8333-333333333333"
        values = {"uuid": uuid, "name": "lost", "database_connection": LOST_DATABASE, "transport_url": "none:///"}
        self.cloud.api.run(cell_mappings.cell_mapping_create, values)
        with self.cloud.conf.open("a") as file:
            file.write("[database]\ndb_max_retries = 0\nmax_retries = 0\n")
        return uuid
