"""Hosts, requests and rows for the scheduler's tests."""

from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

from kilonova.base import clock
from kilonova.contract import objects
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.cache import Tail
from kilonova.scheduler.snapshot.host import Aggregate, Host, Service

CELL = "cccccccc-0000-4000-8000-000000000001"
PROJECT = "project"


def service_row(host: str, **more: Any) -> dict[str, Any]:
    now = clock.naive_now()
    return {
        "host": host,
        "disabled": False,
        "disabled_reason": None,
        "forced_down": False,
        "last_seen_up": now,
        "created_at": now,
        "version": 79,
        "deleted": 0,
        **more,
    }


def node_row(host: str, *, node: str | None = None, node_uuid: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "uuid": node_uuid or str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{host}/{node or host}")),
        "host": host,
        "hypervisor_hostname": node or host,
        "deleted": 0,
        "updated_at": clock.naive_now() - datetime.timedelta(seconds=5),
        "memory_mb": 16384,
        "free_ram_mb": 15000,
        "local_gb": 100,
        "local_gb_used": 0,
        "free_disk_gb": 100,
        "disk_available_least": None,
        "vcpus": 8,
        "vcpus_used": 0,
        "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 1.0,
        "disk_allocation_ratio": 1.0,
        "hypervisor_type": "QEMU",
        "hypervisor_version": 7002000,
        "host_ip": "10.1.2.3",
        "cpu_info": json.dumps({"arch": "x86_64", "maxphysaddr": {"bits": 46}, "features": ["vmx"]}),
        "supported_instances": json.dumps([["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]]),
        "stats": json.dumps({"num_instances": "2", "io_workload": "1", "failed_builds": "0", "rack": "r1"}),
        "metrics": "[]",
        "numa_topology": None,
        "pci_stats": None,
        **more,
    }


def make_host(name: str = "h1", *, aggregates: Any = (), instances: Any = (), service: Any = None, **row: Any) -> Host:
    host = Host(CELL, node_row(name, **row))
    host.service = Service.from_row(service or service_row(name))
    host.aggregates = tuple(
        Aggregate.of(at, str(uuid.uuid4()), f"a{at}", [name], metadata) for at, metadata in enumerate(aggregates)
    )
    host.instances = set(instances)
    return host


def flavor(**more: Any) -> objects.Flavor:
    values = {"name": "m1", "vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0, "swap": 0, "extra_specs": {}}
    return objects.Flavor(**values | more)


def image(**props: Any) -> objects.ImageMeta:
    return objects.ImageMeta(
        id="99999999-0000-4000-8000-000000000000",
        name="cirros",
        disk_format="raw",
        properties=objects.ImageMetaProps(**props),
    )


def spec(
    *, specs: dict[str, str] | None = None, props: dict[str, Any] | None = None, **more: Any
) -> objects.RequestSpec:
    values: dict[str, Any] = {
        "flavor": flavor(extra_specs=specs or {}),
        "image": image(**props or {}),
        "instance_uuid": str(uuid.uuid4()),
        "project_id": PROJECT,
        "user_id": "user",
        "num_instances": 1,
        "is_bfv": False,
        "availability_zone": None,
        "requested_destination": None,
        "requested_resources": [],
        "scheduler_hints": {},
        "instance_group": None,
        "pci_requests": None,
        "numa_topology": None,
        "retry": None,
        "ignore_hosts": None,
        "force_hosts": None,
        "force_nodes": None,
    }
    return objects.RequestSpec(**values | more)


def request(group: Any = None, **more: Any) -> Request:
    made = spec(**more)
    return Request(made, made.instance_uuid, group)


class FakeSource:
    """Rows in memory; `looks` counts what was read: None for a sweep, else the time asked for."""

    def __init__(self) -> None:
        self.rows: dict[str, Tail] = {}
        self.enabled: dict[str, bool] = {CELL: True}
        self.listed: list[Aggregate] = []
        self.looks: list[datetime.datetime | None] = []
        self.down: set[str] = set()

    def put(self, *hosts: str, cell: str = CELL, **row: Any) -> None:
        nodes = [node_row(host, **row) for host in hosts]
        services = [service_row(host) for host in hosts]
        old = self.rows.get(cell, Tail([], [], []))
        self.rows[cell] = Tail([*old.services, *services], [*old.nodes, *nodes], old.instances)
        self.enabled.setdefault(cell, True)

    def cells(self):
        return self.enabled

    def tails(self, since):
        self.looks.append(since)
        return {cell: tail for cell, tail in self.rows.items() if cell not in self.down}

    def aggregates(self):
        return self.listed
