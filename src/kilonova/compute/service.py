"""The compute agent of one host: puts its parts together, starts and stops them."""

from __future__ import annotations

import logging
import pathlib
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.base.periodic import Periodic, Timer
from kilonova.compute import startup
from kilonova.compute.agent import Agent, Documents, Loop, Loops
from kilonova.compute.events import ExternalEvents
from kilonova.compute.heartbeat import BINARY, Heartbeat
from kilonova.compute.journal.book import Book
from kilonova.compute.lanes import Lanes, Preempted, limits
from kilonova.compute.network import NetworkCache
from kilonova.compute.operations import OPERATIONS
from kilonova.compute.provider import Reporter
from kilonova.compute.resources import Tracker
from kilonova.compute.runner import Runner
from kilonova.compute.server import Handlers
from kilonova.compute.store import RpcStore, Store
from kilonova.contract import context, objects
from kilonova.virt import driver as virt
from kilonova.virt import identity, loader
from kilonova.wire.rpc.clients import ComputeTaskClient, SchedulerClient
from kilonova.wire.rpc.errors import RPC_LOST

if TYPE_CHECKING:
    from kilonova.clients.bundle import Clients

LOG = logging.getLogger(__name__)

CLOSING_SECONDS = 1.0
FIRST_CONTACT = 5.0
"""Seconds after which a starting host asks again whether a conductor is there."""

SCRUB_SPACING = 5.0
"""Seconds for which secrets of ended operations may stay in the log of the journal's database."""

DEFAULT_SPACING = 60.0
"""What 0 stands for in options that give the spacing of periodic work."""

DriverFactory = Callable[[cfg.ConfigOpts, str, pathlib.Path, virt.Services], virt.Driver]


