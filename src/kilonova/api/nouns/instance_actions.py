"""The record of what was done to a server, shown even of one that is deleted."""

from __future__ import annotations

import datetime
from typing import Any, Final

from kilonova.api.paging import Page, page
from kilonova.api.servers import find
from kilonova.api.servers.view import host_id
from kilonova.api.services import Services
from kilonova.base import clock
from kilonova.contract.nouns import instance_actions as contract
from kilonova.db.cell import instance_actions
from kilonova.db.outcomes import MarkerNotFoundError
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request, not_found

DELETED_SHOWN_SINCE: Final = 21
PAGED_SINCE: Final = 58
EVENTS_FOR_ALL_SINCE: Final = 51
HOST_SINCE: Final = 62
DETAILS_SINCE: Final = 84
_COLUMNS: Final = ("uuid", "project_id", "user_id")


def _find(call: Call[Services], uuid: str, rule: str) -> find.Found:
    return find.permitted(call, uuid, rule, columns=_COLUMNS, deleted_too=call.version >= DELETED_SHOWN_SINCE)


def index(call: Call[Services], server_id: str) -> dict[str, Any]:
    found = _find(call, server_id, contract.LIST_POLICY)
    wanted = page(call) if call.version >= PAGED_SINCE else None
    since, before = (_time(call, name) for name in ("changes-since", "changes-before"))
    if since and before and before < since:
        raise bad_request("The value of changes-since must be less than or equal to changes-before.")
    if found.cell is None:
        return {"instanceActions": []}
    try:
        rows = found.cell.database.query(
            instance_actions.action_list,
            server_id,
            limit=wanted.limit if wanted else None,
            marker=wanted.marker if wanted else None,
            changes_since=since,
            changes_before=before,
        )
    except MarkerNotFoundError:
        raise bad_request(f"Marker {wanted.marker if wanted else None} could not be found.") from None
    return {"instanceActions": [_action(row) for row in rows]} | _links(call, rows, wanted)


def _links(call: Call[Services], rows: list[dict[str, Any]], wanted: Page | None) -> dict[str, Any]:
    if wanted is None or not wanted.full(len(rows)):
        return {}
    return {"links": [call.next_link(rows[-1]["request_id"])]}


def _time(call: Call[Services], name: str) -> datetime.datetime | None:
    text = call.last(name) if call.version >= PAGED_SINCE else None
    if text is None:
        return None
    try:
        return clock.parse(text)
    except ValueError:
        raise bad_request(f"{name} is not a time: {text}") from None


def show(call: Call[Services], server_id: str, id: str) -> dict[str, Any]:
    found = _find(call, server_id, contract.SHOW_POLICY)
    owner = {"project_id": found.record["project_id"]}
    row = found.cell and found.cell.database.query(instance_actions.action_get, server_id, id)
    if not found.cell or not row:
        raise not_found(f"Action {id} not found")
    shown = _action(row)
    whole = call.allows(contract.EVENTS_POLICY, owner)
    if whole or call.version >= EVENTS_FOR_ALL_SINCE:
        details = call.version >= DETAILS_SINCE and call.allows(contract.DETAILS_POLICY, owner)
        project = row["project_id"] or owner["project_id"]
        events = found.cell.database.query(instance_actions.event_list, row["id"])
        shown["events"] = [_event(event, project, whole=whole, details=details) for event in events]
    return {"instanceAction": shown}


def _action(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "action": row["action"],
        "instance_uuid": row["instance_uuid"],
        "request_id": row["request_id"],
        "user_id": row["user_id"],
        "project_id": row["project_id"],
        "start_time": _iso(row["start_time"]),
        "message": row["message"],
        "updated_at": _iso(row["updated_at"]),
    }


def _event(row: dict[str, Any], project: str, *, whole: bool, details: bool) -> dict[str, Any]:
    shown = {
        "event": row["event"],
        "start_time": _iso(row["start_time"]),
        "finish_time": _iso(row["finish_time"]),
        "result": row["result"],
        "hostId": host_id(row["host"], project) if row["host"] else "",
    }
    if whole:
        shown["traceback"] = row["traceback"]
        if row["host"]:
            shown["host"] = row["host"]
    if details:
        shown["details"] = row["details"]
    return shown


def _iso(when: datetime.datetime | None) -> str | None:
    """With microseconds and without a zone, as this resource has always had it."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%f") if when else None


ROUTES = [Binding(contract.LIST, index), Binding(contract.SHOW, show)]
