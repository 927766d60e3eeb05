"""One compute node as filters and weighers see it."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

DEFAULT_RATIOS = {"cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0}


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """The nova-compute service of a host; times are naive UTC."""

    host: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_up: datetime.datetime | None
    version: int

    @classmethod
    def from_row(cls, row: Row) -> Service:
        return cls(
            host=row["host"],
            disabled=bool(row["disabled"]),
            disabled_reason=row["disabled_reason"],
            forced_down=bool(row["forced_down"]),
            last_seen_up=row["last_seen_up"] or row["created_at"],
            version=row["version"] or 0,
        )

    def is_up(self, now: datetime.datetime, down_time: float) -> bool:
        """Heard of within `down_time` seconds, and nobody declared it down."""
        if self.forced_down or self.last_seen_up is None:
            return False
        return abs((now - self.last_seen_up).total_seconds()) <= down_time


@dataclasses.dataclass(frozen=True, slots=True)
class Aggregate:
    id: int
    uuid: str
    name: str
    hosts: frozenset[str]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, id: int, uuid: str, name: str, hosts: Iterable[str], metadata: Mapping[str, str]) -> Aggregate:
        return cls(id, uuid, name, frozenset(hosts), dict(metadata))


class Host:
    """A node with what it has, uses and is about to use. Memory and free disk in MiB, total disk in GiB.

    `consume` takes a server's share at once, before the host itself reports it; `update`
    with a later report replaces all of that.
    """

    __slots__ = (
        "_consumed_at",
        "_row",
        "aggregates",
        "cell_uuid",
        "cpu_allocation_ratio",
        "cpu_info",
        "disk_allocation_ratio",
        "disk_mb_used",
        "failed_builds",
        "free_disk_mb",
        "free_ram_mb",
        "host",
        "host_ip",
        "hypervisor_hostname",
        "hypervisor_type",
        "hypervisor_version",
        "instances",
        "metrics",
        "nodename",
        "num_instances",
        "num_io_ops",
        "numa_topology",
        "pci_pools",
        "ram_allocation_ratio",
        "service",
        "stats",
        "supported_instances",
        "total_usable_disk_gb",
        "total_usable_ram_mb",
        "updated",
        "uuid",
        "vcpus_total",
        "vcpus_used",
    )

    service: Service
    aggregates: tuple[Aggregate, ...]
    instances: set[str]
    updated: datetime.datetime | None

    def __init__(self, cell_uuid: str, row: Row) -> None:
        self.cell_uuid = cell_uuid
        self.aggregates = ()
        self.instances = set()
        self._consumed_at: datetime.datetime | None = None
        self._read(row)

    @property
    def key(self) -> tuple[str, str]:
        return self.host, self.nodename

    def update(self, row: Row, now: datetime.datetime, patience: float = 60.0) -> None:
        """Take a report, unless it is older than a consumption of the last `patience` seconds."""
        reported = row["updated_at"]
        self._row = row
        consumed = self._consumed_at
        if (
            consumed is None
            or (reported is not None and reported > consumed)
            or (now - consumed).total_seconds() > patience
        ):
            self._read(row)

    def consume(self, *, memory_mb: int, disk_gb: int, vcpus: int, now: datetime.datetime) -> None:
        """A server is on its way to this host."""
        self.free_ram_mb -= memory_mb
        self.free_disk_mb -= disk_gb * 1024
        self.vcpus_used += vcpus
        self.num_instances += 1
        self.num_io_ops += 1
        self._consumed_at = now

    def forget(self) -> None:
        """It is not coming after all: back to the last report."""
        self._read(self._row)

    def _read(self, row: Row) -> None:
        self._row = row
        self._consumed_at = None
        self.host = row["host"]
        self.nodename = row["hypervisor_hostname"]
        self.hypervisor_hostname = row["hypervisor_hostname"]
        self.uuid = row["uuid"]
        self.updated = row["updated_at"]
        self._read_resources(row)
        self._read_hypervisor(row)
        self._read_stats(load(row["stats"], {}))
        self.metrics = {each["name"]: each["value"] for each in load(row["metrics"], [])}
        self.numa_topology = load(row["numa_topology"], None)
        self.pci_pools = pools(load(row["pci_stats"], None))

    def _read_resources(self, row: Row) -> None:
        free_gb = row["free_disk_gb"] or 0
        if row["disk_available_least"] is not None:
            free_gb = min(row["disk_available_least"], free_gb)
        self.total_usable_ram_mb = row["memory_mb"]
        self.total_usable_disk_gb = row["local_gb"]
        self.disk_mb_used = row["local_gb_used"] * 1024
        self.free_ram_mb = row["free_ram_mb"] or 0
        self.free_disk_mb = free_gb * 1024
        self.vcpus_total = row["vcpus"]
        self.vcpus_used = row["vcpus_used"]
        self.cpu_allocation_ratio = row["cpu_allocation_ratio"] or DEFAULT_RATIOS["cpu_allocation_ratio"]
        self.ram_allocation_ratio = row["ram_allocation_ratio"] or DEFAULT_RATIOS["ram_allocation_ratio"]
        self.disk_allocation_ratio = row["disk_allocation_ratio"] or DEFAULT_RATIOS["disk_allocation_ratio"]

    def _read_hypervisor(self, row: Row) -> None:
        self.host_ip = row["host_ip"]
        self.hypervisor_type = row["hypervisor_type"]
        self.hypervisor_version = row["hypervisor_version"]
        self.cpu_info = load(row["cpu_info"], {})
        self.supported_instances = [tuple(each) for each in load(row["supported_instances"], [])]

    def _read_stats(self, stats: Mapping[str, Any]) -> None:
        self.stats = {name: None if value is None else str(value) for name, value in stats.items()}
        self.num_instances = int(stats.get("num_instances") or 0)
        self.num_io_ops = int(stats.get("io_workload") or 0)
        self.failed_builds = int(stats.get("failed_builds") or 0)

    def metadata(self) -> dict[str, set[str]]:
        """Metadata of all its aggregates together; values are comma-separated lists."""
        found: dict[str, set[str]] = {}
        for aggregate in self.aggregates:
            for name, value in aggregate.metadata.items():
                found.setdefault(name, set()).update(part.strip() for part in value.split(","))
        return found

    def metadata_values(self, name: str) -> set[str]:
        """Whole values of one metadata key in its aggregates."""
        return {aggregate.metadata[name] for aggregate in self.aggregates if name in aggregate.metadata}

    def availability_zone(self, default: str) -> str:
        zones = sorted(self.metadata_values("availability_zone"))
        return zones[0].split(",")[0].strip() if zones else default

    def __repr__(self) -> str:
        return f"<{self.host}/{self.nodename}>"


def load(text: str | None, otherwise: Any) -> Any:
    """A JSON column; hosts may have written nothing, or something broken that must not stop scheduling."""
    if not text:
        return otherwise
    try:
        found = json.loads(text)
    except ValueError:
        return otherwise
    return otherwise if found is None else found


def pools(primitive: Any) -> list[dict[str, Any]]:
    """PCI device pools out of the versioned object that the column holds."""
    if not isinstance(primitive, Mapping):
        return []
    entries = primitive.get("nova_object.data", {}).get("objects", [])
    return [dict(each.get("nova_object.data", {})) for each in entries]
