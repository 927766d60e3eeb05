"""A conductor of Nova's beside ours: it takes from the same queue, says so when pinged, and knows nothing of flows."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from typing import Any

from tests.ops.control_plane import CELL, PATIENCE, ControlPlane

from kilonova.base import clock
from kilonova.conductor import records
from kilonova.conductor.building import placing
from kilonova.conductor.objects.service import ObjectService
from kilonova.contract.rpc import baseapi
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cell.tables import SERVICES
from kilonova.db.heartbeat import service_announce
from kilonova.db.objects import bdm
from kilonova.wire.rpc.bus import SERVED
from kilonova.wire.rpc.clients import ComputeClient, SchedulerClient
from kilonova.wire.rpc.endpoints import Endpoint, endpoints


class PeerConductor:
    """Builds as Nova's does: claim, record, map, send. `held` keeps it between claim and record until it is set."""

    namespace = "compute_task"

    def __init__(self, cloud: ControlPlane, host: str = "peer") -> None:
        self.cloud = cloud
        self.host = host
        self.held = threading.Event()
        self.claimed: list[str] = []
        self.dead = False
        self._bus = cloud.parts.bus
        self._cell = cloud.parts.cells.cell(CELL)
        offered = endpoints(SERVED["conductor"], [ObjectService(cloud.parts.cells, cloud.conf), self])
        offered[-1] = Endpoint(baseapi.API, [_Base()])
        self._server: Any = self._bus.transport.server("conductor", host, offered, self._bus._decoder)

    def start(self) -> None:
        self._cell.database.run(service_announce, self.host, "nova-conductor", "conductor")
        self._server.start()

    def stop(self) -> None:
        """Its record stays, as that of one that reports no more."""
        self.dead = True
        self.held.set()
        self._server.stop()
        self._server.wait(PATIENCE)

    def forget(self) -> None:
        """Time passes: its last report is old."""
        down = self.cloud.conf.service_down_time + 1
        past = clock.naive_now().replace(microsecond=0) - datetime.timedelta(seconds=down)
        with self._cell.database.write() as tx:
            mine = (SERVICES.c.host == self.host, SERVICES.c.binary == "nova-conductor")
            tx.execute(SERVICES.update().where(*mine).values(last_seen_up=past))

    def alone(self, act: Callable[[], Any]) -> Any:
        """Do something while our conductor takes nothing from the queue."""
        ours = self.cloud._services[0]._server
        ours.stop()
        try:
            return act()
        finally:
            ours.start()

    def schedule_and_build_instances(self, ctxt: Any, *, request_specs: Any, **asked: Any) -> None:
        uuids = [spec.instance_uuid for spec in request_specs]
        request_specs[0].num_instances = len(uuids)
        chosen = SchedulerClient(self._bus).select_destinations(
            ctxt, spec_obj=request_specs[0], instance_uuids=uuids, return_objects=True, return_alternates=True
        )
        self.claimed += uuids
        self.held.wait(PATIENCE)
        if self.dead:
            return
        for spec, hosts in zip(request_specs, chosen, strict=True):
            self._send(ctxt, spec, hosts, asked)

    def _send(self, ctxt: Any, spec: Any, hosts: Any, asked: Any) -> None:
        api, uuid = self.cloud.parts.cells.api, spec.instance_uuid
        server = records.server_of(api.query(build_requests.build_request_get, uuid))
        self._cell.database.run(records.create, ctxt, server, "nova", asked["block_device_mapping"], asked["tags"])
        with api.write() as tx:
            instance_mappings.instance_mapping_set_cell(tx, uuid, CELL)
            assert build_requests.build_request_delete(tx, uuid)
        props = placing.properties(spec)
        placing.count_try(props, uuid, 3)
        placing.point_at(props, hosts[0])
        ComputeClient(self._bus).build_and_run_instance(
            ctxt,
            instance=self._cell.database.query(records.for_host, uuid),
            host=hosts[0].service_host,
            image=asked["image"],
            request_spec=spec,
            filter_properties=props,
            admin_password=asked["admin_password"],
            injected_files=asked["injected_files"],
            requested_networks=asked["requested_networks"],
            security_groups=[],
            block_device_mapping=self._cell.database.query(bdm.get_by_instance_uuid, ctxt, uuid),
            node=hosts[0].nodename,
            limits=hosts[0].limits,
            host_list=hosts[1:],
            accel_uuids=[],
        )


class _Base:
    def ping(self, ctxt: Any, *, arg: Any) -> dict[str, Any]:
        return {"service": "conductor", "arg": arg}
