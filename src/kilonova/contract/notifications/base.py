"""What all notifications share: an event type, a publisher, a priority and a payload.

Notifications are said, never heard: their objects are in no registry and have no remote methods.
Source: Nova's versioned notifications.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from oslo_versionedobjects import base as ovo

from kilonova.contract.notifications.enums import (
    NotificationAction,
    NotificationPhase,
    NotificationPriority,
    NotificationSource,
)
from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject

C = TypeVar("C", bound="type[WireObject]")


def declare(cls: C) -> C:
    """Make the fields of a class properties."""
    ovo.VersionedObjectRegistry.register_if(False)(cls)
    return cls


@declare
class EventType(WireObject):
    """`object.action.phase`: what happened."""

    VERSION = "1.22"
    fields: Any = {
        "action": t.Choice(NotificationAction),
        "object": t.String(),
        "phase": t.Choice(NotificationPhase, nullable=True),
    }

    def __str__(self) -> str:
        return ".".join(part for part in (self.object, self.action, self.get("phase")) if part)


@declare
class NotificationPublisher(WireObject):
    """The service that says it, and its host."""

    VERSION = "2.2"
    fields: Any = {
        "host": t.String(),
        "source": t.Choice(NotificationSource),
    }


class Payload(WireObject):
    """What a notification is about; `SOURCES`: field -> (object that it is made of, field of that object)."""

    SOURCES: ClassVar[Mapping[str, tuple[str, str]]] = {}


def taken(
    source: str, fields: Iterable[str], but: Collection[str] = (), **renamed: str
) -> Mapping[str, tuple[str, str]]:
    """Fields that are an object's own, `but` those that are worked out; `renamed` have another name there."""
    return {name: (source, renamed.get(name, name)) for name in fields if name not in but}


class Notification(WireObject):
    """A payload under its event type; each kind of notification adds `payload`."""

    fields: Any = {
        "event_type": t.Object("EventType"),
        "priority": t.Choice(NotificationPriority),
        "publisher": t.Object("NotificationPublisher"),
    }
