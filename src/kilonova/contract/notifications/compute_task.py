"""Notifications of work in the conductor that failed."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare
from kilonova.contract.notifications.enums import InstanceState
from kilonova.contract.objects import types as t


@declare
class ComputeTaskPayload(Payload):
    """A server, what was wanted for it and why it failed."""

    VERSION = "1.0"
    fields: Any = {
        "instance_uuid": t.UUID(),
        "reason": t.Object("ExceptionPayload"),
        "request_spec": t.Object("RequestSpecPayload", nullable=True),
        "state": t.Choice(InstanceState, nullable=True),
    }


@declare
class ComputeTaskNotification(Notification):
    """A build, move or rebuild found no place."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("ComputeTaskPayload"),
    }
