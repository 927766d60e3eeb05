"""Notifications of services."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class ServiceStatusPayload(Payload):
    """A service and whether it is up."""

    VERSION = "1.1"
    fields: Any = {
        "uuid": t.UUID(),
        "availability_zone": t.String(nullable=True),
        "binary": t.String(nullable=True),
        "disabled": t.Boolean(),
        "disabled_reason": t.String(nullable=True),
        "forced_down": t.Boolean(),
        "host": t.String(nullable=True),
        "last_seen_up": t.DateTime(nullable=True),
        "report_count": t.Integer(),
        "topic": t.String(nullable=True),
        "version": t.Integer(),
    }
    SOURCES = taken("service", fields)


@declare
class ServiceStatusNotification(Notification):
    """A service registered, changed or was removed."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("ServiceStatusPayload"),
    }