class Service:
    """`start()` returns when the host takes orders; `stop()` lets what runs end, the rest stays in the journal."""

    def __init__(self, agent: Agent, bus: Any, loops: Loops | None = None) -> None:
        self.agent = agent
        self._bus = bus
        self._runner = agent.runner = Runner(agent, OPERATIONS)
        self._handlers = Handlers(agent, self._runner)
        self._heartbeat = Heartbeat(agent.store, agent.host)
        self._loops: list[Loop] = list(loops(agent)) if loops is not None else []
        self._loop_timers: list[tuple[Loop, Timer]] = []
        self._server: Any = None
        # A pulse of its own: a conductor that is slow to answer the repair loops must not make the host look dead.
        self._pulse = Periodic(f"pulse-{agent.host}", workers=1)
        self._stopping = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Raises InvalidConfiguration, HypervisorUnavailable."""
        agent, ctxt = self.agent, context.admin()
        agent.driver.start(agent.host, self._on_event)
        known = self._first_contact()
        startup.check_identity(agent, ctxt, known, identity.beside(agent.conf.config_file or ()))
        agent.tracker.service = self._heartbeat.register(ctxt, known)
        agent.tracker.audit(ctxt)
        startup.recover(agent, self._runner, ctxt)
        self._server = self._bus.serve("compute", agent.host, [self._handlers])
        self._server.start()
        self._start_timers()
        LOG.info("host %s takes orders", agent.host)

    def stop(self, timeout: float = 30.0) -> None:
        """Take no more orders; give running operations `timeout` seconds, in which they hear what they wait for."""
        if self._stopping.is_set():
            self._stopped.wait(timeout)
            return
        self._stopping.set()
        if self._server is not None:
            self._server.refuse()
        agent = self.agent
        agent.timers.stop(timeout=min(timeout, 5.0))
        if not agent.lanes.stop(timeout):
            LOG.warning("host %s ends with operations under way; they are taken up at the next start", agent.host)
            agent.events.close()
            agent.lanes.stop(CLOSING_SECONDS)
        # Until here: a host that says nothing counts as down, and its servers, still at work, as fit to be evacuated.
        self._pulse.stop(timeout=CLOSING_SECONDS)
        if self._server is not None:
            self._server.stop()
        agent.tracker.close(context.admin())
        agent.driver.stop()
        agent.journal.close()
        self._stopped.set()

    def reload(self) -> None:
        """Run the repair loops as often as the configuration says now."""
        for loop, timer in self._loop_timers:
            self.agent.timers.respace(timer, loop.spacing or DEFAULT_SPACING)

    def wait(self) -> None:
        """Until `stop()` has ended."""
        self._stopped.wait()

    def status(self) -> dict[str, Any]:
        """For operators: what waits and runs, and how the timers fare."""
        listed = [*self._pulse.timers, *self.agent.timers.timers]
        timers = {t.name: {"runs": t.runs, "failures": t.failures, "error": t.last_error} for t in listed}
        return {
            "host": self.agent.host,
            "operations": self.agent.lanes.depth,
            "timers": timers,
            "unreleased_volumes": len(self.agent.owed()),
        }

    def _first_contact(self) -> objects.Service | None:
        """The service record, asked for until a conductor answers."""
        ctxt = context.admin()
        while True:
            try:
                # What is asked while no conductor has a queue yet gets lost: its timeout is not worth waiting for.
                self.agent.store.reach(ctxt, FIRST_CONTACT)
                return self.agent.store.service(ctxt, self.agent.host, BINARY)
            except RPC_LOST as exc:
                if self._stopping.is_set():
                    raise
                LOG.warning("host %s waits for a conductor: %s", self.agent.host, exc)

    def _start_timers(self) -> None:
        agent, conf, timers = self.agent, self.agent.conf, self.agent.timers
        ctxt = context.admin
        if conf.report_interval > 0:
            beat = conf.report_interval
            self._pulse.every(beat, lambda: self._heartbeat.beat(ctxt()), name="heartbeat", jitter=0.0, initial_delay=0)
            self._pulse.start()
        timers.every(conf.kilonova.node_write_delay, lambda: agent.tracker.flush(ctxt()), name="node_record")
        timers.every(3600, agent.journal.prune, name="journal")
        timers.every(SCRUB_SPACING, agent.journal.scrub, name="journal_scrub")
        if conf.periodic_enable:
            self._every(conf.update_resources_interval, self._audit, "resources")
            self._every(conf.scheduler_instance_sync_interval, self._list, "scheduler_sync")
            for loop in self._loops:
                if (timer := self._every(loop.spacing, loop.run, loop.name)) is not None:
                    self._loop_timers.append((loop, timer))
        timers.start()

    def _every(self, spacing: float, fn: Callable[[], object], name: str) -> Timer | None:
        if spacing < 0:
            return None
        latest = min(spacing or DEFAULT_SPACING, self.agent.conf.periodic_fuzzy_delay)
        delay = random.uniform(0, latest)  # noqa: S311 - only so that hosts do not act as one
        return self.agent.timers.every(spacing or DEFAULT_SPACING, fn, name=name, initial_delay=delay)

    def _audit(self) -> None:
        """Also learns whether an operator disabled the service."""
        ctxt = context.admin()
        known = self.agent.store.service(ctxt, self.agent.host, BINARY)
        if known is not None and self.agent.tracker.service is not None:
            self.agent.tracker.service.disabled = known.disabled
            self.agent.tracker.service.obj_reset_changes(["disabled"])
        self.agent.tracker.audit(ctxt)

    def _list(self) -> None:
        ctxt = context.admin()
        self.agent.list_for_schedulers(ctxt, self.agent.store.instance_uuids_of_host(ctxt, self.agent.host))

    def _on_event(self, event: virt.GuestEvent) -> None:
        for loop in self._loops:
            loop.on_guest_event(event)


def make(
    conf: cfg.ConfigOpts,
    bus: Any,
    host: str,
    clients: Clients,
    state_path: pathlib.Path,
    *,
    documents: Documents | None = None,
    loops: Loops | None = None,
    driver_factory: DriverFactory = loader.load,
    store: Store | None = None,
) -> Service:
    """A host's service with all its parts. `state_path`: the host's own directory."""
    state_path.mkdir(parents=True, exist_ok=True)
    events = ExternalEvents(cancelled=Preempted)
    driver = driver_factory(conf, host, state_path, virt.Services(images=clients.glance, events=events))
    store = store or RpcStore(bus, host)
    workers = conf.kilonova.agent_workers
    agent = Agent(
        conf=conf,
        host=host,
        state_path=state_path,
        store=store,
        driver=driver,
        clients=clients,
        tracker=Tracker(conf, host, store, driver, Reporter(conf, clients.placement)),
        events=events,
        network=NetworkCache(store, clients.neutron),
        lanes=Lanes(workers, limits(workers, conf.max_concurrent_builds)),
        journal=Book(state_path / "journal.sqlite3"),
        conductor=ComputeTaskClient(bus),
        scheduler=SchedulerClient(bus),
        documents=documents,
        timers=Periodic(f"compute-{host}"),
    )
    return Service(agent, bus, loops)
