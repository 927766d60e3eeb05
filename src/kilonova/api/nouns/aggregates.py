"""Host aggregates. Schedulers are told of each change, Placement (by the aggregate's uuid) of the members."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from kilonova.api import errors, numbers
from kilonova.api.services import Services
from kilonova.base import clock
from kilonova.clients.http import ServiceError
from kilonova.clients.placement.client import GenerationConflict
from kilonova.contract import exceptions
from kilonova.contract.formats import FORMATS
from kilonova.contract.nouns import aggregates as contract
from kilonova.db import exact
from kilonova.db.api import aggregates, host_mappings
from kilonova.db.cell import compute_nodes, instances
from kilonova.db.cells import Cell, CellDown
from kilonova.db.engine import Tx
from kilonova.db.objects import aggregate as objects_of
from kilonova.db.outcomes import DuplicateError
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request, conflict, not_found

LOG = logging.getLogger(__name__)
_NOBODY: Final[dict[str, Any]] = {}
_ZONE: Final = "availability_zone"
_PLACEMENT_TRIES: Final = 4


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.INDEX_POLICY, _NOBODY)
    return {"aggregates": [_view(row) for row in call.services.cells.api.query(aggregates.aggregate_list)]}


def show(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SHOW_POLICY, _NOBODY)
    return {"aggregate": _view(_aggregate(call, id))}


def create(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.CREATE_POLICY, _NOBODY)
    given = call.body["aggregate"]
    zone = _zone_name(given)
    name = given["name"].strip()
    try:
        row = call.services.cells.api.run(aggregates.aggregate_create, name, {_ZONE: zone} if zone else {})
    except DuplicateError:
        raise conflict(exceptions.AggregateNameExists(aggregate_name=name).format_message()) from None
    _tell(call, row["id"])
    shown = _view(row)
    return {"aggregate": {key: value for key, value in shown.items() if key not in ("hosts", "metadata")}}


def _zone_name(given: dict[str, Any]) -> str | None:
    zone = given.get(_ZONE)
    return zone.strip() if zone else None


def update(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_POLICY, _NOBODY)
    given = call.body["aggregate"]
    row = _aggregate(call, id)
    if _ZONE in given:
        _check_zone(call, row, _zone_name(given), row["hosts"], no_servers=True)

    def write(tx: Tx) -> None:
        # A name that stays as it was is no change.
        if given.get("name", row["name"]).strip() != row["name"]:
            aggregates.aggregate_update(tx, row["id"], {"name": given["name"].strip()})
        if _ZONE in given:
            aggregates.aggregate_metadata_update(tx, row["id"], {_ZONE: _zone_name(given)})

    try:
        call.services.cells.api.run(write)
    except DuplicateError:
        raise conflict(exceptions.AggregateNameExists(aggregate_name=given["name"]).format_message()) from None
    return _changed(call, row["id"])


def delete(call: Call[Services], id: str) -> None:
    call.authorize(contract.DELETE_POLICY, _NOBODY)
    row = _aggregate(call, id)
    if row["hosts"]:
        raise exceptions.InvalidAggregateActionDelete(aggregate_id=row["id"], reason="Host aggregate is not empty")
    gone = call.services.cells.api.query(objects_of.get_by_id, call.context, row["id"])
    call.services.cells.api.run(aggregates.aggregate_delete, row["id"])
    call.services.scheduler().delete_aggregate(call.context, aggregate=gone)


def set_metadata(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SET_METADATA_POLICY, _NOBODY)
    metadata = call.body["set_metadata"]["metadata"]
    row = _aggregate(call, id)
    if _ZONE in metadata:
        _check_zone_name(metadata[_ZONE])
        _check_zone(call, row, metadata[_ZONE], row["hosts"], no_servers=True)

    def write(tx: Tx) -> None:
        aggregates.aggregate_metadata_update(tx, row["id"], metadata)

    try:
        call.services.cells.api.run(write)
    except DuplicateError:
        given = [key for key, value in metadata.items() if value is not None]
        clash = exact.clash(given, row["metadata"])
        if clash is None:
            raise
        raise bad_request(exact.sentence("Keys", clash)) from None
    # As Nova, which shows the time of this change and does not keep it.
    return {"aggregate": _changed(call, row["id"])["aggregate"] | {"updated_at": _time(clock.naive_now())}}


# ---------------------------------------------------------------- hosts


def add_host(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.ADD_HOST_POLICY, _NOBODY)
    host = call.body["add_host"]["host"]
    row = _aggregate(call, id)
    nodes = _nodes(call, host)
    zone = row["metadata"].get(_ZONE)
    try:
        if zone:
            _check_zone(call, row, zone, [host], no_servers=False)
        _check_servers_stay(call, row, host)
    except exceptions.InvalidAggregateAction as error:
        raise conflict(error.format_message()) from None
    try:
        call.services.cells.api.run(aggregates.aggregate_host_add, row["id"], host)
    except DuplicateError:
        message = exceptions.AggregateHostExists(aggregate_id=row["id"], host=host).format_message()
        raise conflict(message) from None
    _mirror(call, nodes, row["uuid"], member=True)
    return _changed(call, row["id"])


def remove_host(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.REMOVE_HOST_POLICY, _NOBODY)
    host = call.body["remove_host"]["host"]
    row = _aggregate(call, id)
    if host not in row["hosts"]:
        raise not_found(f"Cannot remove host {host} in aggregate {row['id']}")
    if row["metadata"].get(_ZONE) and _has_servers(call, [host]):
        raise conflict(f"Host {host} has servers, which cannot leave their availability zone.")
    call.services.cells.api.run(aggregates.aggregate_host_delete, row["id"], host)
    _mirror(call, _nodes(call, host, strict=False), row["uuid"], member=False)
    return _changed(call, row["id"])


def _nodes(call: Call[Services], host: str, *, strict: bool = True) -> list[str]:
    """The uuids of a host's compute nodes. Raises `Fault` 404 for a host that is in no cell (if ``strict``)."""
    cells = call.services.cells
    mapping = cells.api.query(host_mappings.host_mapping_get, host)
    cell = next((cell for cell in cells.all() if mapping is not None and cell.id == mapping["cell_id"]), None)
    if cell is None:
        if strict:
            raise not_found(exceptions.ComputeHostNotFound(host=host).format_message())
        return []
    return [row["uuid"] for row in cell.database.query(compute_nodes.compute_node_list, hosts=[host])]


