"""Hypervisors: the compute nodes of all cells, each with its service. A fixed number of statements per cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kilonova.api import errors, hosts, numbers
from kilonova.api.paging import page
from kilonova.api.servers.view import instance_name
from kilonova.api.services import Services
from kilonova.base import ids
from kilonova.contract import exceptions
from kilonova.contract.nouns import hypervisors as contract
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.cells import Cell, CellDown
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import Fault, bad_request, not_found
from kilonova.wire.rpc.errors import RPC_LOST

_json: Final = msgspec.json.Decoder().decode
_Row = dict[str, Any]
CPU_OBJECT_SINCE: Final = 28
PAGED_SINCE: Final = 33
BY_UUID_SINCE: Final = 53
EMPTY_SERVERS_SINCE: Final = 75
UPTIME_SINCE: Final = 88
_OURS: Final = 500
_TRUE: Final = frozenset({"1", "true", "on", "yes"})
_DETAILS: Final = ("hypervisor_type", "hypervisor_version", "host_ip")


# What an instance's name may be made of.
_NAMING: Final = ("id", "uuid", "display_name", "hostname", "project_id", "user_id", "host")


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A node, the service of its host and, where they are wanted, the servers on it (``uuid``, ``name``)."""

    cell: Cell
    node: _Row
    service: _Row | None
    servers: list[dict[str, str]] | None = None


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads hypervisors with what is wanted of them."""

    call: Call[Services]
    with_servers: bool = False

    def matching(self, pattern: str) -> list[Hypervisor]:
        """Those whose name contains the pattern. Raises `Fault` 404 when there are none, 500 when nobody knows."""
        found, all_answered = self._everywhere(
            lambda tx, cell: compute_nodes.compute_node_list(tx, hypervisor_match=pattern)
        )
        if not found and not all_answered:
            raise errors.no_answer()
        if not found:
            raise not_found(f"No hypervisor matching '{pattern}' could be found.")
        return found

    def page(self, limit: int, marker: str | None) -> list[Hypervisor]:
        """A page in the order of cells and numbers. Raises `Fault` 400 for an unknown marker."""
        if limit == 0:
            return []
        last = None if marker is None else self._marker(marker)
        cells = self.call.services.cells.all(include_cell0=False)
        if last is not None:
            cells = cells[[cell.uuid for cell in cells].index(last.cell.uuid) :]

        def nodes(tx: Tx, cell: Cell) -> list[_Row]:
            after = last.node["id"] if last is not None and last.cell.uuid == cell.uuid else None
            return compute_nodes.compute_node_list(tx, limit=limit, marker=after)

        return self._everywhere(nodes, cells)[0][:limit]

    def _marker(self, marker: str) -> Hypervisor:
        try:
            return self.one(marker)
        except Fault as fault:
            if fault.code >= _OURS:
                raise
            raise bad_request(f"marker [{marker}] not found") from None

    def one(self, id: str) -> Hypervisor:
        """The node of a uuid, before 2.53 of a number. Raises `Fault` 400, 404, 500."""
        by_uuid = self.call.version >= BY_UUID_SINCE
        if by_uuid and not ids.is_uuid(id):
            raise bad_request(f"Invalid uuid {id}")
        missing = f"Hypervisor with ID '{id}' could not be found."
        is_number = not by_uuid and id.isascii() and id.isdigit()
        number = numbers.identifier(id, missing) if is_number else -1

        def nodes(tx: Tx, cell: Cell) -> list[_Row]:
            if by_uuid:
                row = compute_nodes.compute_node_get_by_uuid(tx, id)
            else:
                row = compute_nodes.compute_node_get(tx, number)
            return [] if row is None else [row]

        possible = by_uuid or number >= 0
        found, all_answered = self._everywhere(nodes) if possible else ([], True)
        if not found and not all_answered:
            raise errors.no_answer()
        if not found or found[0].service is None:
            raise not_found(missing)
        return found[0]

    def _everywhere(
        self, nodes: Callable[[Tx, Cell], list[_Row]], cells: Iterable[Cell] | None = None
    ) -> tuple[list[Hypervisor], bool]:
        """The nodes of cells with what belongs to them, cell by cell, and whether all cells answered."""
        known = self.call.services.cells

        def read(cell: Cell) -> list[Hypervisor]:
            return cell.database.query(lambda tx: self._furnished(tx, cell, nodes(tx, cell)))

        answers = known.scatter(read, known.all(include_cell0=False) if cells is None else cells).values()
        found = [answer for answer in answers if not isinstance(answer, CellDown)]
        return [one for answer in found for one in answer], len(found) == len(answers)

    def _furnished(self, tx: Tx, cell: Cell, nodes: list[_Row]) -> list[Hypervisor]:
        names = {node["host"] for node in nodes}
        if not names:
            return []
        by_host = {row["host"]: row for row in services.service_list(tx, binary=hosts.COMPUTE, hosts=names)}
        servers = self._servers(tx, names) if self.with_servers else {}
        return [Hypervisor(cell, node, by_host.get(node["host"]), servers.get(node["host"])) for node in nodes]

    def _servers(self, tx: Tx, names: Iterable[str]) -> dict[str, list[dict[str, str]]]:
        found: dict[str, list[dict[str, str]]] = {name: [] for name in names}
        template = self.call.services.conf.instance_name_template
        alive = {"host": list(found), "deleted": False, "soft_deleted": True}
        for row in instances.instance_list(tx, alive, [("id", "asc")], columns=_NAMING):
            found[row["host"]].append({"uuid": row["uuid"], "name": instance_name(row, template)})
        return found


# ---------------------------------------------------------------- views


def _brief(call: Call[Services], one: Hypervisor) -> dict[str, Any]:
    node, service = one.node, one.service or {}
    shown = {
        "id": node["uuid"] if call.version >= BY_UUID_SINCE else node["id"],
        "hypervisor_hostname": node["hypervisor_hostname"],
        "state": "up" if services.is_up(service, call.services.conf.service_down_time) else "down",
        "status": "disabled" if service["disabled"] else "enabled",
    }
    # An empty list is shown only to those who know that it may be empty.
    if one.servers or (one.servers is not None and call.version >= EMPTY_SERVERS_SINCE):
        shown["servers"] = one.servers
    return shown


def _whole(call: Call[Services], one: Hypervisor, *, ask: bool = False) -> dict[str, Any]:
    node, service = one.node, one.service or {}
    by_uuid = call.version >= BY_UUID_SINCE
    shown = _brief(call, one) | {name: node[name] for name in _DETAILS}
    shown["service"] = {
        "id": service["uuid"] if by_uuid else service["id"],
        "host": node["host"],
        "disabled_reason": service["disabled_reason"],
    }
    if call.version >= UPTIME_SINCE:
        shown["uptime"] = _published_uptime(call, one, ask=ask)
        return shown
    shown |= {name: node[name] for name in compute_nodes.AMOUNTS}
    info = node["cpu_info"] or ""
    shown["cpu_info"] = info if call.version < CPU_OBJECT_SINCE else _json(info) if info else {}
    return shown


def _published_uptime(call: Call[Services], one: Hypervisor, *, ask: bool) -> str | None:
    """What the host last said. One that says nothing of it (an older one) is asked, if it is the only one shown."""
    stats = _json(one.node["stats"]) if one.node["stats"] else {}
    if "uptime" in stats or not ask:
        uptime: str | None = stats.get("uptime")
        return uptime
    try:
        return _asked_uptime(call, one)
    except (NotImplementedError, exceptions.ComputeServiceUnavailable, *RPC_LOST):
        return None


def _asked_uptime(call: Call[Services], one: Hypervisor) -> str:
    """Raises NotImplementedError, ComputeServiceUnavailable and `RPC_LOST`."""
    host = one.node["host"]
    if not services.is_up(one.service or {}, call.services.conf.service_down_time):
        raise exceptions.ComputeServiceUnavailable(host=host)
    uptime: str = call.services.compute(one.cell).get_host_uptime(call.context, host=host)
    return uptime


# ---------------------------------------------------------------- requests


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.LIST_POLICY)
    return _list(call, _brief)


def detail(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.DETAIL_POLICY)
    return _list(call, _whole)


def _list(call: Call[Services], view: Callable[[Call[Services], Hypervisor], dict[str, Any]]) -> dict[str, Any]:
    reader = Reader(call, _wants_servers(call))
    pattern = call.last("hypervisor_hostname_pattern")
    if pattern is not None:
        if "limit" in call.query or "marker" in call.query:
            raise bad_request("Paging over hypervisors with the hypervisor_hostname_pattern is not supported.")
        return {"hypervisors": _shown(call, reader.matching(pattern), view)}
    if call.version < PAGED_SINCE:
        return {"hypervisors": _shown(call, reader.page(call.services.conf.api.max_limit, None), view)}
    wanted = page(call)
    found = reader.page(wanted.limit, wanted.marker)
    body: dict[str, Any] = {"hypervisors": _shown(call, found, view)}
    if wanted.full(len(found)):
        last = found[-1].node
        body["hypervisors_links"] = [call.next_link(last["uuid"] if call.version >= BY_UUID_SINCE else str(last["id"]))]
    return body


def _shown(
    call: Call[Services], found: Iterable[Hypervisor], view: Callable[[Call[Services], Hypervisor], dict[str, Any]]
) -> list[dict[str, Any]]:
    """A node whose service was deleted is left out: it is a leftover of its host."""
    return [view(call, one) for one in found if one.service is not None]


def _wants_servers(call: Call[Services]) -> bool:
    return (call.last("with_servers") or "").lower() in _TRUE


def show(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SHOW_POLICY)
    return {"hypervisor": _whole(call, Reader(call, _wants_servers(call)).one(id), ask=True)}


def search(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SEARCH_POLICY)
    return {"hypervisors": _shown(call, Reader(call).matching(id), _brief)}


def servers(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SERVERS_POLICY)
    return {"hypervisors": _shown(call, Reader(call, with_servers=True).matching(id), _brief)}


def uptime(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPTIME_POLICY)
    one = Reader(call).one(id)
    try:
        found = _asked_uptime(call, one)
    except NotImplementedError:
        raise Fault(501, "The hypervisor of this host does not tell its uptime.") from None
    except exceptions.ComputeServiceUnavailable as error:
        raise bad_request(error.format_message()) from None
    except RPC_LOST:
        raise bad_request(exceptions.ComputeServiceUnavailable(host=one.node["host"]).format_message()) from None
    return {"hypervisor": _brief(call, one) | {"uptime": found}}


def statistics(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.STATISTICS_POLICY)
    cells = call.services.cells

    def read(cell: Cell) -> dict[str, Any]:
        return cell.database.query(compute_nodes.compute_node_statistics)

    answers = cells.scatter(read, cells.all(include_cell0=False)).values()
    sums: Counter[str] = Counter(dict.fromkeys((*compute_nodes.AMOUNTS, "count"), 0))
    for answer in answers:
        if not isinstance(answer, CellDown):
            sums.update(answer)
    return {"hypervisor_statistics": dict(sums)}


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.DETAIL, detail),
    Binding(contract.STATISTICS, statistics),
    Binding(contract.SHOW, show),
    Binding(contract.UPTIME, uptime),
    Binding(contract.SEARCH, search),
    Binding(contract.SERVERS, servers),
]
