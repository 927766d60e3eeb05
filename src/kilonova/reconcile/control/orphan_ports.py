"""Neutron has a port of a server that has ended, or that failed and is on no host."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kilonova.base import clock, ids
from kilonova.clients.http import ServiceError
from kilonova.clients.neutron import allocation
from kilonova.contract import context
from kilonova.db.api import aggregates
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Standing, Traces, World
from kilonova.reconcile.loop import Loop, Suspect

PAGE = 1000
"""Ports that are looked at in one pass; the next pass goes on behind them."""

AGAIN = 50
"""Suspects of the last pass that are looked at again. Their ids are in the URL of one request."""


@dataclasses.dataclass(frozen=True)
class Held:
    port: Mapping[str, Any]
    traces: Traces


class OrphanPorts(Loop):
    """A port that is older than its server's record was brought by its user: it is unbound, others are deleted."""

    name = "orphan_ports"

    def __init__(self, world: World) -> None:
        self._world = world
        self._ctxt = context.admin()

    def find(self) -> Iterable[Held]:
        page, behind = self._page()
        ports = {port["id"]: port for port in (*page, *self._suspected()) if ids.is_uuid(port.get("device_id") or "")}
        traces = known.look(self._world, [port["device_id"] for port in ports.values()])
        self.place = behind
        return [Held(port, traces[port["device_id"]]) for port in ports.values()]

    def _page(self) -> tuple[list[dict[str, Any]], str | None]:
        """The next ports by id, and where the page after them begins.

        From the beginning when the port where the last page ended is gone.
        """
        rest = self._world.clients.neutron.rest
        owners = self._owners()
        try:
            return rest.page(self._ctxt, "ports", PAGE, self.place, admin=True, device_owner=owners)
        except ServiceError as exc:
            if self.place is None or exc.status not in (400, 404):
                raise
            return rest.page(self._ctxt, "ports", PAGE, None, admin=True, device_owner=owners)

    def _suspected(self) -> list[dict[str, Any]]:
        """Ports that looked wrong in the last pass, as they are now."""
        wanted = [each.key for each in self.suspected if each.repairable][:AGAIN]
        rest = self._world.clients.neutron.rest
        return rest.list(self._ctxt, "ports", admin=True, id=wanted) if wanted else []

    def _owners(self) -> list[str]:
        """Ports are made without an owner and then bound as `compute:ZONE`; Neutron filters by whole owners only."""
        zones = self._world.cells.api.query(aggregates.availability_zones_by_host).values()
        return [
            "",
            *(f"compute:{zone}" for zone in sorted({self._world.conf.default_availability_zone, "None", *zones})),
        ]

    def judge(self, found: Iterable[Held]) -> Sequence[Suspect]:
        suspects = []
        for held in found:
            standing = known.judge(held.traces)
            owned = str(held.port.get("device_owner") or "").startswith("compute:")
            if standing in (Standing.GONE, Standing.FAILED) or (standing is Standing.FOREIGN and owned):
                harm = f"port {held.port['id']} belongs to server {held.port['device_id']} ({standing})"
                suspects.append(Suspect(held.port["id"], harm, held, standing is not Standing.FOREIGN))
        return suspects

    def repair(self, suspect: Suspect) -> None:
        rest, held = self._world.clients.neutron.rest, suspect.data
        server = held.port["device_id"]
        port = rest.show(self._ctxt, "ports", suspect.key, admin=True)
        if port is None or port.get("device_id") != server:
            return
        if known.standing(self._world, server) in (Standing.GONE, Standing.FAILED):
            keep = {suspect.key} if brought(port, held.traces) else set()
            allocation.deallocate(rest, self._ctxt, [port], keep)


def brought(port: Mapping[str, Any], traces: Traces) -> bool:
    """Whether the port was there before its server's record, or may have been."""
    born, made = clock.aware(traces.born), port.get("created_at")
    return born is None or made is None or clock.parse(made) < born.replace(microsecond=0)
