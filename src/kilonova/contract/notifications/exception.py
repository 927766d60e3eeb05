"""Notifications of exceptions."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare
from kilonova.contract.objects import types as t


@declare
class ExceptionPayload(Payload):
    """An exception and where it was raised."""

    VERSION = "1.1"
    fields: Any = {
        "exception": t.String(),
        "exception_message": t.String(),
        "function_name": t.String(),
        "module_name": t.String(),
        "traceback": t.String(),
    }


@declare
class ExceptionNotification(Notification):
    """A call of the API or of a host ended in an exception."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("ExceptionPayload"),
    }
