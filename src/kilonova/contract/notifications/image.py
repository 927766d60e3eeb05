"""Images in notifications."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Payload, declare, taken
from kilonova.contract.objects import types as t
from kilonova.contract.objects.image_meta_props import ImageMetaProps


@declare
class ImageMetaPayload(Payload):
    """An image."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.UUID(nullable=True),
        "checksum": t.String(nullable=True),
        "container_format": t.String(nullable=True),
        "created_at": t.DateTime(nullable=True),
        "direct_url": t.String(nullable=True),
        "disk_format": t.String(nullable=True),
        "min_disk": t.Integer(nullable=True),
        "min_ram": t.Integer(nullable=True),
        "name": t.String(nullable=True),
        "owner": t.String(nullable=True),
        "properties": t.Object("ImageMetaPropsPayload"),
        "protected": t.FlexibleBoolean(nullable=True),
        "size": t.Integer(nullable=True),
        "status": t.String(nullable=True),
        "tags": t.ListOfStrings(nullable=True),
        "updated_at": t.DateTime(nullable=True),
        "virtual_size": t.Integer(nullable=True),
        "visibility": t.String(nullable=True),
    }
    SOURCES = taken("image_meta", fields, but={"properties"})


SECRET = {"hw_ephemeral_encryption_secret_uuid"}
"""Properties that are told to nobody."""


@declare
class ImageMetaPropsPayload(Payload):
    """The properties of an image."""

    VERSION = "1.20"
    fields: Any = {name: kind for name, kind in ImageMetaProps.fields.items() if name not in SECRET}
    SOURCES = taken("image_meta_props", fields)
