"""Instance, host and cell mappings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db import query
from kilonova.db.api import cell_mappings, host_mappings, instance_mappings
from kilonova.db.api.tables import CELL_MAPPINGS, HOST_MAPPINGS, INSTANCE_MAPPINGS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError


def cell_from_row(row: Row) -> objects.CellMapping:
    return hydrate.fill(objects.CellMapping(), row)


def _cells(tx: sa.Connection, ids: Iterable[int | None]) -> dict[int, objects.CellMapping]:
    wanted = {one for one in ids if one is not None}
    if not wanted:
        return {}
    rows = tx.execute(sa.select(CELL_MAPPINGS).where(CELL_MAPPINGS.c.id.in_(wanted))).mappings()
    return {row["id"]: cell_from_row(row) for row in rows}


def _with_cells(tx: sa.Connection, kind: Any, rows: list[Row]) -> list[Any]:
    cells = _cells(tx, (row["cell_id"] for row in rows))
    found = []
    for row in rows:
        one = hydrate.fill(kind(), row, skip={"cell_mapping"})
        one.cell_mapping = cells.get(row["cell_id"])
        one.obj_reset_changes(recursive=True)
        found.append(one)
    return found


def get_instance_mapping(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.InstanceMapping:
    """Raises InstanceMappingNotFound."""
    row = instance_mappings.instance_mapping_get(tx, instance_uuid)
    if row is None:
        raise exceptions.InstanceMappingNotFound(uuid=instance_uuid)
    found: objects.InstanceMapping = _with_cells(tx, objects.InstanceMapping, [row])[0]
    return found


def list_instance_mappings(tx: sa.Connection, ctxt: Any, uuids: Collection[str]) -> objects.InstanceMappingList:
    rows = instance_mappings.instance_mapping_list(tx, uuids)
    return objects.InstanceMappingList(objects=_with_cells(tx, objects.InstanceMapping, rows))


def _mapping_values(mapping: objects.InstanceMapping) -> dict[str, Any]:
    values = hydrate.changed_columns(mapping, INSTANCE_MAPPINGS, skip={"id"})
    if "cell_mapping" in mapping.obj_what_changed():
        values["cell_id"] = mapping.cell_mapping.id if mapping.cell_mapping else None
    return values


def create_instance_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.InstanceMapping) -> None:
    row = instance_mappings.instance_mapping_create(tx, _mapping_values(mapping))
    hydrate.fill(mapping, row, skip={"cell_mapping"})


def save_instance_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.InstanceMapping) -> None:
    """Raises InstanceMappingNotFound."""
    values = _mapping_values(mapping)
    if values and not instance_mappings.instance_mapping_update(tx, mapping.instance_uuid, values):
        raise exceptions.InstanceMappingNotFound(uuid=mapping.instance_uuid)
    mapping.obj_reset_changes(recursive=True)


def destroy_instance_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.InstanceMapping) -> None:
    """Raises InstanceMappingNotFound."""
    if not instance_mappings.instance_mapping_delete(tx, mapping.instance_uuid):
        raise exceptions.InstanceMappingNotFound(uuid=mapping.instance_uuid)
    mapping.obj_reset_changes()


def get_host_mapping(tx: sa.Connection, ctxt: Any, host: str) -> objects.HostMapping:
    """Raises HostMappingNotFound."""
    row = tx.execute(sa.select(HOST_MAPPINGS).where(HOST_MAPPINGS.c.host == host)).mappings().first()
    if row is None:
        raise exceptions.HostMappingNotFound(name=host)
    found: objects.HostMapping = _with_cells(tx, objects.HostMapping, [row])[0]
    return found


def _host_values(mapping: objects.HostMapping) -> dict[str, Any]:
    values = hydrate.changed_columns(mapping, HOST_MAPPINGS, skip={"id"})
    if "cell_mapping" in mapping.obj_what_changed():
        values["cell_id"] = mapping.cell_mapping.id
    return values


def _fill_host(tx: sa.Connection, mapping: objects.HostMapping, number: int) -> None:
    row = tx.execute(sa.select(HOST_MAPPINGS).where(HOST_MAPPINGS.c.id == number)).mappings().one()
    fresh = _with_cells(tx, objects.HostMapping, [row])[0]
    _take_over(mapping, fresh)


def _take_over(obj: Any, fresh: Any) -> None:
    """Every field of the fresh object; read-only ones keep the value that they have."""
    for name, kind in type(obj).fields.items():
        if fresh.obj_attr_is_set(name) and not (kind.read_only and obj.obj_attr_is_set(name)):
            setattr(obj, name, getattr(fresh, name))
    obj.obj_reset_changes(recursive=True)


def create_host_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.HostMapping) -> None:
    """Raises HostMappingExists."""
    try:
        row = query.insert(tx, HOST_MAPPINGS, _host_values(mapping))
    except DuplicateError as exc:
        raise exceptions.HostMappingExists(name=mapping.host) from exc
    _fill_host(tx, mapping, row["id"])


def save_host_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.HostMapping) -> None:
    """Raises HostMappingNotFound, HostMappingExists."""
    values, here = _host_values(mapping), HOST_MAPPINGS.c.id == mapping.id
    if tx.execute(sa.select(HOST_MAPPINGS.c.id).where(here)).first() is None:
        raise exceptions.HostMappingNotFound(name=mapping.host)
    if values:
        try:
            with query.unique("host_mappings"):
                tx.execute(sa.update(HOST_MAPPINGS).where(here).values(**values))
        except DuplicateError as exc:
            raise exceptions.HostMappingExists(name=mapping.host) from exc
    _fill_host(tx, mapping, mapping.id)


def destroy_host_mapping(tx: sa.Connection, ctxt: Any, mapping: objects.HostMapping) -> None:
    """Raises HostMappingNotFound."""
    if not host_mappings.host_mapping_delete(tx, mapping.host):
        raise exceptions.HostMappingNotFound(name=mapping.host)


def create_cell_mapping(tx: sa.Connection, ctxt: Any, cell: objects.CellMapping) -> None:
    """Raises ObjectActionError when there is a cell of that uuid."""
    try:
        row = cell_mappings.cell_mapping_create(tx, hydrate.changed_columns(cell, CELL_MAPPINGS, skip={"id"}))
    except DuplicateError as exc:
        raise exceptions.ObjectActionError(action="create", reason=f"there is a cell {cell.uuid}") from exc
    _take_over(cell, cell_from_row(row))


def save_cell_mapping(tx: sa.Connection, ctxt: Any, cell: objects.CellMapping) -> None:
    """Raises CellMappingNotFound."""
    values = hydrate.changed_columns(cell, CELL_MAPPINGS, skip={"id", "uuid"})
    if values:
        cell_mappings.cell_mapping_update(tx, cell.uuid, values)
    _take_over(cell, get_cell_mapping(tx, ctxt, cell.uuid))


def destroy_cell_mapping(tx: sa.Connection, ctxt: Any, cell: objects.CellMapping) -> None:
    """Raises CellMappingNotFound, ObjectActionError while hosts or instances are mapped to the cell."""
    row = cell_mappings.cell_mapping_get(tx, cell.uuid)
    if row is None:
        raise exceptions.CellMappingNotFound(uuid=cell.uuid)
    if any(cell_mappings.cell_mapping_usage(tx, row["id"])):
        raise exceptions.ObjectActionError(action="destroy", reason="hosts or instances are mapped to the cell")
    cell_mappings.cell_mapping_delete(tx, cell.uuid)


def get_cell_mapping(tx: sa.Connection, ctxt: Any, uuid: str) -> objects.CellMapping:
    """Raises CellMappingNotFound."""
    row = tx.execute(sa.select(CELL_MAPPINGS).where(CELL_MAPPINGS.c.uuid == uuid)).mappings().first()
    if row is None:
        raise exceptions.CellMappingNotFound(uuid=uuid)
    return cell_from_row(row)


def list_cell_mappings(tx: sa.Connection, ctxt: Any) -> objects.CellMappingList:
    rows = tx.execute(sa.select(CELL_MAPPINGS).order_by(CELL_MAPPINGS.c.id)).mappings()
    return objects.CellMappingList(objects=[cell_from_row(row) for row in rows])


def list_cell_mappings_by_disabled(tx: sa.Connection, ctxt: Any, disabled: bool) -> objects.CellMappingList:
    rows = cell_mappings.cell_mapping_list(tx, disabled=disabled)
    return objects.CellMappingList(objects=[cell_from_row(row) for row in rows])


def list_host_mappings(tx: sa.Connection, ctxt: Any) -> objects.HostMappingList:
    return objects.HostMappingList(objects=_with_cells(tx, objects.HostMapping, host_mappings.host_mapping_list(tx)))


def list_host_mappings_by_cell(tx: sa.Connection, ctxt: Any, cell_id: int) -> objects.HostMappingList:
    rows = host_mappings.host_mapping_list(tx, cell_id=cell_id)
    return objects.HostMappingList(objects=_with_cells(tx, objects.HostMapping, rows))


def list_instance_mappings_by_cell(tx: sa.Connection, ctxt: Any, cell_id: int | None) -> objects.InstanceMappingList:
    rows = instance_mappings.instance_mapping_list_by_cell(tx, cell_id)
    return objects.InstanceMappingList(objects=_with_cells(tx, objects.InstanceMapping, rows))


def list_instance_mappings_by_project(tx: sa.Connection, ctxt: Any, project_id: str) -> objects.InstanceMappingList:
    rows = instance_mappings.instance_mapping_list_by_project(tx, project_id)
    return objects.InstanceMappingList(objects=_with_cells(tx, objects.InstanceMapping, rows))


def count_instance_mappings(
    tx: sa.Connection, ctxt: Any, project_id: str, user_id: str | None = None
) -> dict[str, Any]:
    """Instances of a project, and of a user in it under `user`."""
    counted = instance_mappings.instance_mapping_count(tx, project_id, user_id)
    return {scope: {"instances": number} for scope, number in counted.items()}
