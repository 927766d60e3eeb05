"""What instances take from a node, as numbers. Pure functions."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from kilonova.contract import objects
from kilonova.contract.states import VM, Task

IO_HEAVY = (
    ("vm", VM.BUILDING),
    ("task", Task.RESIZE_MIGRATING),
    ("task", Task.REBUILDING),
    ("task", Task.RESIZE_PREP),
    ("task", Task.IMAGE_SNAPSHOT),
    ("task", Task.IMAGE_BACKUP),
    ("task", Task.RESCUING),
    ("task", Task.UNSHELVING),
)
"""States in which a server keeps the disks busy; their sum is the `io_workload` that schedulers weigh."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """One instance's share of a node: processors, memory in MiB, disk in GiB, and the states it counts under."""

    vcpus: int
    memory_mb: int
    local_gb: float
    project_id: str
    os_type: str | None
    vm_state: str | None
    task_state: str | None
    numa: objects.InstanceNUMATopology | None = None


MOVING = frozenset({
    Task.RESIZE_PREP, Task.RESIZE_MIGRATING, Task.RESIZE_MIGRATED, Task.RESIZE_FINISH,
    Task.REBUILDING, Task.REBUILD_BLOCK_DEVICE_MAPPING, Task.REBUILD_SPAWNING,
})  # fmt: skip
"""Tasks during which an ACTIVE or SHUTOFF server holds room on two hosts."""


def of(instance: objects.Instance, volume_backed: bool) -> Usage:
    """The usage by the instance's flavor; the root disk of a volume-backed one is not on the node."""
    numa = instance.numa_topology if instance.obj_attr_is_set("numa_topology") else None
    return _of(instance, instance.flavor, numa, volume_backed)


def of_move(
    instance: objects.Instance, migration: objects.Migration, here: tuple[str, str], lives_here: bool, backed: bool
) -> Usage | None:
    """What a migration keeps on a node beside the instances that live there; None for nothing.

    A server that came to another host has room to go back to, and one that is coming has room to come to. `here`:
    host and node; `lives_here`: whether the instance is counted there itself; `backed`: by a volume.
    """
    if not _moves(instance):
        return None
    source = (migration.source_compute, migration.source_node) == here
    target = (migration.dest_compute, migration.dest_node) == here
    if lives_here and not (source and target):
        return None
    arrived = instance.instance_type_id != migration.old_instance_type_id if source and target else source
    side = "old" if arrived else "new"
    flavor = instance.get(f"{side}_flavor") if migration.migration_type == "resize" else instance.flavor
    context = instance.get("migration_context")
    numa = context.get(f"{side}_numa_topology") if context is not None else None
    return _of(instance, flavor, numa, backed) if flavor is not None else None


def _moves(instance: objects.Instance) -> bool:
    if instance.vm_state == VM.RESIZED:
        return True
    if instance.task_state == Task.MIGRATING:
        return instance.vm_state in (VM.ACTIVE, VM.PAUSED)
    return instance.vm_state in (VM.ACTIVE, VM.STOPPED) and instance.task_state in MOVING


def _of(
    instance: objects.Instance,
    flavor: objects.Flavor,
    numa: objects.InstanceNUMATopology | None,
    volume_backed: bool,
) -> Usage:
    root_gb = 0 if volume_backed else flavor.root_gb
    return Usage(
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        local_gb=root_gb + flavor.ephemeral_gb + flavor.swap / 1024,
        project_id=instance.project_id,
        os_type=instance.os_type,
        vm_state=instance.vm_state,
        task_state=instance.task_state,
        numa=numa,
    )


def counts(instance: objects.Instance) -> bool:
    """Whether the instance still takes anything: a deleted or offloaded one does not."""
    if instance.vm_state == VM.SHELVED_OFFLOADED:
        return instance.task_state == Task.SPAWNING
    return instance.vm_state != VM.DELETED


def stats(usages: Iterable[Usage], failed_builds: int) -> dict[str, str]:
    """The `stats` column of a compute node, by which schedulers weigh and filter."""
    counted: collections.Counter[str] = collections.Counter()
    for usage in usages:
        counted["num_instances"] += 1
        counted[f"num_vm_{usage.vm_state}"] += 1
        counted[f"num_task_{usage.task_state}"] += 1
        counted[f"num_os_type_{usage.os_type}"] += 1
        counted[f"num_proj_{usage.project_id}"] += 1
    counted["io_workload"] = sum(counted[f"num_{kind}_{state}"] for kind, state in IO_HEAVY)
    counted["failed_builds"] = failed_builds
    return {name: str(counted[name]) for name in sorted({*counted, *_ALWAYS}) if counted[name] or name in _ALWAYS}


_ALWAYS = ("num_instances", "io_workload", "failed_builds")


def workload(stats: Mapping[str, str]) -> int:
    """Instances with a task."""
    return sum(int(n) for name, n in stats.items() if name.startswith("num_task_") and not name.endswith("None"))
