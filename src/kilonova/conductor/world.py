"""What the conductor's flows work with: databases, buses and clients, by cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.base import clock
from kilonova.conductor import hosts
from kilonova.conductor.peers import Peers
from kilonova.conductor.schedulers import Schedulers
from kilonova.contract.context import RequestContext
from kilonova.db.cells import Cells
from kilonova.db.engine import Database
from kilonova.db.flows import FlowTable
from kilonova.flow.offers import context_of
from kilonova.flow.run import Run

if TYPE_CHECKING:
    from kilonova.clients.bundle import Clients
    from kilonova.wire.rpc.clients import ComputeClient, SchedulerClient

Recheck = Callable[[RequestContext, Any, Sequence[str]], None]
"""Counts a project's use against its limits: (context, request spec, new servers). Raises TooManyInstances when these
servers are over a limit with those accepted before them."""

SCHEDULER = "scheduler"
"""What a stage needs that asks one."""

API_STORE = "api"
OWN_STORE = "own"
"""Name of the flow store of a conductor that knows no other cell than its own."""


@dataclasses.dataclass(frozen=True)
class Place:
    """A cell as the flows see it; `uuid` is None for the own cell of a conductor without API database."""

    uuid: str | None
    name: str
    database: Database
    bus: Any

    @property
    def store(self) -> FlowTable:
        return FlowTable(self.database, self.uuid or OWN_STORE)


class World:
    """Made once per conductor and given to every flow."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        cells: Cells,
        bus: Any,
        clients: Clients,
        host: str,
        *,
        scheduler: SchedulerClient,
        compute: Callable[[Any], ComputeClient],
        recheck: Recheck | None = None,
    ) -> None:
        self.conf = conf
        self.cells = cells
        self.bus = bus
        self.clients = clients
        self.host = host
        self.scheduler = scheduler
        self.recheck = recheck
        self.began = clock.monotonic()
        self.peers = Peers(conf, cells, bus)
        self.schedulers = Schedulers(bus)
        self._compute = compute

    @property
    def api(self) -> Database:
        return self.cells.api

    def there(self, need: str) -> bool:
        """Whether this conductor has what a stage needs."""
        return {SCHEDULER: self.schedulers.there}[need]()

    def compute(self, place: Place) -> ComputeClient:
        """The compute hosts of a cell."""
        return self._compute(place.bus)

    def place(self, cell_uuid: str) -> Place:
        """A cell by its uuid. Raises UnknownCellError."""
        cell = self.cells.cell(cell_uuid)
        bus = None if cell.is_cell0 else self.bus.at(cell.transport_url)
        return Place(cell.uuid, cell.name or cell.uuid, cell.database, bus)

    def place_of_server(self, uuid: str) -> Place | None:
        """The cell that a server is in; the own one where there is no API database to ask."""
        if not self.cells.has_api:
            return self.own_place()
        cell = self.cells.for_instance(uuid)
        return None if cell is None else self.place(cell.uuid)

    def place_of_run(self, run: Run) -> Place:
        """The cell in whose database the flow is kept."""
        name = run.lease.store.name
        return self.own_place() if name == OWN_STORE else self.place(name)

    def own_place(self) -> Place:
        return Place(None, OWN_STORE, self.cells.own, self.bus)

    def api_store(self) -> FlowTable:
        return FlowTable(self.cells.api, API_STORE)

    def life(self, place: Place, ctxt: RequestContext, host: str) -> hosts.Life:
        """Whether a compute host is alive."""
        watched = clock.monotonic() - self.began
        return place.database.query(hosts.life, ctxt, host, self.conf.service_down_time, watched)

    def stores(self) -> list[FlowTable]:
        """Every database whose flows this conductor drives."""
        if not self.cells.has_api:
            return [self.own_place().store]
        return [self.api_store(), *(FlowTable(cell.database, cell.uuid) for cell in self.cells.all())]


def context(run: Run) -> RequestContext:
    """The context of the request that began the flow, with the user's token while it is kept."""
    return context_of(run.frame, run.secrets)
