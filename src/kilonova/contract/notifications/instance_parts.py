"""Parts of a server in a notification."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class AuditPeriodPayload(Payload):
    """The time that usage is counted over."""

    VERSION = "1.0"
    fields: Any = {
        "audit_period_beginning": t.DateTime(),
        "audit_period_ending": t.DateTime(),
    }


@declare
class BlockDevicePayload(Payload):
    """A volume of a server."""

    VERSION = "1.0"
    fields: Any = {
        "boot_index": t.Integer(nullable=True),
        "delete_on_termination": t.Boolean(default=False),
        "device_name": t.String(nullable=True),
        "tag": t.String(nullable=True),
        "volume_id": t.UUID(),
    }
    SOURCES = taken("bdm", fields)


@declare
class InstanceStateUpdatePayload(Payload):
    """From which states to which a server went."""

    VERSION = "1.0"
    fields: Any = {
        "new_task_state": t.String(nullable=True),
        "old_state": t.String(nullable=True),
        "old_task_state": t.String(nullable=True),
        "state": t.String(nullable=True),
    }


@declare
class IpPayload(Payload):
    """A fixed address of a server and its port."""

    VERSION = "1.0"
    fields: Any = {
        "address": t.IPV4AndV6Address(),
        "device_name": t.String(nullable=True),
        "label": t.String(),
        "mac": t.MACAddress(),
        "meta": t.DictOfStrings(),
        "port_uuid": t.UUID(nullable=True),
        "version": t.Integer(),
    }


@declare
class SharePayload(Payload):
    """A share of a server."""

    VERSION = "1.0"
    fields: Any = {
        "share_id": t.UUID(),
        "share_mapping_uuid": t.UUID(),
        "status": t.String(),
        "tag": t.String(),
    }
    SOURCES = taken("share", fields, share_mapping_uuid="uuid")
