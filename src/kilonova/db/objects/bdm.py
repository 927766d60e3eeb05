"""Block device mappings."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING as TABLE
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.query import slices


def fill(bdm: objects.BlockDeviceMapping, row: Row) -> objects.BlockDeviceMapping:
    values = dict(row)
    for name in ("no_device", "delete_on_termination", "encrypted"):
        values[name] = bool(row[name])
    return hydrate.fill(bdm, values, skip={"instance"})


def from_row(row: Row) -> objects.BlockDeviceMapping:
    return fill(objects.BlockDeviceMapping(), row)


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    return list(tx.execute(hydrate.select_alive(TABLE, *conditions).order_by(TABLE.c.id)).mappings())


def load(tx: sa.Connection, instance_uuids: Collection[str]) -> objects.BlockDeviceMappingList:
    """Those of all the instances."""
    rows = [row for part in slices(instance_uuids) for row in _rows(tx, TABLE.c.instance_uuid.in_(part))]
    return objects.BlockDeviceMappingList(objects=[from_row(row) for row in rows])


def get_by_instance_uuid(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, use_slave: bool = False
) -> objects.BlockDeviceMappingList:
    return load(tx, [instance_uuid])


def get_by_instance_uuids(
    tx: sa.Connection, ctxt: Any, instance_uuids: Collection[str], use_slave: bool = False
) -> objects.BlockDeviceMappingList:
    return load(tx, instance_uuids)


def list_by_volume(
    tx: sa.Connection, ctxt: Any, volume_id: str, use_slave: bool = False
) -> objects.BlockDeviceMappingList:
    rows = _rows(tx, TABLE.c.volume_id == volume_id)
    if not rows:
        raise exceptions.VolumeBDMNotFound(volume_id=volume_id)
    return objects.BlockDeviceMappingList(objects=[from_row(row) for row in rows])


def _with_instance(tx: sa.Connection, row: Row, expected_attrs: Iterable[str] | None) -> objects.BlockDeviceMapping:
    bdm = from_row(row)
    if "instance" in (expected_attrs or ()):
        from kilonova.db.objects import instance

        owner = tx.execute(sa.select(INSTANCES).where(INSTANCES.c.uuid == row["instance_uuid"])).mappings().one()
        bdm.instance = instance.load_many(tx, [owner], ())[0]
        bdm.obj_reset_changes()
    return bdm


def get_by_volume(
    tx: sa.Connection, ctxt: Any, volume_id: str, expected_attrs: Iterable[str] | None = None
) -> objects.BlockDeviceMapping:
    """Raises VolumeBDMNotFound, VolumeBDMIsMultiAttach."""
    rows = _rows(tx, TABLE.c.volume_id == volume_id)
    if not rows:
        raise exceptions.VolumeBDMNotFound(volume_id=volume_id)
    if len(rows) > 1:
        raise exceptions.VolumeBDMIsMultiAttach(volume_id=volume_id)
    return _with_instance(tx, rows[0], expected_attrs)


def get_by_volume_and_instance(
    tx: sa.Connection, ctxt: Any, volume_id: str, instance_uuid: str, expected_attrs: Iterable[str] | None = None
) -> objects.BlockDeviceMapping:
    """Raises VolumeBDMNotFound."""
    rows = _rows(tx, TABLE.c.volume_id == volume_id, TABLE.c.instance_uuid == instance_uuid)
    if not rows:
        raise exceptions.VolumeBDMNotFound(volume_id=volume_id)
    return _with_instance(tx, rows[0], expected_attrs)


def get_by_volume_id(
    tx: sa.Connection,
    ctxt: Any,
    volume_id: str,
    instance_uuid: str | None = None,
    expected_attrs: Iterable[str] | None = None,
) -> objects.BlockDeviceMapping:
    """Raises VolumeBDMNotFound, InvalidVolume."""
    rows = _rows(tx, TABLE.c.volume_id == volume_id)
    if not rows:
        raise exceptions.VolumeBDMNotFound(volume_id=volume_id)
    if instance_uuid and rows[0]["instance_uuid"] != instance_uuid:
        raise exceptions.InvalidVolume(reason="the volume belongs to another instance")
    return _with_instance(tx, rows[0], expected_attrs)


def create(tx: sa.Connection, ctxt: Any, bdm: objects.BlockDeviceMapping) -> None:
    if bdm.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    values = hydrate.changed_columns(bdm, TABLE)
    values.setdefault("uuid", str(uuid.uuid4()))
    fill(bdm, hydrate.insert(tx, TABLE, values))


def update_or_create(tx: sa.Connection, ctxt: Any, bdm: objects.BlockDeviceMapping) -> None:
    """Create, unless the instance has a mapping of that device name already: then that one takes the new values."""
    values = hydrate.changed_columns(bdm, TABLE)
    name = values.get("device_name")
    same = _rows(tx, TABLE.c.instance_uuid == bdm.instance_uuid, TABLE.c.device_name == name) if name else []
    if not same:
        create(tx, ctxt, bdm)
        return
    tx.execute(sa.update(TABLE).where(TABLE.c.id == same[0]["id"]).values(**values))
    fill(bdm, _rows(tx, TABLE.c.id == same[0]["id"])[0])


def save(tx: sa.Connection, ctxt: Any, bdm: objects.BlockDeviceMapping) -> None:
    """Raises BDMNotFound."""
    if values := hydrate.changed_columns(bdm, TABLE, skip={"id"}):
        done = tx.execute(sa.update(TABLE).where(TABLE.c.id == bdm.id, TABLE.c.deleted == 0).values(**values))
        if not done.rowcount:
            raise exceptions.BDMNotFound(id=bdm.id)
    fill(bdm, tx.execute(sa.select(TABLE).where(TABLE.c.id == bdm.id)).mappings().one())


def destroy(tx: sa.Connection, ctxt: Any, bdm: objects.BlockDeviceMapping) -> None:
    if not bdm.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="destroy", reason="already destroyed")
    hydrate.soft_delete(tx, TABLE, TABLE.c.id == bdm.id)
    bdm.obj_reset_changes()
