"""Ec2."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireObject, register


@register
class EC2Ids(WireObject):
    """Identifiers of a server in the EC2 style of the metadata service."""

    VERSION = "1.0"
    fields: Any = {
        "ami_id": t.String(nullable=True, read_only=True),
        "instance_id": t.String(read_only=True),
        "kernel_id": t.String(nullable=True, read_only=True),
        "ramdisk_id": t.String(nullable=True, read_only=True),
    }
    CLASS_METHODS = {
        "get_by_instance": "instance",
    }


@register
class EC2InstanceMapping(Persistent, WireObject):
    """The number behind an EC2 style server id."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
    }
    METHODS = {
        "create": "",
    }
    CLASS_METHODS = {
        "get_by_id": "ec2_id",
        "get_by_uuid": "instance_uuid",
    }


@register
class S3ImageMapping(Persistent, WireObject):
    """The number behind an EC2 style image id."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "uuid": t.UUID(),
    }
    METHODS = {
        "create": "",
    }
    CLASS_METHODS = {
        "get_by_id": "s3_id",
        "get_by_uuid": "s3_image_uuid",
    }
