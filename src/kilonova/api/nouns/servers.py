"""Servers: list, detail, show, update."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kilonova.api import hosts
from kilonova.api.paging import Page, page
from kilonova.api.servers import filters, find, hostnames, listing, reading, view
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.nouns import servers as contract
from kilonova.db.api import build_requests, instance_groups, instance_mappings, request_specs
from kilonova.db.cell import instances
from kilonova.db.engine import Tx
from kilonova.db.outcomes import Missing
from kilonova.wire.http.call import Binding, Call, Reply
from kilonova.wire.http.faults import Fault

_PARTIAL_RECORDS_SINCE: Final = 69
_ROUNDS: Final = 3
_BRIEF_COLUMNS: Final = ("uuid", "display_name")


def index(call: Call[Services]) -> Any:
    call.authorize(contract.INDEX_POLICY)
    listed, wanted, partial = _listed(call, contract.ALL_TENANTS_INDEX, (), _BRIEF_COLUMNS)
    scene = reading.sight(call, contract.IN_DETAIL)
    entries = [view.unreachable(mapping, scene, detail=False) for mapping in partial]
    entries += [view.brief(record, scene) for record in listed.records]
    return _page(call, entries, wanted)


def detail(call: Call[Services]) -> Any:
    call.authorize(contract.DETAIL_POLICY)
    scene = reading.sight(call, contract.IN_DETAIL)
    parts = reading.parts(call, contract.IN_DETAIL, host_status=scene.host_status)
    listed, wanted, partial = _listed(call, contract.ALL_TENANTS_DETAIL, parts, reading.COLUMNS)
    reading.furnish(call, scene, listed.records, contract.IN_DETAIL)
    entries = [view.unreachable(mapping, scene, detail=True) for mapping in partial]
    entries += [view.show(record, scene, contract.IN_DETAIL) for record in listed.records]
    return _page(call, entries, wanted)


def _listed(
    call: Call[Services], all_tenants_rule: str, parts: Any, columns: Any
) -> tuple[listing.Listed, Page, list[dict[str, Any]]]:
    """A page of records, and the mappings of servers in cells that do not answer (where they are shown)."""
    wanted = page(call)
    given = filters.options(call)
    order = filters.sort(call)
    try:
        asked = filters.filters(call, given, all_tenants_rule)
    except filters.NothingMatches:
        return listing.Listed(), wanted, []
    # Where something is asked that only the records know, nothing can be said of those that cannot be read.
    paged = any(name in call.query for name in ("limit", "marker", "sort_key", "sort_dir"))
    partly = call.version >= _PARTIAL_RECORDS_SINCE and not paged and not set(given) - {"all_tenants"}
    query = listing.Query(filters=asked, sort=order, page=wanted, parts=parts, columns=columns, partly=partly)
    listed = listing.servers(call, query)
    if not partly or not listed.down:
        return listed, wanted, []
    partial = call.services.cells.api.query(
        instance_mappings.instance_mapping_list_in_down_cells,
        listed.down,
        project_id=asked.get("project_id"),
        limit=max(wanted.limit - len(listed.records), 0),
    )
    return listed, wanted, partial


def _page(call: Call[Services], entries: list[dict[str, Any]], wanted: Page) -> Reply:
    body: dict[str, Any] = {"servers": entries}
    if wanted.full(len(entries)):
        body["servers_links"] = [call.next_link(entries[-1]["id"])]
    return Reply(body, ready=True)


def show(call: Call[Services], id: str) -> Reply:
    try:
        found = find.server(call, id, reading.parts(call, contract.SERVER), columns=reading.COLUMNS)
    except find.Unreachable as lost:
        return Reply({"server": _unreachable(call, lost.mapping)}, ready=True)
    return Reply({"server": shown(call, contract.SHOW_POLICY, found.record, contract.SERVER)}, ready=True)


def shown(call: Call[Services], rule: str, record: dict[str, Any], shape: Any) -> dict[str, Any]:
    """One server's document for whoever passes ``rule``."""
    call.authorize(rule, {"project_id": record["project_id"]})
    scene = reading.sight(call, shape, record["project_id"])
    reading.furnish(call, scene, [record], shape)
    return view.show(record, scene, shape)


