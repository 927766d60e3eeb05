"""Flavors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db import exact, query
from kilonova.db.api import flavors
from kilonova.db.api.tables import FLAVOR_EXTRA_SPECS, FLAVOR_PROJECTS, FLAVORS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError, InvalidSortKeyError, MarkerNotFoundError

FILTERS = ("disabled", "is_public", "min_memory_mb", "min_root_gb", "project_id")


def from_row(row: Row, extra_specs: dict[str, str], projects: list[str] | None = None) -> objects.Flavor:
    return fill(objects.Flavor(), row, extra_specs, projects)


def fill(
    flavor: objects.Flavor, row: Row, extra_specs: dict[str, str] | None, projects: list[str] | None
) -> objects.Flavor:
    """A flavor as its row has it; extra specs and projects only when there are any to set."""
    values = dict(row)
    values |= {"disabled": bool(row["disabled"]), "is_public": row["is_public"] is not False, "deleted": False}
    values |= {"swap": row["swap"] or 0, "root_gb": row["root_gb"] or 0, "ephemeral_gb": row["ephemeral_gb"] or 0}
    values |= {"vcpu_weight": row["vcpu_weight"] or 0, "deleted_at": None}
    values |= {name: part for name, part in (("extra_specs", extra_specs), ("projects", projects)) if part is not None}
    return hydrate.fill(flavor, values)


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


def _one(tx: sa.Connection, ctxt: Any, *conditions: sa.ColumnElement[bool]) -> objects.Flavor | None:
    """The flavor, if there is one and the caller has access to it."""
    rows = list(tx.execute(sa.select(FLAVORS).where(*conditions)).mappings())
    found = load_many(tx, rows)
    return found[0] if found and _open_to(found[0], ctxt) else None


def _open_to(flavor: objects.Flavor, ctxt: Any) -> bool:
    return flavor.is_public or ctxt.is_admin or ctxt.project_id in flavor.projects


def get_by_flavor_id(tx: sa.Connection, ctxt: Any, flavor_id: str, read_deleted: str | None = None) -> objects.Flavor:
    """Raises FlavorNotFound, also when the caller has no access to it."""
    found = _one(tx, ctxt, exact.equal(tx.dialect.name, FLAVORS.c.flavorid, flavor_id))
    if found is None:
        raise exceptions.FlavorNotFound(flavor_id=flavor_id)
    return found


def get_by_id(tx: sa.Connection, ctxt: Any, id: int) -> objects.Flavor:
    """Raises FlavorNotFound."""
    found = _one(tx, ctxt, FLAVORS.c.id == id)
    if found is None:
        raise exceptions.FlavorNotFound(flavor_id=id)
    return found


def get_by_name(tx: sa.Connection, ctxt: Any, name: str) -> objects.Flavor:
    """Raises FlavorNotFoundByName."""
    found = _one(tx, ctxt, exact.equal(tx.dialect.name, FLAVORS.c.name, name))
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
    """A page of those that the caller has access to; without `inactive` only the enabled ones.

    Raises MarkerNotFound, InvalidSortKey.
    """
    wanted = {name: value for name, value in (filters or {}).items() if name in FILTERS and value is not None}
    if not inactive:
        wanted["disabled"] = False
    try:
        # Who is no administrator sees only some; which fill a page is known when all are read, and they are few.
        most = limit if ctxt.is_admin else None
        rows = flavors.flavor_list(tx, sort=((sort_key, sort_dir),), limit=most, marker=marker, **wanted)
    except MarkerNotFoundError as err:
        raise exceptions.MarkerNotFound(marker=marker) from err
    except InvalidSortKeyError as err:
        raise exceptions.InvalidSortKey from err
    return as_list([flavor for flavor in load_many(tx, rows) if _open_to(flavor, ctxt)][:limit])


def create(tx: sa.Connection, ctxt: Any, flavor: objects.Flavor) -> None:
    """Raises FlavorIdExists, FlavorExists (the name)."""
    if flavor.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    taken = sa.select(FLAVORS.c.id).where(FLAVORS.c.flavorid == flavor.get("flavorid"))
    if tx.execute(taken).first() is not None:
        raise exceptions.FlavorIdExists(flavor_id=flavor.flavorid)
    changed = flavor.obj_what_changed()
    specs = dict(flavor.extra_specs) if "extra_specs" in changed else None
    projects = sorted(set(flavor.projects)) if "projects" in changed else []
    try:
        row = flavors.flavor_create(tx, hydrate.changed_columns(flavor, FLAVORS), specs, projects)
    except DuplicateError as exc:
        raise exceptions.FlavorExists(name=flavor.name) from exc
    fill(flavor, {column.name: row[column.name] for column in FLAVORS.c}, specs, projects)


def destroy(tx: sa.Connection, ctxt: Any, flavor: objects.Flavor) -> None:
    """By its number if set, else by the id that users see. Raises FlavorNotFound."""
    by = "id" if flavor.obj_attr_is_set("id") else "flavorid"
    row = query.row(tx, sa.select(FLAVORS).where(FLAVORS.c[by] == flavor[by]))
    if row is None or not flavors.flavor_delete(tx, row["flavorid"]):
        raise exceptions.FlavorNotFound(flavor_id=flavor[by])
    fill(flavor, row, None, None)


def load_projects(tx: sa.Connection, ctxt: Any, flavor: objects.Flavor) -> None:
    """Set the projects with access. Raises FlavorNotFound."""
    number = tx.execute(sa.select(FLAVORS.c.id).where(FLAVORS.c.flavorid == flavor.flavorid)).scalar()
    if number is None:
        raise exceptions.FlavorNotFound(flavor_id=flavor.flavorid)
    flavor.projects = flavors.flavor_access_list(tx, number)
    flavor.obj_reset_changes(["projects"])


def add_access(tx: sa.Connection, ctxt: Any, flavor: objects.Flavor, project_id: str) -> None:
    """Raises FlavorAccessExists."""
    _refuse_changed_projects(flavor, "add_access")
    _give(tx, flavor, project_id)
    load_projects(tx, ctxt, flavor)


def remove_access(tx: sa.Connection, ctxt: Any, flavor: objects.Flavor, project_id: str) -> None:
    """Raises FlavorAccessNotFound."""
    _refuse_changed_projects(flavor, "remove_access")
    _take(tx, flavor, project_id)
    load_projects(tx, ctxt, flavor)


def save_projects(
    tx: sa.Connection,
    ctxt: Any,
    flavor: objects.Flavor,
    to_add: Collection[str] | None = None,
    to_delete: Collection[str] | None = None,
) -> None:
    """Raises FlavorAccessExists, FlavorAccessNotFound."""
    for project_id in to_add or ():
        _give(tx, flavor, project_id)
    for project_id in to_delete or ():
        _take(tx, flavor, project_id)
    flavor.obj_reset_changes(["projects"])


def save_extra_specs(
    tx: sa.Connection,
    ctxt: Any,
    flavor: objects.Flavor,
    to_add: Mapping[str, str] | None = None,
    to_delete: Collection[str] | None = None,
) -> None:
    """Raises FlavorExtraSpecsNotFound."""
    flavors.flavor_specs_set(tx, flavor.id, to_add or {})
    for key in to_delete or ():
        if not flavors.flavor_spec_delete(tx, flavor.id, key):
            raise exceptions.FlavorExtraSpecsNotFound(extra_specs_key=key, flavor_id=flavor.id)
    flavor.obj_reset_changes(["extra_specs"])


def _refuse_changed_projects(flavor: objects.Flavor, action: str) -> None:
    if "projects" in flavor.obj_what_changed():
        raise exceptions.ObjectActionError(action=action, reason="projects were changed in the object")


def _give(tx: sa.Connection, flavor: objects.Flavor, project_id: str) -> None:
    try:
        flavors.flavor_access_add(tx, flavor.id, [project_id])
    except DuplicateError as exc:
        raise exceptions.FlavorAccessExists(flavor_id=flavor.id, project_id=project_id) from exc


def _take(tx: sa.Connection, flavor: objects.Flavor, project_id: str) -> None:
    if not flavors.flavor_access_remove(tx, flavor.id, project_id):
        raise exceptions.FlavorAccessNotFound(flavor_id=flavor.id, project_id=project_id)
