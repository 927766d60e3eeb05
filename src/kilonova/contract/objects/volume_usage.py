"""Volume usage."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireObject, register


@register
class VolumeUsage(Persistent, WireObject):
    """How much a volume was used."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "availability_zone": t.String(nullable=True),
        "curr_last_refreshed": t.DateTime(nullable=True, read_only=True),
        "curr_read_bytes": t.Integer(),
        "curr_reads": t.Integer(),
        "curr_write_bytes": t.Integer(),
        "curr_writes": t.Integer(),
        "instance_uuid": t.UUID(nullable=True),
        "project_id": t.String(nullable=True),
        "tot_last_refreshed": t.DateTime(nullable=True, read_only=True),
        "tot_read_bytes": t.Integer(read_only=True),
        "tot_reads": t.Integer(read_only=True),
        "tot_write_bytes": t.Integer(read_only=True),
        "tot_writes": t.Integer(read_only=True),
        "user_id": t.String(nullable=True),
        "volume_id": t.UUID(),
    }
    METHODS = {
        "save": "update_totals=False",
    }
