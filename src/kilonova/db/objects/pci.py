"""PCI devices of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import PCI_DEVICES as TABLE
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row


def device(row: Row) -> objects.PciDevice:
    return fill(objects.PciDevice(), row)


def fill(found: objects.PciDevice, row: Row) -> objects.PciDevice:
    hydrate.fill(found, row, skip={"extra_info"})
    found.extra_info = json.loads(row["extra_info"] or "{}")
    found.obj_reset_changes()
    return found


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    return list(tx.execute(hydrate.select_alive(TABLE, *conditions).order_by(TABLE.c.id)).mappings())


def _list(rows: Iterable[Row]) -> objects.PciDeviceList:
    return objects.PciDeviceList(objects=[device(row) for row in rows])


def get_by_dev_addr(tx: sa.Connection, ctxt: Any, compute_node_id: int, dev_addr: str) -> objects.PciDevice:
    """Raises PciDeviceNotFound."""
    rows = _rows(tx, TABLE.c.compute_node_id == compute_node_id, TABLE.c.address == dev_addr)
    if not rows:
        raise exceptions.PciDeviceNotFound(node_id=compute_node_id, address=dev_addr)
    return device(rows[0])


def get_by_dev_id(tx: sa.Connection, ctxt: Any, id: int) -> objects.PciDevice:
    """Raises PciDeviceNotFoundById."""
    rows = _rows(tx, TABLE.c.id == id)
    if not rows:
        raise exceptions.PciDeviceNotFoundById(id=id)
    return device(rows[0])


def save(tx: sa.Connection, ctxt: Any, found: objects.PciDevice) -> None:
    """A removed or deleted device loses its row, an unknown one gets one; of the rest the changes are written."""
    if found.status in ("removed", "deleted"):
        hydrate.soft_delete(
            tx, TABLE, TABLE.c.compute_node_id == found.compute_node_id, TABLE.c.address == found.address
        )
        found.obj_reset_changes()
        return
    values = hydrate.changed_columns(found, TABLE, skip={"extra_info", "id"})
    if "extra_info" in found.obj_what_changed():
        values["extra_info"] = json.dumps(found.extra_info)
    if found.obj_attr_is_set("id"):
        tx.execute(sa.update(TABLE).where(TABLE.c.id == found.id).values(**values))
        row = tx.execute(sa.select(TABLE).where(TABLE.c.id == found.id)).mappings().one()
    else:
        row = hydrate.insert(tx, TABLE, values)
    fill(found, row)


def get_by_compute_node(tx: sa.Connection, ctxt: Any, node_id: int) -> objects.PciDeviceList:
    return _list(_rows(tx, TABLE.c.compute_node_id == node_id))


def get_by_instance_uuid(tx: sa.Connection, ctxt: Any, uuid: str) -> objects.PciDeviceList:
    return _list(_rows(tx, TABLE.c.instance_uuid == uuid, TABLE.c.status == "allocated"))


def get_by_parent_address(tx: sa.Connection, ctxt: Any, node_id: int, parent_addr: str) -> objects.PciDeviceList:
    return _list(_rows(tx, TABLE.c.compute_node_id == node_id, TABLE.c.parent_addr == parent_addr))
