"""Notifications of flavors."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class FlavorPayload(Payload):
    """A flavor."""

    VERSION = "1.4"
    fields: Any = {
        "description": t.String(nullable=True),
        "disabled": t.Boolean(),
        "ephemeral_gb": t.Integer(nullable=True),
        "extra_specs": t.DictOfStrings(nullable=True),
        "flavorid": t.String(nullable=True),
        "is_public": t.Boolean(),
        "memory_mb": t.Integer(nullable=True),
        "name": t.String(),
        "projects": t.ListOfStrings(nullable=True),
        "root_gb": t.Integer(nullable=True),
        "rxtx_factor": t.Float(nullable=True),
        "swap": t.Integer(),
        "vcpu_weight": t.Integer(nullable=True),
        "vcpus": t.Integer(nullable=True),
    }
    SOURCES = taken("flavor", fields)


@declare
class FlavorNotification(Notification):
    """A flavor was made, changed or removed."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("FlavorPayload"),
    }
