"""The record of an instance with text that every database holds, for when the database has refused the one asked for.

Peers' services accept text that MySQL's tables do not hold. Such a server ends in ERROR, and that record has to be
written: with a mark in the place of what cannot be stored, and without the tags that MySQL does not tell apart.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import objects
from kilonova.db import exact
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING, INSTANCES
from kilonova.db.query import storable

_KEY_LENGTH = 255
_TAG_LENGTH = 60


def instance(asked: objects.Instance) -> objects.Instance:
    """A copy that fits."""
    made = copy.deepcopy(asked)
    _fit_columns(made, INSTANCES)
    for name in ("metadata", "system_metadata"):
        if made.obj_attr_is_set(name):
            setattr(made, name, _pairs(getattr(made, name) or {}))
    return made


def devices(asked: objects.BlockDeviceMappingList | None) -> objects.BlockDeviceMappingList | None:
    """Copies that fit."""
    made = copy.deepcopy(asked)
    for device in made.objects if made is not None else ():
        _fit_columns(device, BLOCK_DEVICE_MAPPING)
    return made


def tags(asked: objects.TagList | None) -> objects.TagList | None:
    """Those that fit, and of those that MySQL does not tell apart the first."""
    if asked is None:
        return None
    kept = {exact.fold(name): name for name in _texts([tag.tag for tag in asked.objects][::-1], _TAG_LENGTH)}
    return objects.TagList(objects=[objects.Tag(tag=name) for name in kept.values()])


def _fit_columns(made: Any, table: sa.Table) -> None:
    for column in table.columns:
        value = (
            made.get(column.name) if column.name in type(made).fields and made.obj_attr_is_set(column.name) else None
        )
        if isinstance(column.type, sa.String) and isinstance(value, str):
            setattr(made, column.name, storable(value, column.type.length))


def _pairs(given: dict[str, str | None]) -> dict[str, str | None]:
    return {storable(key, _KEY_LENGTH): value and storable(value, _KEY_LENGTH) for key, value in given.items()}


def _texts(given: Iterable[str], length: int) -> list[str]:
    return [storable(text, length) for text in given]
