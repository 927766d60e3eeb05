"""Notifications of server groups."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class ServerGroupPayload(Payload):
    """A server group."""

    VERSION = "1.1"
    fields: Any = {
        "uuid": t.UUID(),
        "hosts": t.ListOfStrings(nullable=True),
        "members": t.ListOfStrings(nullable=True),
        "name": t.String(nullable=True),
        "policies": t.ListOfStrings(nullable=True),
        "policy": t.String(nullable=True),
        "project_id": t.String(nullable=True),
        "rules": t.DictOfStrings(),
        "user_id": t.String(nullable=True),
    }
    SOURCES = taken("group", fields)


@declare
class ServerGroupNotification(Notification):
    """A server group was made, removed or got a member."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("ServerGroupPayload"),
    }
