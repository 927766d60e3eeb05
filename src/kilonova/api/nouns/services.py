"""Services: list them over all cells, take one out of use and back, forget one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from kilonova.api import errors, hosts, numbers
from kilonova.api.services import Services
from kilonova.base import clock, ids
from kilonova.clients.placement.client import InventoryInUse
from kilonova.contract import exceptions, objects
from kilonova.contract.nouns import services as contract
from kilonova.db.api import aggregates, host_mappings
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.cells import Cell, CellDown
from kilonova.db.engine import Tx
from kilonova.db.objects import aggregate as aggregate_objects
from kilonova.db.objects import migration as migrations
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request, conflict, not_found

LOG = logging.getLogger(__name__)
BY_UUID_SINCE: Final = 53
PARTIAL_SINCE: Final = 69

_FALSE: Final = frozenset({"0", "false", "no", "off"})
_Row = Mapping[str, Any]


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.LIST_POLICY)
    answers = _ask(call, services.service_list)
    rows = [row for _, row in _found(call, answers) if row["binary"] not in hosts.APIS and _wanted(call, row)]
    zones = _zones(call, rows)
    shown = [_shown(call, row, zones) for row in rows]
    down = {uuid for uuid, answer in answers.items() if isinstance(answer, CellDown)}
    if down and call.version >= PARTIAL_SINCE:
        shown += [row for row in _unreachable(call, down) if _wanted(call, row)]
    return {"services": shown}


def _wanted(call: Call[Services], row: _Row) -> bool:
    return all(call.last(name) in (None, "", row[name]) for name in ("binary", "host"))


Answers = Mapping[str, list[dict[str, Any]] | CellDown]


def _ask(call: Call[Services], read: Callable[[Tx], list[dict[str, Any]]]) -> Answers:
    """What each cell has, by cell uuid, each asked once."""
    return call.services.cells.scatter(lambda cell: cell.database.query(read))


def _found(call: Call[Services], answers: Answers) -> Iterator[tuple[Cell, _Row]]:
    for uuid, answer in answers.items():
        if not isinstance(answer, CellDown):
            yield from ((call.services.cells.cell(uuid), row) for row in answer)


def _known(call: Call[Services], read: Callable[[Tx], list[dict[str, Any]]]) -> list[tuple[Cell, _Row]]:
    """What the cells have. Raises `Fault` 500 when they have nothing, and some do not answer."""
    answers = _ask(call, read)
    found = list(_found(call, answers))
    if not found and any(isinstance(answer, CellDown) for answer in answers.values()):
        raise errors.no_answer()
    return found


def _unreachable(call: Call[Services], cells: Collection[str]) -> list[dict[str, Any]]:
    """The compute services of cells that do not answer, as far as they are known outside of them."""
    mapped = call.services.cells.api.query(host_mappings.host_mapping_list)
    return [
        {"binary": hosts.COMPUTE, "host": row["host"], "status": "UNKNOWN"}
        for row in mapped
        if row["cell_uuid"] in cells
    ]


def _zones(call: Call[Services], rows: list[_Row]) -> dict[str, str]:
    names = {row["host"] for row in rows if row["binary"] == hosts.COMPUTE}
    return call.services.cells.api.query(hosts.zones, names)


def _shown(call: Call[Services], row: _Row, zones: Mapping[str, str]) -> dict[str, Any]:
    conf = call.services.conf
    own = zones.get(row["host"], conf.default_availability_zone)
    return {
        "binary": row["binary"],
        "host": row["host"],
        "id": row["uuid"] if call.version >= BY_UUID_SINCE else row["id"],
        "zone": own if row["binary"] == hosts.COMPUTE else conf.internal_service_availability_zone,
        "status": "disabled" if row["disabled"] else "enabled",
        "state": "up" if services.is_up(dict(row), conf.service_down_time) else "down",
        "updated_at": _iso(row["updated_at"]),
        "disabled_reason": row["disabled_reason"],
        "forced_down": bool(row["forced_down"]),
    }


def _iso(when: Any) -> str | None:
    return clock.naive(when).strftime("%Y-%m-%dT%H:%M:%S.%f") if when else None  # type: ignore[union-attr]


def _find(call: Call[Services], wanted: str) -> tuple[Cell, _Row]:
    """The service of a uuid, before 2.53 of a number. Raises `Fault` 400, 404."""
    by_uuid = call.version >= BY_UUID_SINCE
    if by_uuid and not ids.is_uuid(wanted):
        raise bad_request(f"Invalid uuid {wanted}")
    missing = exceptions.ServiceNotFound(service_id=wanted).format_message()
    number = 0 if by_uuid else numbers.identifier(wanted, missing)

    def read(tx: Tx) -> list[dict[str, Any]]:
        row = services.service_get_by_uuid(tx, wanted) if by_uuid else services.service_get(tx, number)
        return [] if row is None else [row]

    found = _known(call, read)
    if not found:
        raise not_found(missing)
    if len(found) > 1:
        raise bad_request(f"Service id {wanted} refers to multiple services; use the uuid (microversion 2.53).")
    return found[0]


def update(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_POLICY)
    if call.version >= BY_UUID_SINCE:
        return _update(call, id)
    return _act(call, id)


def _update(call: Call[Services], id: str) -> dict[str, Any]:
    cell, row = _find(call, id)
    _check_binary(row["binary"])
    values = _values(call.body)
    if not values:
        raise bad_request("No updates were requested. Fields 'status' or 'forced_down' should be specified.")
    changed = _write(call, cell, row, values)
    return {"service": _shown(call, changed, _zones(call, [changed]))}


def _check_binary(binary: str) -> None:
    if binary != hosts.COMPUTE:
        raise bad_request(
            f"Updating a {binary} service is not supported. Only {hosts.COMPUTE} services can be updated."
        )


def _values(body: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    status, reason = body.get("status"), body.get("disabled_reason")
    if reason is not None and status == "enabled":
        raise bad_request("Specifying 'disabled_reason' with status 'enabled' is invalid.")
    if status is not None:
        values |= {"disabled": status == "disabled", "disabled_reason": reason}
    if "forced_down" in body:
        values["forced_down"] = _truth(body["forced_down"])
    return values


def _truth(value: Any) -> bool:
    return str(value).lower() not in _FALSE


def _write(call: Call[Services], cell: Cell, row: _Row, values: dict[str, Any]) -> dict[str, Any]:
    if values.get("forced_down") is False:
        _check_evacuated(call, cell, row["host"])
    if not cell.database.run(services.service_update, row["id"], values):
        raise not_found(exceptions.ServiceNotFound(service_id=row["uuid"]).format_message())
    if "disabled" in values and values["disabled"] != bool(row["disabled"]):
        _tell_host(call, cell, row["host"], enabled=not values["disabled"])
    return {**row, **values}


def _check_evacuated(call: Call[Services], cell: Cell, host: str) -> None:
    """A host whose servers were evacuated must have cleaned up after them before it counts as up."""
    asked = {"source_compute": host, "status": "done", "migration_type": "evacuation"}
    if cell.database.query(migrations.get_by_filters, call.context, asked).objects:
        raise bad_request(
            f"Unable to force up host {host}: evacuations from it are `done` but not `completed`. Restart its compute "
            "service, which completes them, and repeat the request."
        )


def _tell_host(call: Call[Services], cell: Cell, host: str, *, enabled: bool) -> None:
    """The host says so to Placement. One that is down learns it when it comes back."""
    if not hosts.is_up(call.services.conf, cell, host):
        return
    try:
        call.services.compute(cell).set_host_enabled(call.context, host=host, enabled=enabled)
    except Exception:
        # The record is what counts; the host reads it at its next look at its resources.
        LOG.exception("host %s could not tell Placement whether it may be used", host)


def _act(call: Call[Services], action: str) -> dict[str, Any]:
    """Before 2.53: enable, disable, disable-log-reason and force-down, by host and binary."""
    body = call.body
    changes: dict[str, dict[str, Any]] = {
        "enable": {"disabled": False, "disabled_reason": None},
        "disable": {"disabled": True, "disabled_reason": None},
        "disable-log-reason": {"disabled": True, "disabled_reason": body.get("disabled_reason")},
        "force-down": {"forced_down": _truth(body.get("forced_down"))},
    }
    if action not in changes or (action == "force-down" and call.version < 11):
        raise not_found(f"Unknown action {action}")
    if action == "disable-log-reason" and not body.get("disabled_reason"):
        raise bad_request("Missing disabled reason field")
    if action == "force-down" and "forced_down" not in body:
        raise bad_request("Missing forced_down field")
    host, binary = body["host"], body["binary"]
    _check_binary(binary)
    found = _known(call, lambda tx: services.service_list(tx, binary=binary, host=host))
    if not found:
        raise not_found(exceptions.HostBinaryNotFound(host=host, binary=binary).format_message())
    values = changes[action]
    _write(call, *found[0], values)
    if action == "force-down":
        return {"service": {"host": host, "binary": binary, "forced_down": values["forced_down"]}}
    shown = {"host": host, "binary": binary, "status": "disabled" if values["disabled"] else "enabled"}
    if action == "disable-log-reason":
        shown["disabled_reason"] = values["disabled_reason"]
    return {"service": shown}


def delete(call: Call[Services], id: str) -> None:
    call.authorize(contract.DELETE_POLICY)
    cell, row = _find(call, id)
    if row["binary"] == hosts.COMPUTE:
        _delete_compute(call, cell, row)
    elif not cell.database.run(services.service_delete, row["id"]):
        raise not_found(exceptions.ServiceNotFound(service_id=id).format_message())


def _delete_compute(call: Call[Services], cell: Cell, row: _Row) -> None:
    """Placement first: when it refuses, nothing has changed, and the whole may be repeated."""
    nodes = cell.database.query(compute_nodes.compute_node_list, host=row["host"])
    cell.database.query(_check_idle, call, row["host"], nodes)
    for node in nodes:
        _delete_providers(call, node["uuid"])
    cell.database.run(_forget, call, row, nodes)
    left = call.services.cells.api.run(_unmap, row["host"])
    for aggregate in left:
        call.services.scheduler().update_aggregates(call.context, aggregates=[_aggregate(call, aggregate)])


def _check_idle(tx: Tx, call: Call[Services], host: str, nodes: list[dict[str, Any]]) -> None:
    """Raises `Fault` 409 while servers are on the host or move to or from it."""
    if instances.instance_uuids_by_host(tx, [host])[host]:
        raise conflict(
            "Unable to delete compute service that is hosting instances. Migrate or delete the instances first."
        )
    for node in nodes:
        moving = migrations.get_in_progress_by_host_and_node(tx, call.context, host, node["hypervisor_hostname"])
        if moving.objects:
            raise conflict(
                "Unable to delete compute service that has in-progress migrations. Complete the migrations or delete "
                "the instances first."
            )


def _delete_providers(call: Call[Services], uuid: str) -> None:
    """The node's providers, children before their parents."""
    placement = call.services.clients.placement
    try:
        for provider in reversed(placement.provider_tree(call.context, uuid)):
            placement.provider_delete(call.context, provider.uuid)
    except InventoryInUse:
        raise conflict(
            f"The resource provider {uuid} still has allocations in Placement; delete them or what they are for first."
        ) from None


def _forget(tx: Tx, call: Call[Services], row: _Row, nodes: list[dict[str, Any]]) -> None:
    _check_idle(tx, call, row["host"], nodes)
    for node in nodes:
        compute_nodes.compute_node_delete(tx, node["id"])
    services.service_delete(tx, row["id"])


def _unmap(tx: Tx, host: str) -> list[int]:
    """Take the host out of its cell and its aggregates; the numbers of these."""
    numbers = [row["id"] for row in aggregates.aggregate_list(tx, host=host)]
    for number in numbers:
        aggregates.aggregate_host_delete(tx, number, host)
    host_mappings.host_mapping_delete(tx, host)
    return numbers


def _aggregate(call: Call[Services], number: int) -> objects.Aggregate:
    return call.services.cells.api.query(aggregate_objects.get_by_id, call.context, number)


ROUTES = [Binding(contract.LIST, index), Binding(contract.UPDATE, update), Binding(contract.DELETE, delete)]
