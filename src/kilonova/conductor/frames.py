"""Wire objects in and out of flow frames, which are JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.contract.objects.base import WireObject

_MARK = "nova_object.name"


def pack(value: Any) -> Any:
    """A value with wire objects in it as JSON data; sets become lists."""
    if isinstance(value, WireObject):
        return value.obj_to_primitive()
    if isinstance(value, Mapping):
        return {key: pack(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [pack(each) for each in value]
    return value


def unpack(value: Any) -> Any:
    """What :func:`pack` packed, objects made again."""
    if isinstance(value, Mapping):
        if _MARK in value:
            return WireObject.obj_from_primitive(dict(value))
        return {key: unpack(each) for key, each in value.items()}
    if isinstance(value, list):
        return [unpack(each) for each in value]
    return value
