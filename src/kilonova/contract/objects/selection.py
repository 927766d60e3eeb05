"""Selection."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class Selection(WireObject):
    """A host that the scheduler chose, with the allocation it made there."""

    VERSION = "1.1"
    fields: Any = {
        "allocation_request": t.String(nullable=True),
        "allocation_request_version": t.String(nullable=True),
        "availability_zone": t.String(nullable=True),
        "cell_uuid": t.UUID(),
        "compute_node_uuid": t.UUID(),
        "limits": t.Object("SchedulerLimits", nullable=True),
        "nodename": t.String(),
        "service_host": t.String(),
    }
    REMOVED = {
        "availability_zone": "1.0",
    }
