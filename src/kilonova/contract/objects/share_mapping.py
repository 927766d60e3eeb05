"""Share mapping."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Limit, Timestamped, WireList, WireObject, register
from kilonova.contract.objects.enums import ShareMappingProto, ShareMappingStatus


@register
class ShareMapping(Timestamped, WireObject):
    """A shared file system attached to a server."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "uuid": t.UUID(),
        "access_key": t.String(nullable=True),
        "access_to": t.String(nullable=True),
        "access_type": t.String(nullable=True),
        "export_location": t.String(),
        "instance_uuid": t.UUID(),
        "share_id": t.UUID(),
        "share_proto": t.Choice(ShareMappingProto),
        "status": t.Choice(ShareMappingStatus),
        "tag": t.String(),
    }
    LIMITS = {
        "status": {"attaching": Limit("1.0"), "detaching": Limit("1.0")},
    }
    METHODS = {
        "delete": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_instance_uuid_and_share_id": "instance_uuid, share_id",
    }


@register
class ShareMappingList(WireList):
    """A list of ShareMapping objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("ShareMapping"),
    }
    CLASS_METHODS = {
        "get_by_host_for_reconcile": "host",
        "get_by_instance_uuid": "instance_uuid",
        "get_by_share_id": "share_id",
    }
