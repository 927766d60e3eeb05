"""Flavors. Rows carry `extra_specs` as a dict. The id that users see is `flavorid`."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.db import exact, query, sorting
from kilonova.db.api.tables import FLAVOR_EXTRA_SPECS, FLAVOR_PROJECTS, FLAVORS
from kilonova.db.engine import Tx
from kilonova.db.outcomes import MarkerNotFoundError
from kilonova.db.query import Row
from kilonova.db.sorting import Sort

_C = FLAVORS.c


def flavor_get(tx: Tx, flavorid: str, *, project_id: str | None = None) -> Row | None:
    """A flavor by the id that users see. With `project_id` only if it is public or the project has access."""
    return _one(tx, _is(tx, flavorid), *_visible(project_id))


def flavor_list(
    tx: Tx,
    *,
    is_public: bool | None = None,
    project_id: str | None = None,
    disabled: bool | None = None,
    min_memory_mb: int | None = None,
    min_root_gb: int | None = None,
    name: str | None = None,
    sort: Sort = (("flavorid", "asc"),),
    limit: int | None = None,
    marker: str | None = None,
    marker_seen_by: str | None = None,
) -> list[Row]:
    """A page of flavors; equal ones are in the order of their ids, in the direction of the last sort key.

    `is_public=True` with a project includes those the project has access to. `marker` is the flavorid of a flavor that
    the project `marker_seen_by` may see.
    Raises MarkerNotFoundError, InvalidSortKeyError.
    """
    conditions = [
        (is_public, lambda value: _public(value, project_id)),
        (disabled, lambda value: _C.disabled == value),
        (min_memory_mb, lambda value: _C.memory_mb >= value),
        (min_root_gb, lambda value: _C.root_gb >= value),
        (name, lambda value: _C.name == value),
    ]
    order = [*sort, *([("id", sort[-1][1])] if all(key != "id" for key, _ in sort) else [])]
    statement = sa.select(FLAVORS).where(*(make(value) for value, make in conditions if value is not None))
    statement = statement.order_by(*sorting.ordered(tx, FLAVORS, order)).limit(limit)
    if marker is not None:
        last = query.row(tx, sa.select(FLAVORS).where(_is(tx, marker), *_visible(marker_seen_by)))
        if last is None:
            raise MarkerNotFoundError(marker)
        statement = statement.where(sorting.after(tx, FLAVORS, order, last))
    return _with_specs(tx, query.rows(tx, statement))


def flavor_create(
    tx: Tx, values: Mapping[str, Any], extra_specs: Mapping[str, str] | None = None, projects: Iterable[str] = ()
) -> Row:
    """A new flavor. Raises DuplicateError when its name or flavorid is taken."""
    for column in (_C.name, _C.flavorid):
        query.untaken(tx, column, values[column.name])
    created = query.insert(tx, FLAVORS, values)
    flavor_specs_set(tx, created["id"], extra_specs or {})
    flavor_access_add(tx, created["id"], projects)
    return {**created, "extra_specs": dict(extra_specs or {})}


def flavor_update(tx: Tx, flavorid: str, values: Mapping[str, Any]) -> bool:
    """Whether there is such a flavor."""
    return tx.execute(FLAVORS.update().where(_is(tx, flavorid)).values(**values)).rowcount > 0


def flavor_delete(tx: Tx, flavorid: str) -> bool:
    """Whether there was such a flavor."""
    number = tx.execute(sa.select(_C.id).where(_is(tx, flavorid))).scalar()
    if number is None:
        return False
    for table in (FLAVOR_PROJECTS, FLAVOR_EXTRA_SPECS):
        tx.execute(table.delete().where(table.c.flavor_id == number))
    return tx.execute(FLAVORS.delete().where(_C.id == number)).rowcount > 0


def flavor_specs_set(tx: Tx, id: int, specs: Mapping[str, str]) -> None:
    """Write these extra specs, leaving others as they are."""
    table = FLAVOR_EXTRA_SPECS
    if not specs:
        return
    mine = table.c.flavor_id == id
    known = query.values(tx, sa.select(table.c.key).where(mine))
    query.no_clash(table, specs, known)
    present = specs.keys() & set(known)
    for key in present:
        tx.execute(table.update().where(mine, exact.equal(tx.dialect.name, table.c.key, key)).values(value=specs[key]))
    query.insert_many(
        tx, table, [{"flavor_id": id, "key": k, "value": v} for k, v in specs.items() if k not in present]
    )


def flavor_spec_delete(tx: Tx, id: int, key: str) -> bool:
    """Whether the flavor had the extra spec."""
    table = FLAVOR_EXTRA_SPECS
    named = exact.equal(tx.dialect.name, table.c.key, key)
    return tx.execute(table.delete().where(table.c.flavor_id == id, named)).rowcount > 0


def flavor_access_list(tx: Tx, id: int) -> list[str]:
    """The projects with access to a flavor that is not public."""
    table = FLAVOR_PROJECTS
    return query.values(tx, sa.select(table.c.project_id).where(table.c.flavor_id == id).order_by(table.c.id))


def flavor_access_add(tx: Tx, id: int, projects: Iterable[str]) -> None:
    """Give projects access. Raises DuplicateError when one has it."""
    query.insert_many(tx, FLAVOR_PROJECTS, [{"flavor_id": id, "project_id": p} for p in dict.fromkeys(projects)])


def flavor_access_remove(tx: Tx, id: int, project_id: str) -> bool:
    """Whether the project had access."""
    table = FLAVOR_PROJECTS
    return tx.execute(table.delete().where(table.c.flavor_id == id, table.c.project_id == project_id)).rowcount > 0


def _is(tx: Tx, flavorid: str) -> exact.Condition:
    return exact.equal(tx.dialect.name, _C.flavorid, flavorid)


def _one(tx: Tx, *where: sa.ColumnElement[bool]) -> Row | None:
    found = query.row(tx, sa.select(FLAVORS).where(*where))
    return None if found is None else _with_specs(tx, [found])[0]


def _with_specs(tx: Tx, flavors: Sequence[Row]) -> list[Row]:
    table = FLAVOR_EXTRA_SPECS
    specs: dict[int, dict[str, str]] = collections.defaultdict(dict)
    if flavors:
        numbers = [flavor["id"] for flavor in flavors]
        statement = sa.select(table.c.flavor_id, table.c.key, table.c.value).where(table.c.flavor_id.in_(numbers))
        for number, key, value in tx.execute(statement):
            specs[number][key] = value
    return [{**flavor, "extra_specs": specs[flavor["id"]]} for flavor in flavors]


def _public(is_public: bool, project_id: str | None) -> sa.ColumnElement[bool]:
    wanted = _C.is_public.is_(is_public)
    return sa.or_(wanted, _accessible(project_id)) if is_public and project_id is not None else wanted


def _visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    return [] if project_id is None else [sa.or_(_C.is_public.is_(True), _accessible(project_id))]


def _accessible(project_id: str) -> sa.ColumnElement[bool]:
    table = FLAVOR_PROJECTS
    return sa.exists().where(table.c.flavor_id == _C.id, table.c.project_id == project_id)
