"""External events: each is passed to the host of its server; every event has a code of its own in the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.api.services import Services
from kilonova.contract import objects
from kilonova.contract.ops import external_event as contract
from kilonova.db.api import instance_mappings
from kilonova.db.cells import Cell, CellDown
from kilonova.db.objects import instances
from kilonova.wire.http.call import Binding, Call, Reply

_PARTS = ("metadata", "system_metadata", "info_cache", "flavor", "migration_context")
ACCEPTED, REFUSED, UNKNOWN, NO_HOST = 200, 400, 404, 422
_TAG_NEEDED = frozenset({"volume-extended", "power-update", "accelerator-request-bound"})


def create(call: Call[Services]) -> Reply:
    call.authorize(contract.POLICY)
    events = [{"status": "completed", **event} for event in call.body["events"]]
    homes = _homes(call, {event["server_uuid"] for event in events})
    for event in events:
        event["code"] = _code(event, homes.get(event["server_uuid"]))
    accepted = [event for event in events if event["code"] == ACCEPTED]
    _pass_on(call, accepted, homes)
    # What the sender calls its event went on to the host; the answer says what became of it here.
    shown = [{**event, "status": "completed" if event["code"] == ACCEPTED else "failed"} for event in events]
    return Reply({"events": shown}, 200 if len(accepted) == len(events) else 207)


Home = tuple[Cell, objects.Instance]


def _homes(call: Call[Services], uuids: set[str]) -> dict[str, Home]:
    """The servers by uuid, read once per cell."""
    cells = call.services.cells
    mappings = cells.api.query(instance_mappings.instance_mapping_list, uuids)
    by_cell: dict[str, list[str]] = {}
    for mapping in mappings:
        if mapping["cell_uuid"] is not None:
            by_cell.setdefault(mapping["cell_uuid"], []).append(mapping["instance_uuid"])

    def read(cell: Cell) -> list[objects.Instance]:
        wanted = {"uuid": by_cell[cell.uuid]}
        found = cell.database.query(instances.get_by_filters, call.context, wanted, expected_attrs=_PARTS)
        return list(found.objects)

    answers = cells.scatter(read, [cells.cell(uuid) for uuid in by_cell])
    homes: dict[str, Home] = {}
    for cell_uuid, found in answers.items():
        if not isinstance(found, CellDown):
            homes |= {instance.uuid: (cells.cell(cell_uuid), instance) for instance in found}
    return homes


def _code(event: Mapping[str, Any], home: Home | None) -> int:
    if home is None:
        return UNKNOWN
    if event["name"] in _TAG_NEEDED and "tag" not in event:
        return REFUSED
    return ACCEPTED if home[1].host else NO_HOST


def _pass_on(call: Call[Services], events: list[dict[str, Any]], homes: Mapping[str, Home]) -> None:
    """One cast to each host."""
    by_host: dict[tuple[str, str], list[tuple[objects.Instance, dict[str, Any]]]] = {}
    for event in events:
        cell, instance = homes[event["server_uuid"]]
        by_host.setdefault((cell.uuid, instance.host), []).append((instance, event))
    for (cell_uuid, host), pairs in by_host.items():
        servers = {instance.uuid: instance for instance, _ in pairs}
        call.services.compute(call.services.cells.cell(cell_uuid)).external_instance_event(
            call.context,
            instances=list(servers.values()),
            events=[_event(event) for _, event in pairs],
            host=host,
        )


def _event(event: Mapping[str, Any]) -> objects.InstanceExternalEvent:
    return objects.InstanceExternalEvent(
        instance_uuid=event["server_uuid"],
        name=event["name"],
        status=event["status"],
        tag=event.get("tag"),
        data={},
    )


ROUTES = [Binding(contract.EXTERNAL_EVENTS, create)]
