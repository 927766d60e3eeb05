"""Notifications of volumes in use."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class VolumeUsagePayload(Payload):
    """Reads and writes of a server on a volume."""

    VERSION = "1.0"
    fields: Any = {
        "availability_zone": t.String(nullable=True),
        "instance_uuid": t.UUID(nullable=True),
        "last_refreshed": t.DateTime(nullable=True),
        "project_id": t.String(nullable=True),
        "read_bytes": t.Integer(),
        "reads": t.Integer(),
        "user_id": t.String(nullable=True),
        "volume_id": t.UUID(),
        "write_bytes": t.Integer(),
        "writes": t.Integer(),
    }
    SOURCES = taken("vol_usage", fields)


@declare
class VolumeUsageNotification(Notification):
    """What a server read and wrote on a volume."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("VolumeUsagePayload"),
    }
