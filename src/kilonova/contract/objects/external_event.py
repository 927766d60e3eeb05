"""External event."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class InstanceExternalEvent(WireObject):
    """What another service says about a server: a port was plugged, a volume was extended."""

    VERSION = "1.5"
    fields: Any = {
        "data": t.DictOfStrings(),
        "instance_uuid": t.UUID(),
        "name": t.Enum(
            [
                "network-changed",
                "network-vif-plugged",
                "network-vif-unplugged",
                "network-vif-deleted",
                "volume-extended",
                "power-update",
                "accelerator-request-bound",
                "volume-reimaged",
            ]
        ),
        "status": t.Enum(["failed", "completed", "in-progress"]),
        "tag": t.String(nullable=True),
    }
