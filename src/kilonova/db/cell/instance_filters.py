"""Filters of the instance list as SQL conditions.

Names and meaning are those of the compute API's internal filters: columns matched exactly or (any other column) as a
regular expression, `tags`, `tags-any`, `not-tags`, `not-tags-any`, `metadata`, `system_metadata`, `changes-since`,
`changes-before`, `deleted`, `soft_deleted`, `cleaned`, `hidden`. `ip`, `ip6` are matched on the addresses of the info
cache by instances.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db import exact, patterns, query
from kilonova.db.cell.tables import INSTANCE_METADATA, INSTANCE_SYSTEM_METADATA, INSTANCES, TAGS
from kilonova.db.outcomes import InvalidFilterError

Condition = sa.ColumnElement[bool]
_C = INSTANCES.c

SOFT_DELETED = "soft-delete"

EXACT = frozenset(
    {
        "compute_id",
        "host",
        "id",
        "image_ref",
        "instance_type_id",
        "locked",
        "project_id",
        "reservation_id",
        "task_state",
        "user_id",
        "uuid",
        "vm_state",
    }
)
"""Columns compared for equality; a collection of values means any of them (None is a value)."""

ADDRESSES = {"ip": 4, "ip6": 6}
"""Filters on addresses, with their IP version."""


def conditions(filters: Mapping[str, Any], dialect: str) -> list[Condition]:
    """All filters as conditions to be joined by AND. Raises InvalidFilterError."""
    found: list[Condition] = [*_deletion(filters), _hidden(bool(filters.get("hidden", False)))]
    for name, value in filters.items():
        if name in ("deleted", "soft_deleted", "hidden", *ADDRESSES):
            continue
        special = _SPECIAL.get(name)
        if special is not None:
            found.extend(special(value, dialect))
        else:
            found.append(_on_column(name, value, dialect))
    return found


def any_of(column: sa.ColumnElement[Any], value: Any) -> Condition:
    """Equality with a value, or with any of a collection of values; None matches NULL."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        return column.is_(None) if value is None else column == value
    present = [one for one in value if one is not None]
    inside = column.in_(present)
    return sa.or_(inside, column.is_(None)) if len(present) < len(value) else inside


def is_pattern(name: str) -> bool:
    """Whether the filter is matched as a regular expression."""
    return name not in _SPECIAL and name not in EXACT and name not in ("deleted", "soft_deleted", "hidden")


def _on_column(name: str, value: Any, dialect: str) -> Condition:
    column = _C.get(name)
    if column is None:
        raise InvalidFilterError(f"{name}: unknown filter")
    if name in EXACT:
        return any_of(column, value)
    pattern = patterns.checked(name, value)
    # Not every engine takes a pattern of nothing, which everything matches.
    if not pattern:
        return column.is_not(None)
    return _text(column, dialect).regexp_match(patterns.of_dialect(pattern, dialect))


def _text(column: sa.Column[Any], dialect: str) -> sa.ColumnElement[str]:
    if dialect == "postgresql" and column.name in ("access_ip_v4", "access_ip_v6"):
        return sa.func.host(column)
    plain = isinstance(column.type, sa.String) and not isinstance(column.type, sa.Enum)
    return column if plain else sa.cast(column, sa.String(255))


def _deletion(filters: Mapping[str, Any]) -> list[Condition]:
    if "deleted" not in filters:
        return []
    soft = _C.vm_state == SOFT_DELETED
    if filters["deleted"]:
        gone = _C.deleted == _C.id
        return [sa.or_(gone, soft) if filters.get("soft_deleted", True) else gone]
    alive = [_C.deleted == 0]
    if not filters.get("soft_deleted", False):
        alive.append(sa.or_(_C.vm_state != SOFT_DELETED, _C.vm_state.is_(None)))
    return alive


def _hidden(hidden: bool) -> Condition:
    return _C.hidden.is_(True) if hidden else shown()


def shown() -> Condition:
    """That the record is the one by which its server is known."""
    return sa.or_(_C.hidden.is_(False), _C.hidden.is_(None))


def _tagged(dialect: str, tags: Collection[str]) -> Condition:
    """That the server has any of the tags."""
    return sa.exists().where(TAGS.c.resource_id == _C.uuid, exact.among(dialect, TAGS.c.tag, tags))


def _tagged_all(dialect: str, tags: Iterable[str]) -> list[Condition]:
    return [_tagged(dialect, [tag]) for tag in tags]


def _pairs(dialect: str, table: sa.Table, value: Any) -> list[Condition]:
    wanted = value if isinstance(value, list) else [value]
    return [
        sa.exists().where(
            table.c.instance_uuid == _C.uuid,
            table.c.deleted == 0,
            exact.equal(dialect, table.c.key, key),
            any_of(table.c.value, content),
        )
        for pairs in wanted
        for key, content in pairs.items()
    ]


_SPECIAL: dict[str, Callable[[Any, str], list[Condition]]] = {
    "changes-since": lambda when, dialect: [query.changed_since(INSTANCES, when)],
    "changes-before": lambda when, dialect: [query.changed_before(INSTANCES, when)],
    "cleaned": lambda cleaned, dialect: [_C.cleaned == (1 if cleaned else 0)],
    "tags": lambda tags, dialect: _tagged_all(dialect, tags),
    "tags-any": lambda tags, dialect: [_tagged(dialect, tags)],
    "not-tags": lambda tags, dialect: [sa.not_(sa.and_(*_tagged_all(dialect, tags)))],
    "not-tags-any": lambda tags, dialect: [sa.not_(_tagged(dialect, tags))],
    "metadata": lambda value, dialect: _pairs(dialect, INSTANCE_METADATA, value),
    "system_metadata": lambda value, dialect: _pairs(dialect, INSTANCE_SYSTEM_METADATA, value),
}