def _mirror(call: Call[Services], nodes: Iterable[str], uuid: str, *, member: bool) -> None:
    """Tell Placement. Where it does not answer, `nova-manage placement sync_aggregates` makes up for it."""
    for node in nodes:
        try:
            _mirror_one(call, node, uuid, member=member)
        except (exceptions.NovaException, ServiceError) as error:
            LOG.warning("Placement does not know yet that node %s is in aggregate %s: %s", node, uuid, error)


def _mirror_one(call: Call[Services], node: str, uuid: str, *, member: bool) -> None:
    placement = call.services.clients.placement
    for attempt in range(_PLACEMENT_TRIES):
        known, generation = placement.aggregates_get(call.context, node)
        wanted = known | {uuid} if member else known - {uuid}
        if wanted == known:
            return
        try:
            placement.aggregates_set(call.context, node, wanted, generation)
        except GenerationConflict:
            if attempt == _PLACEMENT_TRIES - 1:
                raise
            continue
        return


# ---------------------------------------------------------------- checks


def _check_zone_name(zone: str | None) -> None:
    """Whether servers can ask for a zone of that name, which comes by this door too. Raises `Fault` 400."""
    if zone and not FORMATS["az_name"](zone):
        raise bad_request(f"Invalid input for field/attribute {_ZONE}. Value: {zone}. {zone!r} is not a 'az_name'")


