"""Notifications of key pairs."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class KeypairPayload(Payload):
    """A key pair, without its private half."""

    VERSION = "1.0"
    fields: Any = {
        "fingerprint": t.String(nullable=True),
        "name": t.String(),
        "public_key": t.String(nullable=True),
        "type": t.String(),
        "user_id": t.String(nullable=True),
    }
    SOURCES = taken("keypair", fields)


@declare
class KeypairNotification(Notification):
    """A key pair is made, imported or deleted."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("KeypairPayload"),
    }
