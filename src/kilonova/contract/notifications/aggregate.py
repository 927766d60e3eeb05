"""Notifications of host aggregates."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t


@declare
class AggregatePayload(Payload):
    """An aggregate."""

    VERSION = "1.1"
    fields: Any = {
        "id": t.Integer(nullable=True),
        "uuid": t.UUID(),
        "hosts": t.ListOfStrings(nullable=True),
        "metadata": t.DictOfStrings(nullable=True),
        "name": t.String(),
    }
    SOURCES = taken("aggregate", fields)


@declare
class AggregateNotification(Notification):
    """An aggregate was made, changed or removed, or its images are fetched."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("AggregatePayload"),
    }


@declare
class AggregateCachePayload(Payload):
    """How far the hosts of an aggregate are with fetching images."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "host": t.String(),
        "images_cached": t.ListOfStrings(),
        "images_failed": t.ListOfStrings(),
        "index": t.Integer(),
        "name": t.String(),
        "total": t.Integer(),
    }
    SOURCES = taken("aggregate", fields, but={"host", "images_cached", "images_failed", "index", "total"})


@declare
class AggregateCacheNotification(Notification):
    """One more host has fetched its images."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("AggregateCachePayload"),
    }
