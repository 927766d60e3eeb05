"""Image meta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register
from kilonova.contract.objects.image_form import image_values


@register
class ImageMeta(WireObject):
    """An image as the image service describes it."""

    VERSION = "1.8"
    fields: Any = {
        "id": t.UUID(),
        "checksum": t.String(),
        "container_format": t.String(),
        "created_at": t.DateTime(nullable=True),
        "direct_url": t.String(),
        "disk_format": t.String(),
        "min_disk": t.Integer(),
        "min_ram": t.Integer(),
        "name": t.String(),
        "owner": t.String(),
        "properties": t.Object("ImageMetaProps"),
        "protected": t.FlexibleBoolean(),
        "size": t.Integer(),
        "status": t.String(),
        "tags": t.ListOfStrings(),
        "updated_at": t.DateTime(nullable=True),
        "virtual_size": t.Integer(),
        "visibility": t.String(),
    }

    @classmethod
    def from_dict(cls, image: Mapping[str, Any] | None) -> ImageMeta:
        """From an image's plain form; unknown keys are passed over."""
        from kilonova.contract.objects.image_meta_props import ImageMetaProps

        image = image or {}
        properties = ImageMetaProps.from_dict(image.get("properties") or {})
        return cls(**image_values(image, cls.fields), properties=properties)