def _check_zone(
    call: Call[Services], row: dict[str, Any], zone: str | None, hosts: list[str], *, no_servers: bool
) -> None:
    """A host has one zone, and servers do not change theirs. Raises the InvalidAggregateAction family."""
    name = row["name"]
    if not zone:
        raise exceptions.InvalidAggregateActionUpdate(
            aggregate_id=row["id"], reason=f"Aggregate {name} does not support empty named availability zone"
        )
    others = [
        other["metadata"][_ZONE]
        for other in call.services.cells.api.query(aggregates.aggregate_list, key=_ZONE)
        if other["id"] != row["id"] and other["metadata"][_ZONE] != zone and set(other["hosts"]) & set(hosts)
    ]
    if others:
        raise exceptions.InvalidAggregateActionUpdate(
            aggregate_id=row["id"], reason=f"One or more hosts already in availability zone(s) {others}"
        )
    if no_servers and hosts and row["metadata"].get(_ZONE) != zone and _has_servers(call, hosts):
        raise exceptions.InvalidAggregateActionUpdate(
            aggregate_id=row["id"], reason="One or more hosts contain instances in this zone"
        )


def _check_servers_stay(call: Call[Services], row: dict[str, Any], host: str) -> None:
    """Whether the servers of a host that joins keep their zone. Raises InvalidAggregateActionAdd."""
    zone = row["metadata"].get(_ZONE)
    if not zone:
        return
    known = call.services.cells.api.query(aggregates.availability_zones_by_host, [host])
    present = known.get(host, call.services.conf.default_availability_zone)
    if present != zone and _has_servers(call, [host]):
        raise exceptions.InvalidAggregateActionAdd(
            aggregate_id=row["id"], reason=f"Host {host} has servers, which cannot move to another availability zone"
        )


def _has_servers(call: Call[Services], hosts: list[str]) -> bool:
    """Raises `Fault` 500 where a cell does not answer."""
    cells = call.services.cells

    def count(cell: Cell) -> int:
        return cell.database.query(instances.instance_count, {"host": hosts, "deleted": False, "soft_deleted": True})

    answers = cells.scatter(count, cells.all(include_cell0=False))
    if any(isinstance(answer, CellDown) for answer in answers.values()):
        raise errors.no_answer()
    return any(answers.values())


def _aggregate(call: Call[Services], id: str) -> dict[str, Any]:
    number = numbers.identifier(id, exceptions.AggregateNotFound(aggregate_id=id).format_message())
    row = call.services.cells.api.query(aggregates.aggregate_get, number)
    if row is None:
        raise exceptions.AggregateNotFound(aggregate_id=number)
    return row


def _changed(call: Call[Services], number: int) -> dict[str, Any]:
    _tell(call, number)
    return {"aggregate": _view(_aggregate(call, str(number)))}


def _tell(call: Call[Services], number: int) -> None:
    """Let the schedulers know; they also look for themselves, so that a lost message is made up for."""
    changed = call.services.cells.api.query(objects_of.get_by_id, call.context, number)
    call.services.scheduler().update_aggregates(call.context, aggregates=[changed])


def _view(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "uuid": row["uuid"],
        "name": row["name"],
        _ZONE: row["metadata"].get(_ZONE),
        "hosts": row["hosts"],
        "metadata": row["metadata"],
        "created_at": _time(row["created_at"]),
        "updated_at": _time(row["updated_at"]),
        "deleted": False,
        "deleted_at": None,
    }


def _time(when: Any) -> str | None:
    return f"{when:%Y-%m-%dT%H:%M:%S.%f}" if when else None


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.CREATE, create),
    Binding(contract.SHOW, show),
    Binding(contract.UPDATE, update),
    Binding(contract.DELETE, delete),
    Binding(contract.ADD_HOST, add_host),
    Binding(contract.REMOVE_HOST, remove_host),
    Binding(contract.SET_METADATA, set_metadata),
]
