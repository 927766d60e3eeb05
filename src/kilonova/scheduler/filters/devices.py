"""Do NUMA nodes and PCI devices of the host fit the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kilonova.contract import objects
from kilonova.scheduler.candidates import field
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host
from kilonova.virt.hardware import numa

Pool = Mapping[str, Any]

TYPES_TO_ASK_FOR = ("type-PF", "vdpa")
"""Devices that only a request naming their type may get: taking one takes more than the device."""


class NUMATopologyFilter(Filter):
    """Each NUMA node of the server on one of the host; sets the limits that the host checks again."""

    def objection(self, host: Host, request: Request) -> str | None:
        wanted: Any = field(request.spec, "numa_topology")
        if wanted is None:
            return None
        if host.numa_topology is None:
            return "it reports no NUMA topology"
        topology = numa.loads(json.dumps(host.numa_topology))
        if self._needs_threads(request) and not any(len(each) > 1 for cell in topology.cells for each in cell.siblings):
            return "it has no hardware threads"
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=host.cpu_allocation_ratio, ram_allocation_ratio=host.ram_allocation_ratio
        )
        network: Any = field(request.spec, "network_metadata")
        if network is not None:
            limits.network_metadata = network
        if numa.place(topology, wanted, limits) is None:
            return "the server's NUMA topology does not fit"
        request.limits.setdefault(host.uuid, {})["numa_topology"] = limits
        return None

    def _needs_threads(self, request: Request) -> bool:
        wishes = request.wishes
        return wishes.cpu_policy() == "dedicated" and wishes.cpu_thread_policy() == "require"


class PciPassthroughFilter(Filter):
    """The host has free devices for all PCI requests together."""

    def objection(self, host: Host, request: Request) -> str | None:
        asked = request.pci_requests()
        if not asked:
            return None
        left = [(flat(pool), int(pool.get("count", 0))) for pool in host.pci_pools]
        for each in asked:
            taken = take(left, each.count, [dict(spec) for spec in each.spec])
            if taken is None:
                return f"it has no {each.count} free PCI devices for {each.alias_name or each.spec}"
            left = taken
        return None


def flat(pool: Pool) -> dict[str, str]:
    """A pool's properties, those of its tags included, as lower-case texts."""
    found = {**pool, **(pool.get("tags") or {})}
    return {name: str(value).lower() for name, value in found.items() if name not in ("tags", "count")}


def take(
    pools: Sequence[tuple[dict[str, str], int]], count: int, specs: Sequence[Mapping[str, Any]]
) -> list[tuple[dict[str, str], int]] | None:
    """The pools after `count` devices that match any spec are taken; None when there are not so many."""
    left = []
    for pool, free in pools:
        used = min(free, count) if any(matches(pool, spec) for spec in specs) else 0
        count -= used
        left.append((pool, free - used))
    return None if count else left


def matches(pool: Mapping[str, str], spec: Mapping[str, Any]) -> bool:
    kind = pool.get("dev_type", "type-pci")
    if kind in (each.lower() for each in TYPES_TO_ASK_FOR) and str(spec.get("dev_type", "")).lower() != kind:
        return False
    if pool.get("remote_managed") == "true" and str(spec.get("remote_managed", "")).lower() != "true":
        return False
    return all(
        pool.get(name, "none" if name == "physical_network" else default(name)) == str(value).lower()
        for name, value in spec.items()
    )


def default(name: str) -> str | None:
    """What a pool that does not say is taken for."""
    return {"remote_managed": "false", "trusted": "false"}.get(name)
