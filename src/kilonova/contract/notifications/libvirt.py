"""Notifications of the link to libvirt."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare
from kilonova.contract.objects import types as t


@declare
class LibvirtErrorPayload(Payload):
    """A host and why it has no link to libvirt."""

    VERSION = "1.0"
    fields: Any = {
        "ip": t.String(),
        "reason": t.Object("ExceptionPayload"),
    }


@declare
class LibvirtErrorNotification(Notification):
    """The link to libvirt could not be made."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("LibvirtErrorPayload"),
    }
