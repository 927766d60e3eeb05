"""A small cloud on SQLite files: the API database, cell0, cell1, two hosts; the other services in memory.

The scheduler and the hosts are doubles that keep Nova's choreography; everything of the conductor is real.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import uuid
from typing import Any

from tests import fakes
from tests.fakes.guests import flavor

from kilonova import conf as configuration
from kilonova.base import clock
from kilonova.clients.http import ServiceUnavailable
from kilonova.conductor import records
from kilonova.conductor.world import World
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db import flows, query
from kilonova.db.api import build_requests, cell_mappings, host_mappings, instance_mappings
from kilonova.db.cell.tables import SERVICES
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.heartbeat import service_announce
from kilonova.db.objects import instance as instances
from kilonova.flow import offers
from kilonova.flow.seal import Seal
from kilonova.flow.store import NewFlow
from kilonova.wire.rpc.errors import RpcTimeout

CELL1_UUID = "11111111-1111-1111-1111-111111111111"
PROJECT = "project"
SEAL = Seal(["test kit"])


class Bus:
    def __init__(self, url: str = "fake:///") -> None:
        self.url = url

    def at(self, url: str) -> Bus:
        return self


class Scheduler:
    """Claims on the first hosts with room, as the real one does; `lose` answers get lost after the claim."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.lose = 0
        self.calls = 0

    def select_destinations(
        self, ctxt: Any, *, spec_obj: Any, instance_uuids: list[str], return_objects: bool, return_alternates: bool
    ) -> list[list[objects.Selection]]:
        self.calls += 1
        found = [self._select(ctxt, spec_obj, each) for each in instance_uuids]
        if self.lose:
            self.lose -= 1
            raise RpcTimeout("no answer")
        return found

    def _select(self, ctxt: Any, spec: Any, server: str) -> list[objects.Selection]:
        hosts = [self._selection(host, spec) for host in self.stage.hosts]
        while hosts:
            wanted = json.loads(hosts[0].allocation_request)
            if self.stage.cloud.clients.placement.claim(ctxt, server, wanted, PROJECT, "user"):
                return hosts
            hosts.pop(0)
        raise exceptions.NoValidHost(reason="There are not enough hosts available.")

    def _selection(self, host: str, spec: Any) -> objects.Selection:
        provider = self.stage.providers[host]
        resources = {"VCPU": spec.flavor.vcpus, "MEMORY_MB": spec.flavor.memory_mb}
        return objects.Selection(
            allocation_request=json.dumps({"allocations": {provider: {"resources": resources}}, "mappings": {}}),
            allocation_request_version="1.36",
            availability_zone="nova",
            cell_uuid=CELL1_UUID,
            compute_node_uuid=provider,
            limits=None,
            nodename=host,
            service_host=host,
        )


