"""Keypair."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register


@register
class KeyPair(Persistent, WireObject, DictCompat):
    """A public key of a user."""

    VERSION = "1.4"
    fields: Any = {
        "id": t.Integer(),
        "fingerprint": t.String(nullable=True),
        "name": t.String(),
        "public_key": t.String(nullable=True),
        "type": t.String(),
        "user_id": t.String(nullable=True),
    }
    REMOVED = {
        "type": "1.1",
    }
    METHODS = {
        "create": "",
        "destroy": "",
    }
    CLASS_METHODS = {
        "destroy_by_name": "user_id, name",
        "get_by_name": "user_id, name, localonly=False",
    }


@register
class KeyPairList(WireList):
    """A list of KeyPair objects."""

    VERSION = "1.3"
    fields: Any = {
        "objects": t.Objects("KeyPair"),
    }
    CLASS_METHODS = {
        "get_by_user": "user_id, limit=None, marker=None",
        "get_count_by_user": "user_id",
    }
