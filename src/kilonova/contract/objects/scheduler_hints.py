"""Scheduler hints."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class Destination(WireObject):
    """Where a server has to go, or the part of the cloud in which it may be placed."""

    VERSION = "1.4"
    fields: Any = {
        "aggregates": t.ListOfStrings(nullable=True, default=None),
        "allow_cross_cell_move": t.Boolean(default=False),
        "cell": t.Object("CellMapping", nullable=True),
        "forbidden_aggregates": t.SetOfStrings(nullable=True, default=None),
        "host": t.String(),
        "node": t.String(nullable=True),
    }
    REMOVED = {
        "aggregates": "1.1",
        "allow_cross_cell_move": "1.2",
        "cell": "1.0",
        "forbidden_aggregates": "1.3",
    }


@register
class SchedulerLimits(WireObject):
    """How far a chosen host may be used."""

    VERSION = "1.0"
    fields: Any = {
        "disk_gb": t.Integer(nullable=True, default=None),
        "memory_mb": t.Integer(nullable=True, default=None),
        "numa_topology": t.Object("NUMATopologyLimits", nullable=True, default=None),
        "vcpu": t.Integer(nullable=True, default=None),
    }


@register
class SchedulerRetries(WireObject):
    """Hosts that were tried already."""

    VERSION = "1.1"
    fields: Any = {
        "hosts": t.Object("ComputeNodeList"),
        "num_attempts": t.Integer(),
    }
