"""Compute nodes: what hosts have and use."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.cell import compute_nodes
from kilonova.db.cell.tables import COMPUTE_NODES, SERVICES
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError
from kilonova.db.query import slices

SPECIAL = {"stats", "supported_hv_specs", "pci_device_pools", "mapped"}
DEFAULT_RATIOS = {"cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0}
"""For rows without one; the initial ratios of the configuration's defaults."""


def from_row(row: Row) -> objects.ComputeNode:
    return fill(objects.ComputeNode(), row)


def fill(node: objects.ComputeNode, row: Row) -> objects.ComputeNode:
    values = dict(row) | {name: row[name] or ratio for name, ratio in DEFAULT_RATIOS.items()}
    hydrate.fill(node, values, skip=SPECIAL)
    node.mapped = row["mapped"] or 0
    if row["stats"]:
        node.stats = {key: None if value is None else str(value) for key, value in json.loads(row["stats"]).items()}
    if row["supported_instances"]:
        node.supported_hv_specs = [
            objects.HVSpec(arch=arch, hv_type=hv_type, vm_mode=mode)
            for arch, hv_type, mode in json.loads(row["supported_instances"])
        ]
    node.pci_device_pools = _pools(row["pci_stats"])
    node.obj_reset_changes(recursive=True)
    return node


def _pools(text: str | None) -> objects.PciDevicePoolList | None:
    kept = json.loads(text) if text else None
    return objects.PciDevicePoolList.obj_from_primitive(kept) if isinstance(kept, dict) else None


def _values(node: objects.ComputeNode) -> dict[str, Any]:
    changes = node.obj_get_changes()
    values = hydrate.changed_columns(node, COMPUTE_NODES, skip=SPECIAL | {"id"})
    if changes.get("stats") is not None:
        values["stats"] = json.dumps(changes["stats"])
    if changes.get("supported_hv_specs") is not None:
        specs = [[spec.arch, spec.hv_type, spec.vm_mode] for spec in changes["supported_hv_specs"]]
        values["supported_instances"] = json.dumps(specs)
    if "pci_device_pools" in changes:
        values["pci_stats"] = hydrate.dump(changes["pci_device_pools"])
    if "mapped" in changes:
        values["mapped"] = changes["mapped"]
    return values


def create(tx: sa.Connection, ctxt: Any, node: objects.ComputeNode) -> None:
    """Raises DuplicateRecord when the host has a node of that name or the uuid is taken."""
    if node.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    values = _values(node)
    try:
        row = compute_nodes.compute_node_create(tx, values)
    except DuplicateError as err:
        raise exceptions.DuplicateRecord(target=f"compute node {values.get('uuid')}") from err
    fill(node, row)


def save(tx: sa.Connection, ctxt: Any, node: objects.ComputeNode, prune_stats: bool = False) -> None:
    """Raises ComputeHostNotFound."""
    if not compute_nodes.compute_node_update(tx, node.id, _values(node)):
        raise exceptions.ComputeHostNotFound(host=node.id)
    fill(node, tx.execute(sa.select(COMPUTE_NODES).where(COMPUTE_NODES.c.id == node.id)).mappings().one())


def destroy(tx: sa.Connection, ctxt: Any, node: objects.ComputeNode) -> None:
    """Only on behalf of the host that the row names. Raises ObjectActionError when another host has the node now."""
    same = (COMPUTE_NODES.c.id == node.id, COMPUTE_NODES.c.host == node.host)
    if not hydrate.soft_delete(tx, COMPUTE_NODES, *same):
        raise exceptions.ObjectActionError(action="destroy", reason="host changed")
    node.obj_reset_changes()


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    query = hydrate.select_alive(COMPUTE_NODES, *conditions).order_by(COMPUTE_NODES.c.id)
    return list(tx.execute(query).mappings())


def _only(rows: list[Row], wanted: object) -> objects.ComputeNode:
    if not rows:
        raise exceptions.ComputeHostNotFound(host=wanted)
    return from_row(rows[0])


