"""The server that a notification is about."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Payload, declare, taken
from kilonova.contract.notifications.enums import DiskConfig, InstanceState, InstanceTaskState
from kilonova.contract.objects import types as t
from kilonova.contract.objects.enums import InstancePowerState


@declare
class InstancePayload(Payload):
    """A server: owner, state, place, flavor, addresses, volumes."""

    VERSION = "1.9"
    fields: Any = {
        "uuid": t.UUID(),
        "action_initiator_project": t.String(nullable=True),
        "action_initiator_user": t.String(nullable=True),
        "architecture": t.String(nullable=True),
        "auto_disk_config": t.Choice(DiskConfig),
        "availability_zone": t.String(nullable=True),
        "block_devices": t.Objects("BlockDevicePayload", nullable=True),
        "created_at": t.DateTime(nullable=True),
        "deleted_at": t.DateTime(nullable=True),
        "display_description": t.String(nullable=True),
        "display_name": t.String(nullable=True),
        "flavor": t.Object("FlavorPayload"),
        "host": t.String(nullable=True),
        "host_name": t.String(nullable=True),
        "image_uuid": t.String(nullable=True),
        "ip_addresses": t.Objects("IpPayload"),
        "kernel_id": t.String(nullable=True),
        "key_name": t.String(nullable=True),
        "launched_at": t.DateTime(nullable=True),
        "locked": t.Boolean(),
        "locked_reason": t.String(nullable=True),
        "metadata": t.DictOfStrings(),
        "node": t.String(nullable=True),
        "os_type": t.String(nullable=True),
        "power_state": t.Choice(InstancePowerState, nullable=True),
        "progress": t.Integer(nullable=True),
        "ramdisk_id": t.String(nullable=True),
        "request_id": t.String(nullable=True),
        "reservation_id": t.String(nullable=True),
        "shares": t.Objects("SharePayload", nullable=True),
        "state": t.Choice(InstanceState, nullable=True),
        "task_state": t.Choice(InstanceTaskState, nullable=True),
        "tenant_id": t.String(nullable=True),
        "terminated_at": t.DateTime(nullable=True),
        "updated_at": t.DateTime(nullable=True),
        "user_id": t.String(nullable=True),
    }
    SOURCES = taken(
        "instance",
        fields,
        but={
            "action_initiator_project",
            "action_initiator_user",
            "block_devices",
            "flavor",
            "ip_addresses",
            "locked_reason",
            "request_id",
            "shares",
        },
        host_name="hostname",
        image_uuid="image_ref",
        state="vm_state",
        tenant_id="project_id",
    )


@declare
class InstanceActionPayload(InstancePayload):
    """A server that something is done to, and what went wrong."""

    VERSION = "1.9"
    fields: Any = {
        "fault": t.Object("ExceptionPayload", nullable=True),
    }
