"""The conductor of one process: serves the bus, drives the flows, reports that it is alive."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.base import clock, ids
from kilonova.base.periodic import Periodic
from kilonova.conductor import keeping, peers, schedulers
from kilonova.conductor.building import elsewhere
from kilonova.conductor.compute_task import ComputeTasks
from kilonova.conductor.failures import describe
from kilonova.conductor.keeping import Keeping
from kilonova.conductor.objects.service import ObjectService
from kilonova.conductor.ops import build, delete
from kilonova.conductor.outages import passes
from kilonova.conductor.world import Recheck, World
from kilonova.db.cells import Cells
from kilonova.db.engine import Database
from kilonova.db.heartbeat import Heartbeat
from kilonova.flow.dispatcher import Dispatcher, OnLapse, fence
from kilonova.flow.engine import Engine
from kilonova.flow.run import Lease
from kilonova.flow.seal import Seal
from kilonova.wire.rpc.clients import ComputeClient, SchedulerClient

if TYPE_CHECKING:
    from kilonova.clients.bundle import Clients

LOG = logging.getLogger(__name__)

FLOWS = {flow.op: flow for flow in (build.BATCH, build.FLOW, elsewhere.FLOW, elsewhere.WATCH, delete.FLOW)}
"""What this conductor drives."""

CELL_FLOWS = {op: FLOWS[op] for op in (elsewhere.FLOW.op, elsewhere.WATCH.op, delete.FLOW.op)}
"""What a conductor drives that knows its own cell only."""


def die(lease: Lease) -> None:
    """For a conductor with a process of its own: what cannot be cut off surely is ended, with the stacks in the log."""
    fence(lease)
    for ident, frame in sys._current_frames().items():
        LOG.error("thread %s at:\n%s", ident, "".join(traceback.format_stack(frame)))
    os._exit(70)


class Service:
    """`start()`, `stop()`, `wait()`. `on_lapse`: what is done when a step outlives its lease (`die` or `fence`)."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        cells: Cells,
        bus: Any,
        clients: Clients,
        host: str,
        *,
        on_lapse: OnLapse = fence,
        recheck: Recheck | None = None,
    ) -> None:
        self.conf = conf
        self.cells = cells
        self.host = host
        self.world = World(
            conf, cells, bus, clients, host, scheduler=SchedulerClient(bus), compute=ComputeClient, recheck=recheck
        )
        seal = Seal.from_conf(conf)
        worker = f"{host}:{os.getpid()}:{ids.new_uuid()[:8]}"
        engine = Engine(
            FLOWS if cells.has_api else CELL_FLOWS,
            self.world,
            seal,
            worker,
            describe_failure=describe,
            passes=passes,
            there=self.world.there,
        )
        self.dispatcher = Dispatcher(
            engine,
            self.world.stores,
            lease=conf.kilonova.flow_lease,
            poll=conf.kilonova.flow_poll,
            workers=conf.kilonova.flow_workers,
            step_limit=conf.kilonova.flow_step_limit,
            on_lapse=on_lapse,
        )
        self.tasks = ComputeTasks(self.world, self.dispatcher, seal)
        self._heartbeat = Heartbeat(
            cells.own,
            host,
            "nova-conductor",
            "conductor",
            interval=conf.report_interval,
        )
        self._keeping = Keeping(
            conf, lambda: [store.database for store in self.world.stores()], self._first_database(), worker
        )
        self._periodic = Periodic("conductor", workers=3, passes=passes)
        self._periodic.every(keeping.EVERY, self._keeping.run, name="keeping")
        if cells.has_api:
            self._periodic.every(peers.LOOK_EVERY, self.world.peers.near, name="peers", initial_delay=5.0)
            self._periodic.every(
                schedulers.LOOK_EVERY, self.world.schedulers.look, name="schedulers", initial_delay=0.0
            )
        self._server = bus.serve("conductor", host, [ObjectService(cells, conf), self.tasks])
        self._stopped = threading.Event()

    def _first_database(self) -> Database:
        return self.cells.api if self.cells.has_api else self.cells.own

    def start(self) -> None:
        self._heartbeat.start()
        self.dispatcher.start()
        self._server.start()
        self._periodic.start()
        LOG.info("conductor %s started", self.host)

    def stop(self, timeout: float = 30.0) -> None:
        """Take nothing new, let present steps end, hand the flows back."""
        end = clock.monotonic() + timeout
        self._periodic.stop(0.0)
        self._keeping.stop()
        self._server.stop()
        self.dispatcher.stop(timeout)
        self._heartbeat.stop()
        self._server.wait(max(1.0, end - clock.monotonic()))
        self._stopped.set()
        LOG.info("conductor %s stopped", self.host)

    def wait(self) -> None:
        self._stopped.wait()
