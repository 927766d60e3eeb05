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


def of(instance: objects.Instance, volume_backed: bool) -> Usage:
    """The usage by the instance's flavor; the root disk of a volume-backed one is not on the node."""
    flavor = instance.flavor
    root_gb = 0 if volume_backed else flavor.root_gb
    return Usage(
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        local_gb=root_gb + flavor.ephemeral_gb + flavor.swap / 1024,
        project_id=instance.project_id,
        os_type=instance.os_type,
        vm_state=instance.vm_state,
        task_state=instance.task_state,
        numa=instance.numa_topology if instance.obj_attr_is_set("numa_topology") else None,
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
