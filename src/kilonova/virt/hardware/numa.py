"""Placing a guest's NUMA nodes on a host's. Pure functions over the wire objects; memory in MiB, pages in KiB."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from kilonova.contract import objects

Topology = objects.NUMATopology
DEDICATED, MIXED = "dedicated", "mixed"
MIB_KB = 1024


def loads(text: str) -> Topology:
    """From the JSON of the `numa_topology` column."""
    return objects.NUMATopology.obj_from_primitive(json.loads(text))


def dumps(topology: Topology) -> str:
    return json.dumps(topology.obj_to_primitive())


def host_topology(text: str, taken: Iterable[objects.InstanceNUMATopology]) -> Topology:
    """The host's nodes with what its guests use of them."""
    topology = loads(text)
    cells = {cell.id: cell for cell in topology.cells}
    for cell in topology.cells:
        cell.cpu_usage = cell.memory_usage = 0
        cell.pinned_cpus = set()
        for pages in cell.mempages:
            pages.used = 0
    for guest in taken:
        for used in guest.cells:
            if used.id in cells:
                _use(cells[used.id], used)
    return topology


def place(
    host: Topology, wanted: objects.InstanceNUMATopology, limits: objects.NUMATopologyLimits | None
) -> objects.InstanceNUMATopology | None:
    """The guest's topology with each node on a different host node, CPUs pinned where asked; None when it cannot be."""
    for order in _choices(host.cells, wanted.cells, limits):
        placed = wanted.obj_clone()
        for cell, on in zip(placed.cells, order, strict=True):
            _settle(cell, on)
        return placed
    return None


def _choices(
    free: Sequence[objects.NUMACell],
    wanted: Sequence[objects.InstanceNUMACell],
    limits: objects.NUMATopologyLimits | None,
) -> Iterator[list[objects.NUMACell]]:
    if not wanted:
        yield []
        return
    for cell in free:
        if fits(cell, wanted[0], limits):
            rest = [other for other in free if other is not cell]
            for more in _choices(rest, wanted[1:], limits):
                yield [cell, *more]


def fits(cell: objects.NUMACell, wanted: objects.InstanceNUMACell, limits: objects.NUMATopologyLimits | None) -> bool:
    """Whether one guest node has room on one host node.

    Thread policies are not honoured yet, so a guest that asks for one has no room anywhere.
    """
    if wanted.cpu_thread_policy in ("require", "isolate"):
        return False
    return _memory_fits(cell, wanted, limits) and _cpus_fit(cell, wanted, limits)


def _memory_fits(
    cell: objects.NUMACell, wanted: objects.InstanceNUMACell, limits: objects.NUMATopologyLimits | None
) -> bool:
    if wanted.pagesize:
        needed = wanted.memory * MIB_KB // wanted.pagesize
        return any(p.size_kb == wanted.pagesize and p.total - p.reserved - p.used >= needed for p in cell.mempages)
    if wanted.memory > cell.memory:
        return False
    return limits is None or cell.memory_usage + wanted.memory <= cell.memory * limits.ram_allocation_ratio


def _cpus_fit(
    cell: objects.NUMACell, wanted: objects.InstanceNUMACell, limits: objects.NUMATopologyLimits | None
) -> bool:
    if len(wanted.pcpuset) > len(cell.pcpuset - cell.pinned_cpus):
        return False
    shared = len(wanted.cpuset)
    if shared > len(cell.cpuset):
        return False
    return limits is None or cell.cpu_usage + shared <= len(cell.cpuset) * limits.cpu_allocation_ratio


def _settle(cell: objects.InstanceNUMACell, on: objects.NUMACell) -> None:
    cell.id = on.id
    if cell.cpu_policy in (DEDICATED, MIXED):
        free = sorted(on.pcpuset - on.pinned_cpus)
        # Its keys are texts on the wire.
        cell.cpu_pinning_raw = dict(zip(map(str, sorted(cell.pcpuset)), free, strict=False))


def _use(cell: objects.NUMACell, used: objects.InstanceNUMACell) -> None:
    cell.cpu_usage += len(used.cpuset) + len(used.pcpuset)
    cell.memory_usage += used.memory
    cell.pinned_cpus |= set((used.cpu_pinning_raw or {}).values())
    for pages in cell.mempages:
        if pages.size_kb == used.pagesize:
            pages.used += used.memory * MIB_KB // pages.size_kb