def get_by_id(tx: sa.Connection, ctxt: Any, compute_id: int) -> objects.ComputeNode:
    return _only(_rows(tx, COMPUTE_NODES.c.id == compute_id), compute_id)


def get_by_uuid(tx: sa.Connection, ctxt: Any, compute_uuid: str) -> objects.ComputeNode:
    return _only(_rows(tx, COMPUTE_NODES.c.uuid == compute_uuid), compute_uuid)


def get_by_service_id(tx: sa.Connection, ctxt: Any, service_id: int) -> objects.ComputeNode:
    return _only(_rows(tx, COMPUTE_NODES.c.service_id == service_id), service_id)


def get_by_host_and_nodename(tx: sa.Connection, ctxt: Any, host: str, nodename: str) -> objects.ComputeNode:
    """Raises ComputeHostNotFound."""
    rows = _rows(tx, COMPUTE_NODES.c.host == host, COMPUTE_NODES.c.hypervisor_hostname == nodename)
    return _only(rows, f"{host}:{nodename}")


def get_by_nodename(tx: sa.Connection, ctxt: Any, hypervisor_hostname: str) -> objects.ComputeNode:
    return _only(_rows(tx, COMPUTE_NODES.c.hypervisor_hostname == hypervisor_hostname), hypervisor_hostname)


def get_first_node_by_host(tx: sa.Connection, ctxt: Any, host: str, use_slave: bool = False) -> objects.ComputeNode:
    return _only(_rows(tx, COMPUTE_NODES.c.host == host), host)


def _list(rows: Iterable[Row]) -> objects.ComputeNodeList:
    return objects.ComputeNodeList(objects=[from_row(row) for row in rows])


def get_all(tx: sa.Connection, ctxt: Any) -> objects.ComputeNodeList:
    return _list(_rows(tx))


def get_all_by_host(tx: sa.Connection, ctxt: Any, host: str, use_slave: bool = False) -> objects.ComputeNodeList:
    """Raises ComputeHostNotFound when the host has none."""
    rows = _rows(tx, COMPUTE_NODES.c.host == host)
    if not rows:
        raise exceptions.ComputeHostNotFound(host=host)
    return _list(rows)


def get_all_by_uuids(tx: sa.Connection, ctxt: Any, compute_uuids: Collection[str]) -> objects.ComputeNodeList:
    return _list([row for part in slices(compute_uuids) for row in _rows(tx, COMPUTE_NODES.c.uuid.in_(part))])


def get_all_by_not_mapped(tx: sa.Connection, ctxt: Any, mapped_less_than: int) -> objects.ComputeNodeList:
    return _list(_rows(tx, COMPUTE_NODES.c.mapped < mapped_less_than))


def get_by_hypervisor(tx: sa.Connection, ctxt: Any, hypervisor_match: str) -> objects.ComputeNodeList:
    return _list(_rows(tx, COMPUTE_NODES.c.hypervisor_hostname.contains(hypervisor_match, autoescape=True)))


def get_all_by_service(
    tx: sa.Connection, ctxt: Any, service_id: int, use_slave: bool = False
) -> objects.ComputeNodeList:
    """Raises ServiceNotFound."""
    found = tx.execute(hydrate.select_alive(SERVICES, SERVICES.c.id == service_id)).mappings().first()
    if found is None:
        raise exceptions.ServiceNotFound(service_id=service_id)
    return _list(_rows(tx, sa.or_(COMPUTE_NODES.c.service_id == service_id, COMPUTE_NODES.c.host == found["host"])))


def get_by_pagination(
    tx: sa.Connection, ctxt: Any, limit: int | None = None, marker: int | None = None
) -> objects.ComputeNodeList:
    query = hydrate.select_alive(COMPUTE_NODES).order_by(COMPUTE_NODES.c.id).limit(limit)
    if marker is not None:
        query = query.where(COMPUTE_NODES.c.id > marker)
    return _list(tx.execute(query).mappings())