def _unreachable(call: Call[Services], mapping: dict[str, Any]) -> dict[str, Any]:
    call.authorize(contract.SHOW_POLICY, {"project_id": mapping["project_id"]})
    if call.version < _PARTIAL_RECORDS_SINCE:
        raise Fault(500, "The cell of this server does not answer; try again later.")
    uuid = mapping["instance_uuid"]
    if mapping["queued_for_delete"]:
        raise exceptions.InstanceNotFound(instance_id=uuid)

    def known(tx: Tx) -> tuple[dict[str, Any] | None, dict[str, list[str]]]:
        groups = instance_groups.instance_group_uuids_by_member(tx, [uuid]) if call.version >= 71 else {}
        return request_specs.request_spec_get(tx, uuid), groups

    row, groups = call.services.cells.api.query(known)
    if row is None:
        raise exceptions.InstanceNotFound(instance_id=uuid)
    scene = reading.sight(call, contract.SERVER, mapping["project_id"])
    scene.groups = groups
    return view.unreachable_whole(mapping, find.of_request_spec(row, mapping), scene)


def update(call: Call[Services], id: str) -> Reply:
    given = call.body["server"]
    parts = reading.parts(call, contract.UPDATED)
    for _ in range(_ROUNDS):
        found = find.server(call, id, parts, columns=reading.COLUMNS)
        record = found.record
        call.authorize(contract.UPDATE_POLICY, {"project_id": record["project_id"], "user_id": record["user_id"]})
        if "pinned_availability_zone" in given:
            _pin(call, record, given["pinned_availability_zone"])
        if _write(call, found, _changed_columns(given)):
            break
    else:
        raise exceptions.InstanceNotFound(instance_id=id)
    record = record | _changed_columns(given)
    scene = reading.sight(call, contract.UPDATED, record["project_id"])
    reading.furnish(call, scene, [record], contract.UPDATED)
    return Reply({"server": view.show(record, scene, contract.UPDATED)}, ready=True)


def _write(call: Call[Services], found: find.Found, values: dict[str, Any]) -> bool:
    """Whether the record, or the build request while there is no record, took the values."""
    if not values:
        return True
    uuid = found.record["uuid"]
    if found.cell is None:
        return call.services.cells.api.run(_change_request, uuid, values)
    outcome = found.cell.database.run(instances.instance_update, uuid, values)
    return not isinstance(outcome, Missing)


def _change_request(tx: Tx, uuid: str, values: dict[str, Any]) -> bool:
    """Write into the server that a build request carries; False when it has become a record meanwhile."""
    row = build_requests.build_request_get(tx, uuid)
    if row is None:
        return False
    instance = msgspec.json.decode(row["instance"])
    instance["nova_object.data"] |= values
    changes = set(instance.get("nova_object.changes", ())) | set(values)
    instance["nova_object.changes"] = sorted(changes)
    return build_requests.build_request_update(tx, uuid, {"instance": json.dumps(instance)})


def _pin(call: Call[Services], record: dict[str, Any], wanted: str | None) -> None:
    """Bind a server to the zone it is in, or let it go (None). Raises `Fault` 409 for another zone."""

    def write(tx: Tx) -> None:
        row = request_specs.request_spec_get(tx, record["uuid"])
        if row is None:
            raise exceptions.RequestSpecNotFound(instance_uuid=record["uuid"])
        spec = msgspec.json.decode(row["spec"])
        pinned = spec["nova_object.data"].get("availability_zone")
        if wanted == pinned:
            return
        if wanted is not None:
            _check_pin(call, tx, record, wanted, pinned)
        spec["nova_object.data"]["availability_zone"] = wanted
        request_specs.request_spec_update(tx, record["uuid"], {"spec": json.dumps(spec)})

    call.services.cells.api.run(write)


def _check_pin(call: Call[Services], tx: Tx, record: dict[str, Any], wanted: str, pinned: str | None) -> None:
    if pinned is not None:
        raise Fault(409, "A pinned server is first let go by pinned_availability_zone null, then pinned again.")
    host = record["host"]
    default = call.services.conf.default_availability_zone
    present = hosts.zones(tx, [host]).get(host, default) if host else record["availability_zone"]
    if wanted != present:
        raise Fault(409, f"A server can only be pinned to the availability zone it is in, {present!r}.")


def _changed_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `Fault` 400 for a host name that is none."""
    values: dict[str, Any] = {}
    for member, column in (
        ("accessIPv4", "access_ip_v4"),
        ("accessIPv6", "access_ip_v6"),
        ("description", "display_description"),
        ("hostname", "hostname"),
    ):
        if member in given:
            values[column] = given[member]
    hostnames.checked(given.get("hostname"))
    if "name" in given:
        values["display_name"] = given["name"].strip()
    if "OS-DCF:diskConfig" in given:
        values["auto_disk_config"] = given["OS-DCF:diskConfig"] == "AUTO"
    return values


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.DETAIL, detail),
    Binding(contract.SHOW, show),
    Binding(contract.UPDATE, update),
]