class Hosts:
    """The compute hosts: take casts into a mailbox and work through it when told; repeats change nothing."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.mail: list[tuple[str, dict[str, Any]]] = []
        self.down: set[str] = set()
        self.broken: set[str] = set()
        self.refusing: set[str] = set()
        self.given_back: list[dict[str, Any]] = []
        self.casts: list[tuple[str, str]] = []
        self.drop = 0
        self.gave_back: set[tuple[str, str]] = set()

    def build_and_run_instance(self, ctxt: Any, **kwargs: Any) -> None:
        assert kwargs["host"] in self.stage.hosts
        self._post(ctxt, "build", kwargs["host"], kwargs)

    def terminate_instance(self, ctxt: Any, **kwargs: Any) -> None:
        self._post(ctxt, "terminate", kwargs["instance"].host, kwargs)

    def _post(self, ctxt: Any, method: str, host: str, kwargs: dict[str, Any]) -> None:
        self.casts.append((method, host))
        if self.drop:
            self.drop -= 1
            return
        self.mail.append((method, {**kwargs, "host": host, "ctxt": ctxt}))

    def work(self) -> None:
        """What hosts that are up do with their mail."""
        kept = []
        mail, self.mail = self.mail, []
        for method, kwargs in mail:
            if kwargs["host"] in self.down:
                kept.append((method, kwargs))
                continue
            try:
                if method == "build":
                    self._build(**kwargs)
                else:
                    self._terminate(kwargs["instance"].uuid)
            except ServiceUnavailable:
                # As the journal of a real host: it goes on where it was.
                kept.append((method, kwargs))
        self.mail[:0] = kept

    def _build(
        self, *, ctxt: Any, instance: Any, host: str, host_list: Any, filter_properties: Any, **more: Any
    ) -> None:
        server = self.stage.server(instance.uuid)
        if server is None or not (records.waits_for_host(server) or self._begun(server, host)):
            return
        if (host, server.uuid) in self.gave_back:
            return
        if host in self.refusing and server.host is None:
            self.stage.clients.placement.allocations_delete(ctxt, server.uuid, force=True)
            # Only now: a claim that could not be released is tried again with the mail that is kept.
            self.gave_back.add((host, server.uuid))
            self.given_back.append(
                {"instances": [server], "filter_properties": filter_properties, "host_lists": [host_list], **more}
            )
            return
        server.host, server.node, server.compute_id, server.task_state = host, host, 1, "spawning"
        self.stage.save(server)
        networks = objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id=self.stage.network)])
        self.stage.clients.neutron.allocate(ctxt, server, networks, None, host)
        if host in self.broken:
            self.stage.clients.neutron.deallocate(ctxt.elevated(), server)
            self.stage.clients.placement.allocations_delete(ctxt, server.uuid, force=True)
            server.vm_state, server.task_state, server.host, server.node, server.compute_id = (
                "error",
                None,
                None,
                None,
                None,
            )
            self.stage.save(server)
            return
        server.vm_state, server.task_state, server.power_state = "active", None, 1
        self.stage.save(server)

    @staticmethod
    def _begun(server: Any, host: str) -> bool:
        return server.vm_state == "building" and server.host == host and server.task_state == "spawning"

    def _terminate(self, uuid: str) -> None:
        server = self.stage.server(uuid)
        if server is None:
            return
        ctxt = self.stage.ctxt()
        self.stage.clients.neutron.deallocate(ctxt.elevated(), server)
        self.stage.clients.placement.allocations_delete(ctxt, uuid, force=True)
        self.stage.cell.run(records.erase, ctxt, uuid)


class Stage:
    """The cloud of one test."""

    def __init__(self, folder: pathlib.Path, templates: pathlib.Path) -> None:
        for name, template in (("api", "api"), ("cell0", "cell"), ("cell1", "cell")):
            shutil.copy(templates / f"{template}.db", folder / f"{name}.db")
        self.conf = configuration.new()
        self.conf([], project="nova", default_config_files=[], default_config_dirs=[])
        self.conf.set_override("connection", f"sqlite:///{folder}/api.db", group="api_database")
        self.conf.set_override("connection", f"sqlite:///{folder}/cell0.db", group="database")
        for name, value in (("flow_resend", 0.1), ("flow_watch", 0.05)):
            self.conf.set_override(name, value, group="kilonova")
        self.cells = Cells(self.conf)
        self.hosts = ["h1", "h2"]
        self.cloud = fakes.Cloud()
        self.clients = self.cloud.clients
        self.providers = {host: self.cloud.placement.host(host) for host in self.hosts}
        self.network = self.cloud.neutron.network(project=PROJECT)
        self._map(folder)
        self.cell = self.cells.cell(CELL1_UUID).database
        self.cell0 = self.cells.cell0.database
        self.api = self.cells.api
        for host in self.hosts:
            self.cell.run(service_announce, host, "nova-compute", "compute")
        self.scheduler = Scheduler(self)
        self.compute = Hosts(self)
        self.world = World(
            self.conf, self.cells, Bus(), self.clients, "conductor",
            scheduler=self.scheduler, compute=lambda bus: self.compute,
        )  # fmt: skip
        self.world.began -= 3600
        self.api_store = self.world.api_store()
        self.cell_store = self.world.place(CELL1_UUID).store
        self.networks: objects.NetworkRequestList | None = None

    def _map(self, folder: pathlib.Path) -> None:
        with self.cells.api.write() as tx:
            for cell, name, bus in ((CELL0_UUID, "cell0", "none:///"), (CELL1_UUID, "cell1", "fake:///")):
                url = f"sqlite:///{folder}/{name}.db"
                row = {"uuid": cell, "name": name, "database_connection": url, "transport_url": bus, "disabled": False}
                made = cell_mappings.cell_mapping_create(tx, row)
            for host in self.hosts:
                host_mappings.host_mapping_create(tx, host, made["id"])

    def ctxt(self) -> RequestContext:
        return RequestContext("user", PROJECT, auth_token="token", request_id="req-1", overwrite=False)

    # What users and hosts do.

    def post(self, count: int = 1, **kwargs: Any) -> NewFlow:
        """What the API stores for a request for servers; the flow is returned, not put down."""
        ctxt = self.ctxt()
        specs = []
        with self.api.write() as tx:
            for _ in range(count):
                server = self._asked(str(uuid.uuid4()))
                specs.append(self._spec(server))
                instance_mappings.instance_mapping_create(
                    tx, {"instance_uuid": server.uuid, "project_id": PROJECT, "user_id": "user", "cell_id": None}
                )
                request = {"instance_uuid": server.uuid, "project_id": PROJECT}
                text = json.dumps(server.obj_to_primitive())
                build_requests.build_request_create(tx, {**request, "instance": text})
        options: dict[str, Any] = {
            "image": {},
            "admin_password": "s3cret",
            "injected_files": [],
            "requested_networks": self.networks,
            "block_device_mapping": self.devices(),
            "tags": objects.TagList(objects=[objects.Tag(tag="blue")]),
            "grace": 0.0,
            "deadline": 3600.0,
        }
        return offers.build_offer(SEAL, ctxt, request_specs=specs, **(options | kwargs))

    def _asked(self, server: str) -> objects.Instance:
        return objects.Instance(
            uuid=server,
            project_id=PROJECT,
            user_id="user",
            display_name="one",
            hostname="one",
            vm_state="building",
            task_state="scheduling",
            power_state=0,
            image_ref="",
            flavor=flavor(id=1),
            memory_mb=192,
            vcpus=1,
            root_gb=1,
            ephemeral_gb=0,
            metadata={"a": "b"},
            system_metadata={},
            launch_index=0,
            reservation_id="r-1",
        )

    def _spec(self, server: objects.Instance) -> objects.RequestSpec:
        return objects.RequestSpec(
            instance_uuid=server.uuid,
            project_id=PROJECT,
            user_id="user",
            flavor=server.flavor,
            num_instances=1,
            availability_zone=None,
            image=None,
            security_groups=objects.SecurityGroupList(objects=[]),
        )

    def devices(self) -> objects.BlockDeviceMappingList:
        swap = objects.BlockDeviceMapping(
            source_type="blank", destination_type="local", guest_format="swap", boot_index=-1, device_type="disk"
        )
        return objects.BlockDeviceMappingList(objects=[swap])

    def user_deletes(self, server: str) -> None:
        """What the API does for DELETE, in whatever state the server is."""
        with self.api.write() as tx:
            if build_requests.build_request_delete(tx, server):
                instance_mappings.instance_mapping_update(tx, server, {"queued_for_delete": True})
                return
        found = self.server(server)
        if found is None or found.task_state == "deleting":
            return
        new = offers.delete_offer(SEAL, self.ctxt(), instance_uuid=server, cast=False, grace=0.0)
        with self.cell.write() as tx:
            found.task_state = "deleting"
            instances.save(tx, self.ctxt(), found)
            flows.offer(tx, new)

    def silence(self, host: str, seconds: float = 1000) -> None:
        """The host was last heard of so long ago."""
        self.compute.down.add(host)
        past = clock.naive_now().replace(microsecond=0) - _seconds(seconds)
        with self.cell.write() as tx:
            tx.execute(SERVICES.update().where(SERVICES.c.host == host).values(last_seen_up=past, updated_at=past))

    # What tests look at.

    def server(self, server: str) -> objects.Instance | None:
        return self.cell.query(records.look, server, ("info_cache", "fault"))

    def buried(self, server: str) -> objects.Instance | None:
        return self.cell0.query(records.look, server, ("fault", "tags"))

    def save(self, server: objects.Instance) -> None:
        self.cell.run(instances.save, self.ctxt(), server)

    def mapping(self, server: str) -> query.Row | None:
        return self.api.query(instance_mappings.instance_mapping_get, server)

    def leftovers(self, server: str) -> dict[str, Any]:
        """What the server holds in other services."""
        return {
            "allocations": self.cloud.placement.held(server),
            "ports": [port["id"] for port in self.cloud.neutron.ports_of(server)],
        }


def _seconds(seconds: float) -> Any:
    import datetime

    return datetime.timedelta(seconds=seconds)
