"""Usage: the hours, memory, disk and processors that projects had in a period, server by server."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Final

from kilonova.api import errors
from kilonova.api.paging import Page, page
from kilonova.api.servers.view import flavor_of
from kilonova.api.services import Services
from kilonova.base import clock
from kilonova.contract import exceptions
from kilonova.contract.nouns import usage as contract
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, CellDown
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request

_FORMATS: Final = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f")
_COLUMNS: Final = (
    "uuid",
    "project_id",
    "display_name",
    "vm_state",
    "launched_at",
    "terminated_at",
    "memory_mb",
    "root_gb",
    "ephemeral_gb",
    "vcpus",
)
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Period:
    """Naive UTC times; ``now`` is that of the request, ``stop`` is not behind it."""

    start: datetime.datetime
    stop: datetime.datetime
    now: datetime.datetime

    def hours(self, row: _Row) -> float:
        """How long of the period a server was there."""
        ended = row["terminated_at"] or self.stop
        time = min(self.stop, ended) - max(self.start, row["launched_at"])
        return max(time.total_seconds(), 0) / 3600


def _period(call: Call[Services]) -> Period:
    """Raises `Fault` 400."""
    now = clock.naive_now()
    start, stop = _time(call, "start") or now, _time(call, "end") or now
    if start >= stop and (call.first("start") or call.first("end")):
        raise bad_request("Invalid start time. The start time cannot occur after the end time.")
    return Period(start, min(stop, now), now)


def _time(call: Call[Services], name: str) -> datetime.datetime | None:
    text = call.first(name)
    if not text:
        return None
    for form in _FORMATS:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    raise bad_request(exceptions.InvalidStrTime(reason="Datetime is in invalid format").format_message())


def _shown(when: datetime.datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%S.%f}"


# ---------------------------------------------------------------- reading


def _rows(call: Call[Services], period: Period, wanted: Page, project_id: str | None) -> list[_Row]:
    """A page of the servers of the period: cell by cell, by project and uuid. Raises `Fault` 400, 500."""
    if wanted.limit == 0:
        return []
    known = call.services.cells
    home, last = (None, None) if wanted.marker is None else _marker(call, wanted.marker, project_id)
    cells = known.all()
    if home is not None:
        cells = cells[[cell.uuid for cell in cells].index(home) :]

    def read(cell: Cell) -> list[_Row]:
        return cell.database.query(
            instances.instance_list_in_use,
            period.start,
            period.stop,
            project_id,
            limit=wanted.limit,
            marker=last if cell.uuid == home else None,
            parts=("flavor",),
            columns=_COLUMNS,
        )

    rows: list[_Row] = []
    for answer in known.scatter(read, cells).values():
        # Who bills by it must not take a part for the whole.
        if isinstance(answer, CellDown):
            raise errors.no_answer()
        rows += answer
    return rows[: wanted.limit]


def _marker(call: Call[Services], uuid: str, project_id: str | None) -> tuple[str, _Row]:
    """The cell and the row of the last server of the page before; it may be deleted by now.

    A server of another project than the one that is shown does not exist.
    """

    def read(cell: Cell) -> _Row | None:
        return cell.database.query(instances.instance_get, uuid, deleted_too=True, columns=("uuid", "project_id"))

    answers = call.services.cells.scatter(read)
    for cell_uuid, answer in answers.items():
        if answer is None or isinstance(answer, CellDown):
            continue
        if project_id is None or answer["project_id"] == project_id:
            return cell_uuid, answer
    if any(isinstance(answer, CellDown) for answer in answers.values()):
        raise errors.no_answer()
    raise bad_request(exceptions.MarkerNotFound(marker=uuid).format_message())


# ---------------------------------------------------------------- views


def _server(row: _Row, period: Period) -> dict[str, Any]:
    ended, started = row["terminated_at"], row["launched_at"]
    return {
        "hours": period.hours(row),
        "flavor": flavor_of(row).get("name", ""),
        "instance_id": row["uuid"],
        "name": row["display_name"],
        "tenant_id": row["project_id"],
        "memory_mb": row["memory_mb"],
        "local_gb": (row["root_gb"] or 0) + (row["ephemeral_gb"] or 0),
        "vcpus": row["vcpus"],
        "started_at": _shown(started),
        "ended_at": _shown(ended) if ended else None,
        "state": contract.ENDED if ended else row["vm_state"],
        "uptime": int(((ended or period.now) - started).total_seconds()),
    }


def _summaries(servers: list[dict[str, Any]], period: Period, *, detailed: bool) -> list[dict[str, Any]]:
    """What each project used, with its servers when `detailed`."""
    found: dict[str, dict[str, Any]] = {}
    for server in servers:
        project_id = server["tenant_id"]
        summary = found.setdefault(project_id, _summary(project_id, period, detailed=detailed))
        hours = server["hours"]
        summary["total_hours"] += hours
        for amount in ("local_gb", "vcpus", "memory_mb"):
            summary[f"total_{amount}_usage"] += server[amount] * hours
        if detailed:
            summary["server_usages"].append(server)
    return list(found.values())


def _summary(project_id: str, period: Period, *, detailed: bool) -> dict[str, Any]:
    totals = ("total_hours", "total_local_gb_usage", "total_vcpus_usage", "total_memory_mb_usage")
    summary: dict[str, Any] = {"tenant_id": project_id, "start": _shown(period.start), "stop": _shown(period.stop)}
    return summary | dict.fromkeys(totals, 0) | ({"server_usages": []} if detailed else {})


# ---------------------------------------------------------------- requests


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.LIST_POLICY)
    period = _period(call)
    servers, links = _page(call, period, None)
    usages = _summaries(servers, period, detailed=call.first("detailed") == "1")
    return {"tenant_usages": usages} | ({"tenant_usages_links": links} if links else {})


def show(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SHOW_POLICY, {"project_id": id})
    period = _period(call)
    servers, links = _page(call, period, id)
    usages = _summaries(servers, period, detailed=True)
    return {"tenant_usage": usages[0] if usages else {}} | ({"tenant_usage_links": links} if links else {})


def _page(
    call: Call[Services], period: Period, project_id: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The servers, and the link to the next page if there may be one."""
    paged = call.version in contract.PAGED
    wanted = page(call) if paged else Page(call.services.conf.api.max_limit, None)
    servers = [_server(row, period) for row in _rows(call, period, wanted, project_id)]
    more = paged and wanted.full(len(servers))
    return servers, [call.next_link(servers[-1]["instance_id"])] if more else []


ROUTES = [Binding(contract.LIST, index), Binding(contract.SHOW, show)]
