"""Instance, host and cell mappings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.api import cell_mappings, host_mappings, instance_mappings
from kilonova.db.api.tables import CELL_MAPPINGS, HOST_MAPPINGS, INSTANCE_MAPPINGS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row


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
