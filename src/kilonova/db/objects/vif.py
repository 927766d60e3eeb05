"""Virtual interfaces: the tags and addresses of ports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import VIRTUAL_INTERFACES as TABLE
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    return list(tx.execute(hydrate.select_alive(TABLE, *conditions).order_by(TABLE.c.id)).mappings())


def _filled(vif: objects.VirtualInterface, row: Row) -> objects.VirtualInterface:
    """Neutron's ports have no network number; the column makes addresses unique by adding the port's id to them."""
    hydrate.fill(vif, row, skip=() if row["network_id"] else ("network_id",))
    vif.address = vif.address.partition("/")[0] if vif.address else vif.address
    vif.obj_reset_changes()
    return vif


def _first(rows: list[Row]) -> objects.VirtualInterface | None:
    return _filled(objects.VirtualInterface(), rows[0]) if rows else None


def _list(rows: Iterable[Row]) -> objects.VirtualInterfaceList:
    return objects.VirtualInterfaceList(objects=[_filled(objects.VirtualInterface(), row) for row in rows])


def create(tx: sa.Connection, ctxt: Any, vif: objects.VirtualInterface) -> None:
    """Raises VirtualInterfaceCreateException when the address is taken."""
    if vif.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    try:
        row = hydrate.insert(tx, TABLE, hydrate.changed_columns(vif, TABLE))
    except sa.exc.IntegrityError as err:
        raise exceptions.VirtualInterfaceCreateException from err
    _filled(vif, row)


def save(tx: sa.Connection, ctxt: Any, vif: objects.VirtualInterface) -> None:
    if values := hydrate.changed_columns(vif, TABLE, skip={"id"}):
        tx.execute(sa.update(TABLE).where(TABLE.c.id == vif.id).values(**values))
    _filled(vif, tx.execute(sa.select(TABLE).where(TABLE.c.id == vif.id)).mappings().one())


def destroy(tx: sa.Connection, ctxt: Any, vif: objects.VirtualInterface) -> None:
    hydrate.soft_delete(tx, TABLE, TABLE.c.uuid == vif.uuid)
    vif.obj_reset_changes()


def delete_by_instance_uuid(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> None:
    hydrate.soft_delete(tx, TABLE, TABLE.c.instance_uuid == instance_uuid)


def get_by_id(tx: sa.Connection, ctxt: Any, vif_id: int) -> objects.VirtualInterface | None:
    return _first(_rows(tx, TABLE.c.id == vif_id))


def get_by_uuid(tx: sa.Connection, ctxt: Any, vif_uuid: str) -> objects.VirtualInterface | None:
    return _first(_rows(tx, TABLE.c.uuid == vif_uuid))


def get_by_address(tx: sa.Connection, ctxt: Any, address: str) -> objects.VirtualInterface | None:
    return _first(_rows(tx, TABLE.c.address == address))


def get_by_instance_and_network(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, network_id: int
) -> objects.VirtualInterface | None:
    return _first(_rows(tx, TABLE.c.instance_uuid == instance_uuid, TABLE.c.network_id == network_id))


def get_all(tx: sa.Connection, ctxt: Any) -> objects.VirtualInterfaceList:
    return _list(_rows(tx))


def get_by_instance_uuid(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, use_slave: bool = False
) -> objects.VirtualInterfaceList:
    return _list(_rows(tx, TABLE.c.instance_uuid == instance_uuid))
