"""Trusted certs."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class TrustedCerts(WireObject):
    """Certificates with which images of a server are verified."""

    VERSION = "1.0"
    fields: Any = {
        "ids": t.ListOfStrings(),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
