"""Availability zones: which there are and, for administrators, with which hosts. One question per cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kilonova.api import hosts
from kilonova.api.services import Services
from kilonova.contract.nouns import availability_zones as contract
from kilonova.db.api import aggregates
from kilonova.db.cell import services
from kilonova.db.cells import Cell, CellDown
from kilonova.wire.http.call import Binding, Call

_Row = Mapping[str, Any]


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.LIST_POLICY)
    zones = _zones(call)
    zones.pop(call.services.conf.internal_service_availability_zone, None)
    return _shown(zones, lambda rows: None)


def detail(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.DETAIL_POLICY)
    return _shown(_zones(call), lambda rows: _hosts(call, rows))


def _zones(call: Call[Services]) -> dict[str, list[_Row]]:
    """The enabled services by zone. A zone whose services are all disabled has none: it is not available."""

    def read(cell: Cell) -> list[dict[str, Any]]:
        return cell.database.query(services.service_list)

    answers = call.services.cells.scatter(read).values()
    conf = call.services.conf
    # Every host that has a zone is asked for: naming thousands of hosts would cost more than it saves.
    names = call.services.cells.api.query(aggregates.availability_zones_by_host)
    zones: dict[str, list[_Row]] = {}
    for row in (row for answer in answers if not isinstance(answer, CellDown) for row in answer):
        own = names.get(row["host"], conf.default_availability_zone)
        zone = own if row["binary"] == hosts.COMPUTE else conf.internal_service_availability_zone
        found = zones.setdefault(zone, [])
        if not row["disabled"]:
            found.append(row)
    return zones


def _shown(zones: Mapping[str, list[_Row]], describe: Callable[[list[_Row]], Any]) -> dict[str, Any]:
    """Available zones by name, then the others."""
    names = sorted(zones, key=lambda name: (not zones[name], name))
    entries = [
        {
            "zoneName": name,
            "zoneState": {"available": bool(zones[name])},
            "hosts": describe(zones[name]) if zones[name] else None,
        }
        for name in names
    ]
    return {"availabilityZoneInfo": entries}


def _hosts(call: Call[Services], rows: Iterable[_Row]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    grace = call.services.conf.service_down_time
    for row in rows:
        if row["binary"] in hosts.APIS:
            continue
        when = row["updated_at"]
        found.setdefault(row["host"], {})[row["binary"]] = {
            "active": not row["disabled"],
            "available": services.is_up(dict(row), grace),
            "updated_at": when.strftime("%Y-%m-%dT%H:%M:%S.%f") if when else None,
        }
    return found


ROUTES = [Binding(contract.LIST, index), Binding(contract.DETAIL, detail)]
