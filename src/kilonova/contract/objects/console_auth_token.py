"""Console auth token."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Timestamped, WireObject, register


@register
class ConsoleAuthToken(Timestamped, WireObject):
    """Permission to open a console; only a hash of the token is stored."""

    VERSION = "1.3"
    fields: Any = {
        "id": t.Integer(),
        "access_url_base": t.String(nullable=True),
        "console_type": t.String(),
        "expires": t.Integer(),
        "host": t.String(),
        "instance_uuid": t.UUID(),
        "internal_access_path": t.String(nullable=True),
        "port": t.Integer(),
        "tls_port": t.Integer(nullable=True),
        "token": t.String(),
    }
    REMOVED = {
        "expires": "1.1",
        "tls_port": "1.2",
    }
    METHODS = {
        "authorize": "ttl",
    }
    CLASS_METHODS = {
        "clean_console_auths_for_instance": "instance_uuid",
        "clean_expired_console_auths": "",
        "clean_expired_console_auths_for_host": "host",
        "validate": "token",
    }
