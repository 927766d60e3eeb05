"""What handlers work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oslo_config import cfg

from kilonova.api.group_names import GroupNames
from kilonova.clients.bundle import Clients
from kilonova.db.cells import Cell, Cells
from kilonova.flow.seal import Seal

if TYPE_CHECKING:
    from kilonova.wire.rpc.bus import Bus
    from kilonova.wire.rpc.clients import ComputeClient, ComputeTaskClient, SchedulerClient


@dataclass(frozen=True, slots=True)
class Services:
    """The collaborators of the API: configuration, databases, the bus and other services' clients."""

    conf: cfg.ConfigOpts
    cells: Cells
    bus: Bus
    clients: Clients
    group_names: GroupNames
    seal: Seal

    @classmethod
    def assemble(cls, conf: cfg.ConfigOpts, cells: Cells, bus: Bus, clients: Clients) -> Services:
        names = GroupNames(conf.kilonova.security_groups_max_age)
        return cls(conf, cells, bus, clients, names, Seal.from_conf(conf))

    def compute(self, cell: Cell) -> ComputeClient:
        """The hosts of a cell."""
        from kilonova.wire.rpc.clients import ComputeClient

        return ComputeClient(self.bus.at(cell.transport_url))

    def conductor(self) -> ComputeTaskClient:
        """The conductors above the cells."""
        from kilonova.wire.rpc.clients import ComputeTaskClient

        return ComputeTaskClient(self.bus)

    def scheduler(self) -> SchedulerClient:
        """The schedulers."""
        from kilonova.wire.rpc.clients import SchedulerClient

        return SchedulerClient(self.bus)
