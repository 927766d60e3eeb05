"""nova-scheduler: serves the scheduler's interface on the bus."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.base.periodic import Periodic
from kilonova.clients.bundle import Clients
from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db import away
from kilonova.db.cell import host_changes
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.db.heartbeat import Heartbeat
from kilonova.scheduler import discovery, plugins
from kilonova.scheduler.destinations import Chooser
from kilonova.scheduler.explain import Record
from kilonova.scheduler.snapshot.cache import Snapshot
from kilonova.scheduler.snapshot.host import Aggregate
from kilonova.scheduler.snapshot.source import DatabaseSource
from kilonova.scheduler.weighers.preferences import ImagePropertiesWeigher
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.errors import DBConnectionError

LOG = logging.getLogger(__name__)


class Handlers:
    """The methods that conductors call and hosts cast (scheduler 4.5)."""

    def __init__(self, chooser: Chooser, snapshot: Snapshot, *, track_instances: bool = True) -> None:
        self._chooser = chooser
        self._snapshot = snapshot
        self._track = track_instances

    def select_destinations(
        self,
        ctxt: RequestContext,
        *,
        spec_obj: objects.RequestSpec | None = None,
        instance_uuids: Sequence[str] | None = None,
        return_objects: bool = False,
        return_alternates: bool = False,
        request_spec: Any = None,
        filter_properties: Any = None,
    ) -> Any:
        """A list of Selection objects per server; the first is claimed. Raises NoValidHost.

        Without `return_objects` (conductors of before 2018) a list of dicts, one per server.
        """
        if spec_obj is None:
            raise exceptions.InvalidInput(reason="callers must send a RequestSpec object (interface 4.3 or newer)")
        alternates = return_alternates and return_objects
        try:
            with away.told(DBConnectionError):
                found = self._chooser.select(ctxt, spec_obj, instance_uuids, alternates=alternates)
        except ServiceError as error:
            # Whoever does not know `away` takes it for an ordinary refusal, as conductors of Nova's do.
            passes = {"away": error.service} if error.passes else {}
            raise exceptions.NoValidHost(reason=error.for_users, **passes) from error
        if return_objects:
            return found
        return [{"host": first.service_host, "nodename": first.nodename, "limits": {}} for first, *_ in found]

    def update_aggregates(self, ctxt: RequestContext, *, aggregates: Any) -> None:
        listed = aggregates if isinstance(aggregates, list | tuple) else getattr(aggregates, "objects", [aggregates])
        self._snapshot.aggregates_changed(
            Aggregate.of(each.id, each.uuid, each.name, each.hosts, each.metadata) for each in listed
        )

    def delete_aggregate(self, ctxt: RequestContext, *, aggregate: objects.Aggregate) -> None:
        self._snapshot.aggregate_gone(aggregate.id)

    def update_instance_info(
        self, ctxt: RequestContext, *, host_name: str, instance_info: objects.InstanceList
    ) -> None:
        if self._track:
            listed = getattr(instance_info, "objects", None) or [instance_info]
            self._snapshot.instances_seen(host_name, [each.uuid for each in listed])

    def delete_instance_info(self, ctxt: RequestContext, *, host_name: str, instance_uuid: str) -> None:
        if self._track:
            self._snapshot.instance_gone(host_name, instance_uuid)

    def sync_instance_info(self, ctxt: RequestContext, *, host_name: str, instance_uuids: Collection[str]) -> None:
        if self._track:
            self._snapshot.instances_are(host_name, instance_uuids)


class Service:
    """The running scheduler. `chooser.record` has the last decisions."""

    def __init__(self, conf: cfg.ConfigOpts, cells: Cells, bus: Bus, clients: Clients, host: str) -> None:
        self._bus = bus
        self._host = host
        self.snapshot = Snapshot(DatabaseSource(cells))
        filters, weighers = plugins.filters(conf), plugins.weighers(conf)
        for weigher in weighers:
            if isinstance(weigher, ImagePropertiesWeigher):
                weigher.properties = lambda cell, uuids: image_properties(cells, cell, uuids)
        self.chooser = Chooser(conf, cells, clients, self.snapshot, filters, weighers, Record())
        tracks = conf.filter_scheduler.track_instance_changes
        self._handlers = Handlers(self.chooser, self.snapshot, track_instances=tracks)
        self._server = bus.serve("scheduler", host, [self._handlers])
        self._heartbeat = Heartbeat(cells.own, host, "nova-scheduler", "scheduler", interval=conf.report_interval)
        self._timers = Periodic("scheduler", workers=1, passes=away.is_away)
        interval = conf.scheduler.discover_hosts_in_cells_interval
        if interval >= 0:
            discover = functools.partial(discovery.discover, cells)
            self._timers.every(float(interval or 60), discover, name="discover_hosts", initial_delay=0.0)

    def start(self) -> None:
        self._heartbeat.start()
        if self._timers.timers:
            self._timers.start()
        self._server.start()

    def stop(self, timeout: float = 30.0) -> None:
        """No new request is taken; those in progress have `timeout` seconds to end."""
        self._timers.stop()
        self._server.stop()
        self._server.wait(timeout)
        self._heartbeat.stop()

    def wait(self) -> None:
        self._server.wait()


def image_properties(cells: Cells, cell: str, uuids: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """{server: image properties} out of the system metadata in one statement; empty when the cell does not answer."""

    def read(asked: Cell) -> dict[str, dict[str, str]]:
        return asked.database.query(host_changes.image_properties, list(uuids))

    found = cells.scatter(read, [cells.cell(cell)], timeout=10.0)[cell]
    return {} if isinstance(found, CellDown) else found
