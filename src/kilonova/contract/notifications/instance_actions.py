"""Notifications of what is done to a server."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, declare
from kilonova.contract.notifications.instance import InstanceActionPayload
from kilonova.contract.objects import types as t


@declare
class InstanceActionNotification(Notification):
    """An action on a server began, ended or failed."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionPayload"),
    }


@declare
class InstanceActionRebuildPayload(InstanceActionPayload):
    """A server that is rebuilt."""

    VERSION = "1.10"
    fields: Any = {
        "trusted_image_certificates": t.ListOfStrings(nullable=True),
    }


@declare
class InstanceActionRebuildNotification(Notification):
    """A rebuild was placed, began, ended or failed."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionRebuildPayload"),
    }


@declare
class InstanceActionRescuePayload(InstanceActionPayload):
    """A server that is rescued, and the image used."""

    VERSION = "1.4"
    fields: Any = {
        "rescue_image_ref": t.UUID(nullable=True),
    }


@declare
class InstanceActionRescueNotification(Notification):
    """A rescue began or ended."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionRescuePayload"),
    }


@declare
class InstanceActionResizePrepPayload(InstanceActionPayload):
    """A server and the flavor that it is to have."""

    VERSION = "1.4"
    fields: Any = {
        "new_flavor": t.Object("FlavorPayload", nullable=True),
    }


@declare
class InstanceActionResizePrepNotification(Notification):
    """The destination of a resize began or ended its preparation."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionResizePrepPayload"),
    }


@declare
class InstanceActionSharePayload(InstanceActionPayload):
    """A server and the share."""

    VERSION = "1.0"
    fields: Any = {
        "share_id": t.UUID(),
    }


@declare
class InstanceActionShareNotification(Notification):
    """A share is attached or detached."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionSharePayload"),
    }


@declare
class InstanceActionSnapshotPayload(InstanceActionPayload):
    """A server and the image made of it."""

    VERSION = "1.10"
    fields: Any = {
        "snapshot_image_id": t.UUID(),
    }


@declare
class InstanceActionSnapshotNotification(Notification):
    """A snapshot began or ended."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionSnapshotPayload"),
    }


@declare
class InstanceActionVolumePayload(InstanceActionPayload):
    """A server and the volume."""

    VERSION = "1.7"
    fields: Any = {
        "volume_id": t.UUID(),
    }


@declare
class InstanceActionVolumeNotification(Notification):
    """A volume is attached or detached."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionVolumePayload"),
    }


@declare
class InstanceActionVolumeSwapPayload(InstanceActionPayload):
    """A server, the volume that goes and the one that comes."""

    VERSION = "1.9"
    fields: Any = {
        "new_volume_id": t.UUID(),
        "old_volume_id": t.UUID(),
    }


@declare
class InstanceActionVolumeSwapNotification(Notification):
    """A volume is exchanged for another."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceActionVolumeSwapPayload"),
    }


@declare
class InstanceCreatePayload(InstanceActionPayload):
    """A server that is built, with its keys and tags."""

    VERSION = "1.13"
    fields: Any = {
        "instance_name": t.String(nullable=True),
        "keypairs": t.Objects("KeypairPayload"),
        "tags": t.ListOfStrings(),
        "trusted_image_certificates": t.ListOfStrings(nullable=True),
    }


@declare
class InstanceCreateNotification(Notification):
    """A build on a host began, ended or failed."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceCreatePayload"),
    }
