"""Services: list them over all cells, take one out of use and back, forget one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kilonova.api import hosts
from kilonova.api.services import Services
from kilonova.base import clock
from kilonova.contract import exceptions
from kilonova.contract.nouns import services as contract
from kilonova.db.api import host_mappings
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.cells import Cell, CellDown
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import Fault, bad_request, conflict, not_found

BY_UUID_SINCE: Final = 53
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_Row = Mapping[str, Any]


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.LIST_POLICY)
    binary, host = call.first("binary"), call.first("host")
    rows = [row for _, row in _all(call) if binary in (None, row["binary"]) and host in (None, row["host"])]
    zones = _zones(call, rows)
    return {"services": [_shown(call, row, zones) for row in rows]}


def _all(call: Call[Services]) -> Iterator[tuple[Cell, _Row]]:
    """Every service with its cell, each cell asked once."""
    cells = call.services.cells

    def read(cell: Cell) -> list[dict[str, Any]]:
        return cell.database.query(services.service_list)

    for uuid, answer in cells.scatter(read).items():
        if not isinstance(answer, CellDown):
            yield from ((cells.cell(uuid), row) for row in answer)


def _zones(call: Call[Services], rows: list[_Row]) -> dict[str, str]:
    names = {row["host"] for row in rows if row["binary"] == hosts.COMPUTE}
    with call.services.cells.api.read() as tx:
        return hosts.zones(tx, names)


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
    if by_uuid and not _is_uuid(wanted):
        raise bad_request(f"Invalid uuid {wanted}")
    if not by_uuid and not wanted.isdigit():
        raise bad_request(f"Invalid id {wanted}")
    found = [(cell, row) for cell, row in _all(call) if wanted in ((row["uuid"],) if by_uuid else (str(row["id"]),))]
    if not found:
        raise not_found(f"Service {wanted} could not be found.")
    if len(found) > 1:
        raise bad_request(f"Service {wanted} is not unique; use its uuid (microversion 2.53).")
    return found[0]


def _is_uuid(text: str) -> bool:
    import uuid

    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def update(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_POLICY)
    if call.version >= BY_UUID_SINCE:
        return _update(call, id)
    return _act(call, id)


def _update(call: Call[Services], id: str) -> dict[str, Any]:
    cell, row = _find(call, id)
    if row["binary"] != hosts.COMPUTE:
        raise bad_request(f"Updating a {row['binary']} service is not supported. Must be nova-compute.")
    values = _values(call.body, row)
    if not values:
        raise bad_request("No updates were requested. Fields 'status' or 'forced_down' should be specified.")
    changed = _write(call, cell, row, values)
    return {"service": _shown(call, changed, _zones(call, [changed]))}


def _values(body: Mapping[str, Any], row: _Row) -> dict[str, Any]:
    values: dict[str, Any] = {}
    status, reason = body.get("status"), body.get("disabled_reason")
    if reason is not None and status != "disabled":
        raise bad_request("Specifying disabled_reason requires that the status is disabled.")
    if status is not None:
        values |= {"disabled": status == "disabled", "disabled_reason": reason}
    if "forced_down" in body:
        values["forced_down"] = _truth(body["forced_down"])
    return values


def _truth(value: Any) -> bool:
    return str(value).lower() not in _FALSE


def _write(call: Call[Services], cell: Cell, row: _Row, values: dict[str, Any]) -> dict[str, Any]:
    if not cell.database.run(services.service_update, row["id"], values):
        raise not_found(f"Service {row['uuid']} could not be found.")
    if "disabled" in values and values["disabled"] != bool(row["disabled"]):
        _tell_host(call, cell, row["host"], enabled=not values["disabled"])
    return {**row, **values}


def _tell_host(call: Call[Services], cell: Cell, host: str, *, enabled: bool) -> None:
    """The host says so to Placement. One that is down learns it when it comes back."""
    if not hosts.is_up(call.services.conf, cell, host):
        return
    from kilonova.wire.rpc.errors import RPC_LOST

    try:
        call.services.compute(cell).set_host_enabled(call.context, host=host, enabled=enabled)
    except (NotImplementedError, *RPC_LOST):
        # The record is what counts; the host reads it at its next look at its resources.
        return


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
    found = [(c, row) for c, row in _all(call) if (row["host"], row["binary"]) == (host, binary)]
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
        raise not_found(f"Service {id} could not be found.")


def _delete_compute(call: Call[Services], cell: Cell, row: _Row) -> None:
    host = row["host"]
    if cell.database.query(instances.instance_uuids_by_host, [host])[host]:
        raise conflict("Unable to delete compute service that is hosting instances. Migrate or delete them first.")
    nodes = cell.database.query(compute_nodes.compute_node_list, host=host)
    clients = call.services.clients
    for node in nodes:
        try:
            clients.placement.provider_delete(call.context, node["uuid"])
        except exceptions.NovaException as error:
            raise Fault(409, f"The resource provider of {host} cannot be deleted: {error.format_message()}") from None
    cell.database.run(_forget, row, nodes)
    with call.services.cells.api.write() as tx:
        host_mappings.host_mapping_delete(tx, host)


def _forget(tx: Tx, row: _Row, nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        compute_nodes.compute_node_delete(tx, node["id"])
    services.service_delete(tx, row["id"])


ROUTES = [Binding(contract.LIST, index), Binding(contract.UPDATE, update), Binding(contract.DELETE, delete)]
