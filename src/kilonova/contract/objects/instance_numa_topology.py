"""Instance numa topology."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Ephemeral, Limit, WireObject, register, version_tuple
from kilonova.contract.objects.enums import CPUAllocationPolicy, CPUEmulatorThreadsPolicy, CPUThreadAllocationPolicy


@register
class InstanceNUMACell(Ephemeral, DictCompat):
    """One NUMA node of a guest."""

    VERSION = "1.6"
    fields: Any = {
        "id": t.Integer(),
        "cpu_pinning_raw": t.DictOfIntegers(nullable=True, default=None),
        "cpu_policy": t.Choice(CPUAllocationPolicy, nullable=True, default=None),
        "cpu_thread_policy": t.Choice(CPUThreadAllocationPolicy, nullable=True, default=None),
        "cpu_topology": t.Object("VirtCPUTopology", nullable=True),
        "cpuset": t.SetOfIntegers(),
        "cpuset_reserved": t.SetOfIntegers(nullable=True, default=None),
        "memory": t.Integer(),
        "pagesize": t.Integer(nullable=True, default=None),
        "pcpuset": t.SetOfIntegers(),
    }
    REMOVED = {
        "cpu_policy": "1.2",
        "cpu_thread_policy": "1.2",
        "cpuset_reserved": "1.3",
        "pcpuset": "1.4",
    }
    LIMITS = {
        "cpu_policy": {"mixed": Limit("1.5")},
    }

    def obj_make_compatible(self, primitive: dict[str, Any], target_version: str) -> None:
        """As every object; receivers up to 1.4 look for pinned CPUs in `cpuset`."""
        pinned = primitive.get("cpu_policy") == CPUAllocationPolicy.DEDICATED
        if version_tuple(target_version) < (1, 5) and pinned and "pcpuset" in primitive:
            primitive["cpuset"] = primitive["pcpuset"]
        super().obj_make_compatible(primitive, target_version)


@register
class InstanceNUMATopology(WireObject, DictCompat):
    """The NUMA nodes of a guest and how they are fixed to the host."""

    VERSION = "1.3"
    fields: Any = {
        "id": t.Integer(),
        "cells": t.Objects("InstanceNUMACell"),
        "emulator_threads_policy": t.Choice(CPUEmulatorThreadsPolicy, nullable=True),
        "instance_uuid": t.UUID(),
    }
    REMOVED = {
        "emulator_threads_policy": "1.2",
    }
    METHODS = {
        "create": "",
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
