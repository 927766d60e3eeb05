"""Flavors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api import flavors
from kilonova.db.api.tables import FLAVOR_EXTRA_SPECS, FLAVOR_PROJECTS, FLAVORS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import InvalidSortKeyError, MarkerNotFoundError

FILTERS = ("disabled", "is_public", "min_memory_mb", "min_root_gb", "project_id")


def from_row(row: Row, extra_specs: dict[str, str], projects: list[str] | None = None) -> objects.Flavor:
    values = dict(row)
    values |= {"disabled": bool(row["disabled"]), "is_public": row["is_public"] is not False, "deleted": False}
    values |= {"swap": row["swap"] or 0, "root_gb": row["root_gb"] or 0, "ephemeral_gb": row["ephemeral_gb"] or 0}
    values |= {"vcpu_weight": row["vcpu_weight"] or 0, "deleted_at": None, "extra_specs": extra_specs}
    if projects is not None:
        values["projects"] = projects
    return hydrate.fill(objects.Flavor(), values)


def load_many(tx: sa.Connection, rows: list[Row]) -> list[objects.Flavor]:
    """Flavors with extra specs and projects; three statements however many."""
    ids = [row["id"] for row in rows]
    specs: dict[int, dict[str, str]] = {}
    for extra in tx.execute(sa.select(FLAVOR_EXTRA_SPECS).where(FLAVOR_EXTRA_SPECS.c.flavor_id.in_(ids))).mappings():
        specs.setdefault(extra["flavor_id"], {})[extra["key"]] = extra["value"]
    projects: dict[int, list[str]] = {}
    for access in tx.execute(sa.select(FLAVOR_PROJECTS).where(FLAVOR_PROJECTS.c.flavor_id.in_(ids))).mappings():
        projects.setdefault(access["flavor_id"], []).append(access["project_id"])
    return [from_row(row, specs.get(row["id"], {}), projects.get(row["id"], [])) for row in rows]


def _one(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> objects.Flavor | None:
    rows = list(tx.execute(sa.select(FLAVORS).where(*conditions)).mappings())
    return load_many(tx, rows)[0] if rows else None


def _open_to(flavor: objects.Flavor, ctxt: Any) -> bool:
    return flavor.is_public or ctxt.is_admin or ctxt.project_id in flavor.projects


def get_by_flavor_id(tx: sa.Connection, ctxt: Any, flavor_id: str, read_deleted: str | None = None) -> objects.Flavor:
    """Raises FlavorNotFound, also when the caller has no access to it."""
    found = _one(tx, FLAVORS.c.flavorid == flavor_id)
    if found is None or not _open_to(found, ctxt):
        raise exceptions.FlavorNotFound(flavor_id=flavor_id)
    return found


def get_by_id(tx: sa.Connection, ctxt: Any, id: int) -> objects.Flavor:
    """Raises FlavorNotFound."""
    found = _one(tx, FLAVORS.c.id == id)
    if found is None:
        raise exceptions.FlavorNotFound(flavor_id=id)
    return found


def get_by_name(tx: sa.Connection, ctxt: Any, name: str) -> objects.Flavor:
    """Raises FlavorNotFoundByName."""
    found = _one(tx, FLAVORS.c.name == name)
    if found is None:
        raise exceptions.FlavorNotFoundByName(flavor_name=name)
    return found


def as_list(flavors: Iterable[objects.Flavor]) -> objects.FlavorList:
    return objects.FlavorList(objects=list(flavors))


def get_all(
    tx: sa.Connection,
    ctxt: Any,
    inactive: bool = False,
    filters: Mapping[str, Any] | None = None,
    sort_key: str = "flavorid",
    sort_dir: str = "asc",
    limit: int | None = None,
    marker: str | None = None,
) -> objects.FlavorList:
    """A page of flavors; without `inactive` only those that are enabled. Raises MarkerNotFound, InvalidSortKey."""
    wanted = {name: value for name, value in (filters or {}).items() if name in FILTERS and value is not None}
    if not inactive:
        wanted["disabled"] = False
    try:
        rows = flavors.flavor_list(tx, sort=((sort_key, sort_dir),), limit=limit, marker=marker, **wanted)
    except MarkerNotFoundError as err:
        raise exceptions.MarkerNotFound(marker=marker) from err
    except InvalidSortKeyError as err:
        raise exceptions.InvalidSortKey from err
    return as_list(load_many(tx, rows))
