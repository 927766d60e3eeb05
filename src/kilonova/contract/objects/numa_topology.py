"""Numa topology."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class NUMACell(WireObject):
    """One NUMA node of a host."""

    VERSION = "1.5"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "cpu_usage": t.Integer(default=0),
        "cpuset": t.SetOfIntegers(),
        "memory": t.Integer(),
        "memory_usage": t.Integer(default=0),
        "mempages": t.Objects("NUMAPagesTopology"),
        "network_metadata": t.Object("NetworkMetadata"),
        "pcpuset": t.SetOfIntegers(),
        "pinned_cpus": t.SetOfIntegers(),
        "siblings": t.ListOfSetsOfIntegers(),
        "socket": t.Integer(nullable=True),
    }
    REMOVED = {
        "network_metadata": "1.2",
        "pcpuset": "1.3",
        "socket": "1.4",
    }


@register
class NUMAPagesTopology(WireObject):
    """Memory pages of one size in a NUMA node."""

    VERSION = "1.1"
    fields: Any = {
        "reserved": t.Integer(default=0),
        "size_kb": t.Integer(),
        "total": t.Integer(),
        "used": t.Integer(default=0),
    }
    REMOVED = {
        "reserved": "1.0",
    }


@register
class NUMATopology(WireObject):
    """The NUMA nodes of a host."""

    VERSION = "1.2"
    fields: Any = {
        "cells": t.Objects("NUMACell"),
    }


@register
class NUMATopologyLimits(WireObject):
    """How far a host may be overcommitted, and networks that bind to NUMA nodes."""

    VERSION = "1.1"
    fields: Any = {
        "cpu_allocation_ratio": t.Float(),
        "network_metadata": t.Object("NetworkMetadata"),
        "ram_allocation_ratio": t.Float(),
    }
    REMOVED = {
        "network_metadata": "1.0",
    }
