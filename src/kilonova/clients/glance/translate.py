"""Images between Glance's v2 form and the form Nova's code and bus use.

Inside, an image has fixed attributes and `properties`; everything Glance does not
define itself is a property.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

BASE = frozenset(
    {
        "id",
        "name",
        "status",
        "visibility",
        "protected",
        "checksum",
        "os_hash_algo",
        "os_hash_value",
        "os_hidden",
        "owner",
        "size",
        "virtual_size",
        "container_format",
        "disk_format",
        "created_at",
        "updated_at",
        "tags",
        "direct_url",
        "min_ram",
        "min_disk",
        "self",
        "file",
        "stores",
        "schema",
        "locations",
    }
)
"""Attributes of Glance's image schema."""

LEFT_OUT = frozenset(
    {"self", "schema", "protected", "virtual_size", "file", "tags", "direct_url", "locations", "stores"}
)
READ_ONLY = frozenset({"status", "created_at", "updated_at", "deleted_at", "deleted", "size", "checksum", "owner"})
DOCUMENTS = ("block_device_mapping", "mappings")
"""Properties that hold JSON."""


def from_glance(image: Mapping[str, Any]) -> dict[str, Any]:
    """An image as the rest of the code reads it; times are naive UTC, `size` is bytes (0 while unknown)."""
    out: dict[str, Any] = {
        "properties": {},
        "deleted": False,
        "deleted_at": None,
        "disk_format": None,
        "container_format": None,
        "name": None,
        "checksum": None,
    }
    for name, value in image.items():
        if name in LEFT_OUT:
            continue
        if name == "visibility":
            out["is_public"] = value == "public"
        elif name in BASE:
            out[name] = value
        else:
            out["properties"][name] = value
    out["size"] = out.get("size") or 0
    for name in ("created_at", "updated_at"):
        if out.get(name):
            out[name] = moment(out[name])
    for name in DOCUMENTS:
        if isinstance(out["properties"].get(name), str):
            out["properties"][name] = _document(out["properties"][name])
    return out


def _document(text: str) -> Any:
    """What the text says in JSON; what its owner wrote otherwise stays a text, for whoever needs it to refuse."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def to_glance(image: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes to send for a new image; what Glance sets itself is left out."""
    out: dict[str, Any] = {}
    for name, value in image.items():
        if name == "is_public":
            out["visibility"] = "public" if value else "private"
        elif name in ("min_ram", "min_disk"):
            out[name] = int(value or 0)
        elif name != "properties" and name not in READ_ONLY:
            out[name] = value
    return out | properties_to_glance(image.get("properties") or {})


def properties_to_glance(properties: Mapping[str, Any]) -> dict[str, str | None]:
    """Properties as the strings Glance stores; an unset kernel or ramdisk is not sent at all."""
    out: dict[str, str | None] = {}
    for name, value in properties.items():
        if name in ("kernel_id", "ramdisk_id") and str(value or "").strip().lower() in ("", "none"):
            continue
        if value is None or isinstance(value, str):
            out[name] = value
        elif name in DOCUMENTS:
            out[name] = json.dumps(value)
        else:
            out[name] = str(value)
    return out


def moment(text: str) -> datetime.datetime:
    """An ISO 8601 time as naive UTC."""
    when = datetime.datetime.fromisoformat(text)
    return when.astimezone(datetime.UTC).replace(tzinfo=None) if when.tzinfo else when
