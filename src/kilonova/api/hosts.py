"""What the API says of hosts: their availability zones, whether their services live, where they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.db.api import aggregates
from kilonova.db.cell import services
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.db.engine import Tx

COMPUTE = "nova-compute"
APIS = frozenset({"nova-osapi_compute", "nova-metadata"})
"""Services whose records only say which version they have; they are not shown."""


def zones(tx: Tx, names: Collection[str]) -> dict[str, str]:
    """The availability zone of each host that an aggregate gives one."""
    return aggregates.availability_zones_by_host(tx, names) if names else {}


def status(conf: cfg.ConfigOpts, found: Sequence[Mapping[str, Any]]) -> str:
    """The ``host_status`` of a server whose host has these services."""
    compute = next((dict(service) for service in found if service["binary"] == COMPUTE), None)
    if compute is None:
        return "UNKNOWN"
    if compute["forced_down"]:
        return "DOWN"
    if compute["disabled"]:
        return "MAINTENANCE"
    return "UP" if services.is_up(compute, conf.service_down_time) else "UNKNOWN"


def is_up(conf: cfg.ConfigOpts, cell: Cell, host: str) -> bool:
    """Whether the compute service of a host was heard of lately and is not said to be down."""
    service = cell.database.query(services.service_get_by_host, host, COMPUTE)
    return service is not None and services.is_up(service, conf.service_down_time)


def available_zones(cells: Cells, conf: cfg.ConfigOpts) -> set[str]:
    """The zones that have an enabled compute host. Cells that do not answer add none."""

    def enabled(cell: Cell) -> list[str]:
        found = cell.database.query(services.service_list, binary=COMPUTE, disabled=False)
        return [row["host"] for row in found]

    answers = cells.scatter(enabled, cells.all(include_cell0=False))
    names = {host for found in answers.values() if not isinstance(found, CellDown) for host in found}
    by_host = cells.api.query(zones, names)
    return {by_host.get(host, conf.default_availability_zone) for host in names}
