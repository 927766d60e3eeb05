"""Availability zones: which there are and, for administrators, with which hosts. One question per cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kilonova.api import hosts
from kilonova.api.services import Services
from kilonova.contract.nouns import availability_zones as contract
from kilonova.db.cell import services
from kilonova.db.cells import Cell, CellDown
from kilonova.wire.http.call import Binding, Call

_Row = Mapping[str, Any]


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.LIST_POLICY)
    zones = _computes_by_zone(call, _rows(call))
    return {"availabilityZoneInfo": _entries(zones, lambda rows: None)}


def detail(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.DETAIL_POLICY)
    rows = _rows(call)
    conf = call.services.conf
    zones: dict[str, list[_Row]] = _computes_by_zone(call, rows)
    internal = [row for row in rows if row["binary"] != hosts.COMPUTE and not row["disabled"]]
    if internal:
        zones = {conf.internal_service_availability_zone: internal, **zones}
    return {"availabilityZoneInfo": _entries(zones, lambda found: _hosts(call, found))}


def _rows(call: Call[Services]) -> list[_Row]:
    def read(cell: Cell) -> list[dict[str, Any]]:
        return cell.database.query(services.service_list)

    answers = call.services.cells.scatter(read).values()
    return [row for answer in answers if not isinstance(answer, CellDown) for row in answer]


def _computes_by_zone(call: Call[Services], rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    """Zones of enabled computes first; a zone whose computes are all disabled is not available (an empty list)."""
    computes = [row for row in rows if row["binary"] == hosts.COMPUTE]
    with call.services.cells.api.read() as tx:
        names = hosts.zones(tx, {row["host"] for row in computes})
    default = call.services.conf.default_availability_zone
    zones: dict[str, list[_Row]] = {}
    for row in sorted(computes, key=lambda row: bool(row["disabled"])):
        found = zones.setdefault(names.get(row["host"], default), [])
        if not row["disabled"]:
            found.append(row)
    return zones


def _entries(zones: Mapping[str, list[_Row]], shown: Any) -> list[dict[str, Any]]:
    return [
        {"zoneName": name, "zoneState": {"available": bool(rows)}, "hosts": shown(rows) if rows else None}
        for name, rows in zones.items()
    ]


def _hosts(call: Call[Services], rows: Iterable[_Row]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        when = row["updated_at"]
        found.setdefault(row["host"], {})[row["binary"]] = {
            "active": not row["disabled"],
            "available": services.is_up(dict(row), call.services.conf.service_down_time),
            "updated_at": when.strftime("%Y-%m-%dT%H:%M:%S.%f") if when else None,
        }
    return found


ROUTES = [Binding(contract.LIST, index), Binding(contract.DETAIL, detail)]
