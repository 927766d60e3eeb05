"""Which loops there are in the control plane, and how they are run."""

from __future__ import annotations

import logging
import os
import threading

from oslo_config import cfg

from kilonova.base import ids
from kilonova.base.periodic import Periodic
from kilonova.clients.http import ServiceError
from kilonova.db.away import is_away
from kilonova.db.loops import LoopLeases
from kilonova.reconcile.control.known import World
from kilonova.reconcile.control.orphan_allocations import OrphanAllocations
from kilonova.reconcile.control.orphan_attachments import OrphanAttachments
from kilonova.reconcile.control.orphan_ports import OrphanPorts
from kilonova.reconcile.control.orphan_volumes import OrphanVolumes
from kilonova.reconcile.control.stuck_flows import StuckFlows
from kilonova.reconcile.control.stuck_tasks import StuckTasks
from kilonova.reconcile.control.undriven_builds import UndrivenBuilds
from kilonova.reconcile.control.unmapped_records import UnmappedRecords
from kilonova.reconcile.loop import Leases, Loop, Pass, Report

LOG = logging.getLogger(__name__)


def _passes(exc: BaseException) -> bool:
    """Another service, or a database, is away for now."""
    return exc.passes if isinstance(exc, ServiceError) else is_away(exc)


class Service:
    """Runs each loop every [kilonova] reconcile_interval seconds, one pass at a time, unless another process does."""

    def __init__(self, loops: list[Loop], conf: cfg.ConfigOpts, leases: Leases) -> None:
        self._conf = conf
        self.passes = {loop.name: Pass(loop, conf.kilonova, leases=leases, passes=_passes) for loop in loops}
        self._timers = Periodic("reconcile")
        interval = conf.kilonova.reconcile_interval
        for each in self.passes.values():
            self._timers.every(interval, each.run, name=each.loop.name, initial_delay=interval)
        self._stopped = threading.Event()

    def reload(self) -> None:
        """Run as often as the configuration says now."""
        for timer in self._timers.timers:
            self._timers.respace(timer, self._conf.kilonova.reconcile_interval)

    def start(self) -> None:
        self._timers.start()

    def stop(self, timeout: float = 10.0) -> None:
        """End the passes under way; another process may go on at once."""
        self._timers.stop(timeout)
        for each in self.passes.values():
            try:
                each.stop()
            except Exception as exc:  # noqa: BLE001 - the database may be away; the lease ends by itself
                LOG.info("%s is left to others when its lease ends: %s", each.loop.name, exc)
        self._stopped.set()

    def wait(self) -> None:
        self._stopped.wait()

    def reports(self) -> list[Report]:
        """The last pass of each loop."""
        return [each.report for each in self.passes.values()]


def make(world: World) -> Service:
    """All loops; one that the configuration switches off rests."""
    conf = world.conf
    made: list[Loop] = [
        OrphanAllocations(world),
        OrphanPorts(world),
        StuckFlows(world),
        StuckTasks(world),
        UndrivenBuilds(world),
        UnmappedRecords(world),
    ]
    if conf.cinder.auth_type or conf.service_user.auth_type:
        made += [OrphanAttachments(world), OrphanVolumes(world)]
    else:
        LOG.info("orphan_attachments and orphan_volumes do not run: neither [cinder] nor [service_user] has auth_type")
    return Service(made, conf, LoopLeases(world.cells.api, f"{world.host}:{os.getpid()}:{ids.new_uuid()[:8]}"))
