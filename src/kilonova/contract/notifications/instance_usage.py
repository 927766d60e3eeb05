"""Notifications of what a server is and was, for those who count."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, declare
from kilonova.contract.notifications.instance import InstancePayload
from kilonova.contract.objects import types as t


@declare
class InstanceExistsPayload(InstancePayload):
    """A server in a time of audit."""

    VERSION = "2.1"
    fields: Any = {
        "audit_period": t.Object("AuditPeriodPayload"),
    }


@declare
class InstanceExistsNotification(Notification):
    """A server existed in the time of audit."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceExistsPayload"),
    }


@declare
class InstanceUpdatePayload(InstancePayload):
    """A server whose record changed, and what it was before."""

    VERSION = "2.1"
    fields: Any = {
        "audit_period": t.Object("AuditPeriodPayload"),
        "old_display_name": t.String(nullable=True),
        "state_update": t.Object("InstanceStateUpdatePayload"),
        "tags": t.ListOfStrings(),
    }


@declare
class InstanceUpdateNotification(Notification):
    """The record of a server changed."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("InstanceUpdatePayload"),
    }
