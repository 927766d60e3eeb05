"""One cell for tests of hosts: a real object service on SQLite, a bus in memory, other services in memory, hosts.

What the conductor's tasks and the schedulers would be told is only noted down.
"""

from __future__ import annotations

import pathlib
import shutil
import time
import uuid
from collections.abc import Callable
from typing import Any

from tests import fakes
from tests.fakes.guests import IMAGE_ID, flavor
from tests.waiting import Held

from kilonova import conf as configuration
from kilonova.compute import service
from kilonova.conductor.objects.service import ObjectService
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db.api import instance_groups, instance_mappings
from kilonova.db.cell.tables import SERVICES
from kilonova.db.cells import Cells
from kilonova.db.objects import action, bdm
from kilonova.db.objects import fault as faults
from kilonova.db.objects import instance as instances
from kilonova.virt.fake.driver import FakeDriver
from kilonova.virt.fake.faults import Fault
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import ComputeClient

PROJECT = "project"
PATIENCE = 10.0


class Tasks:
    """Takes the casts to the conductor's task interface."""

    def __init__(self) -> None:
        self.builds: list[dict[str, Any]] = []

    def build_instances(self, ctxt: Any, **args: Any) -> None:
        self.builds.append(args)


class Schedulers:
    """Takes what hosts tell schedulers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def update_instance_info(self, ctxt: Any, *, host_name: str, instance_info: Any) -> None:
        self.told.extend(("update", each.uuid) for each in instance_info.objects)

    def delete_instance_info(self, ctxt: Any, *, host_name: str, instance_uuid: str) -> None:
        self.told.append(("delete", instance_uuid))

    def sync_instance_info(self, ctxt: Any, *, host_name: str, instance_uuids: list[str]) -> None:
        self.told.append(("sync", tuple(instance_uuids)))


class WaitingDriver(FakeDriver):
    """Its guests wait for their interfaces before they begin."""

    def spawn(self, ctxt: Any, guest: Any) -> None:
        wanted = [("network-vif-plugged", vif["id"]) for vif in guest.network_info]
        with self.services.events.expect(guest.instance.uuid, wanted, 60):
            super().spawn(ctxt, guest)


class World:
    def __init__(self, folder: pathlib.Path, templates: pathlib.Path) -> None:
        self.folder = folder
        shutil.copy(templates / "cell.db", folder / "cell.db")
        shutil.copy(templates / "api.db", folder / "api.db")
        self.conf = configuration.new()
        self.conf([], project="nova", default_config_files=[], default_config_dirs=[])
        self.conf.set_override("connection", f"sqlite:///{folder}/cell.db", group="database")
        self.conf.set_override("connection", f"sqlite:///{folder}/api.db", group="api_database")
        self.set(report_interval=0, periodic_enable=False, shutdown_timeout=0)
        self.set("kilonova", node_write_delay=0.05)
        self.bus = Bus(self.conf, f"fake://{uuid.uuid4().hex}")
        self.set(rpc_response_timeout=5)
        self.cells = Cells(self.conf)
        self.db = self.cells.own
        self.tasks, self.schedulers = Tasks(), Schedulers()
        self.servers = [
            self.bus.serve("conductor", "conductor", [ObjectService(self.cells, self.conf), self.tasks]),
            self.bus.serve("scheduler", "scheduler", [self.schedulers]),
        ]
        for server in self.servers:
            server.start()
        self.cloud = fakes.Cloud()
        self.clients = self.cloud.clients
        self.network = self.cloud.neutron.network(project=PROJECT)
        self.client = ComputeClient(self.bus)
        self.hosts: dict[str, service.Service] = {}

    def set(self, group: str | None = None, **options: Any) -> None:
        for name, value in options.items():
            self.conf.set_override(name, value, group=group)

    def close(self) -> None:
        for host in list(self.hosts):
            self.stop(host)
        for server in self.servers:
            server.stop()
            server.wait(5)

    # Hosts

    def host(self, name: str = "h1", driver: type[FakeDriver] = FakeDriver, **more: Any) -> service.Service:
        made = service.make(self.conf, self.bus, name, self.clients, self.folder / name, driver_factory=driver, **more)
        made.start()
        self.hosts[name] = made
        return made

    def stop(self, name: str = "h1", timeout: float = 5.0) -> None:
        host = self.hosts.pop(name)
        host.stop(timeout)
        host._server.wait(1)

    def kill(self, name: str = "h1") -> None:
        """As kill -9 does it: nothing is written any more, whatever its threads still do."""
        host = self.hosts.pop(name)
        host._server.stop()
        agent = host.agent
        dead = Dead()
        agent.store = agent.clients = agent.conductor = agent.scheduler = dead  # type: ignore[assignment]
        agent.journal.close()
        agent.journal = dead  # type: ignore[assignment]
        agent.tracker._store = dead  # type: ignore[assignment]
        agent.timers.stop(0.1)
        agent.events.close()

    def driver(self, name: str = "h1") -> FakeDriver:
        found = self.hosts[name].agent.driver
        assert isinstance(found, FakeDriver)
        return found

    def hold(self, *methods: str, host: str = "h1") -> Held:
        """Calls of these methods of the driver last until they are released."""
        held = Held(*methods)
        self.driver(host)._latency = held
        return held

    def fail(self, method: str, error: Exception | None = None, host: str = "h1", **more: Any) -> None:
        chosen = error or exceptions.NovaException(f"{method} is broken")
        self.driver(host).faults.add(Fault(method, lambda: chosen, **more))

    # Servers

    def ctxt(self, **more: Any) -> RequestContext:
        values = {"auth_token": "token", "request_id": f"req-{uuid.uuid4()}", "overwrite": False}
        return RequestContext("user", PROJECT, **{**values, **more})

    def asked(
        self, ctxt: RequestContext, host: str = "h1", disks: list[Any] | None = None, **values: Any
    ) -> objects.Instance:
        """A server as the conductor leaves it when it casts to a host: recorded, claimed in Placement."""
        instance = objects.Instance(
            **{
                "uuid": str(uuid.uuid4()),
                "project_id": PROJECT,
                "user_id": "user",
                "display_name": "web",
                "hostname": "web",
                "vm_state": "building",
                "task_state": "scheduling",
                "power_state": 0,
                "image_ref": IMAGE_ID,
                "flavor": flavor(id=1),
                "memory_mb": 192,
                "vcpus": 1,
                "root_gb": 1,
                "ephemeral_gb": 0,
                "metadata": {},
                "system_metadata": {"image_min_disk": "0", "image_disk_format": "qcow2"},
                "launch_index": 0,
                "reservation_id": "r-1",
                "availability_zone": "nova",
                "config_drive": "",
                **values,
            }
        )
        instance.info_cache = objects.InstanceInfoCache(instance_uuid=instance.uuid, network_info=[])
        self.db.run(instances.create, ctxt, instance)
        self.act(ctxt, instance, "create")
        for disk in disks if disks is not None else [image_disk()]:
            disk.instance_uuid = instance.uuid
            self.db.run(bdm.create, ctxt, disk)
        if host in self.hosts:
            self.claim(ctxt, instance, host)
        return instance

    def claim(self, ctxt: RequestContext, instance: objects.Instance, host: str) -> None:
        [provider] = self.driver(host).nodes().values()
        wanted = {"allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 192}}}}
        assert self.clients.placement.claim(ctxt, instance.uuid, wanted, PROJECT, "user")

    def act(self, ctxt: RequestContext, instance: objects.Instance, name: str) -> None:
        self.db.run(action.action_start, ctxt, instance.uuid, name, False)

    def group(self, policy: str, *members: str) -> str:
        """A server group with these members; its uuid."""
        with self.cells.api.write() as tx:
            made = instance_groups.instance_group_create(
                tx, {"project_id": PROJECT, "user_id": "user", "name": "g"}, policy
            )
            for member in members:
                row = {"instance_uuid": member, "project_id": PROJECT, "user_id": "user", "cell_id": None}
                instance_mappings.instance_mapping_create(tx, row)
            instance_groups.instance_group_members_add(tx, made["id"], members)
        return str(made["uuid"])

    def disks(self, instance: objects.Instance) -> objects.BlockDeviceMappingList:
        return self.db.query(bdm.get_by_instance_uuid, self.ctxt(), instance.uuid)

    def cast_build(self, ctxt: RequestContext, instance: objects.Instance, host: str = "h1", **more: Any) -> None:
        args = {
            "instance": instance,
            "host": host,
            "image": {"id": IMAGE_ID, "properties": {}},
            "request_spec": None,
            "filter_properties": {"retry": {"num_attempts": 1, "hosts": [[host, host]]}},
            "admin_password": "secret",
            "injected_files": [],
            "requested_networks": self.networks(),
            "security_groups": None,
            "block_device_mapping": self.disks(instance),
            "node": host,
            "limits": None,
            "host_list": [],
            "accel_uuids": [],
            **more,
        }
        self.client.build_and_run_instance(ctxt, **args)

    def networks(self) -> objects.NetworkRequestList:
        return objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id=self.network)])

    def built(self, host: str = "h1", **more: Any) -> objects.Instance:
        """An ACTIVE server."""
        ctxt = self.ctxt()
        instance = self.asked(ctxt, host)
        self.cast_build(ctxt, instance, host, **more)
        found = self.until(instance.uuid, vm_state="active", task_state=None)
        self.idle()
        return found

    def cast(self, method: str, instance: objects.Instance, task: str | None = None, **args: Any) -> RequestContext:
        """What the API does: take the task state, note the action, cast."""
        ctxt = self.ctxt()
        if task is not None:
            instance.task_state = task
            self.db.run(instances.save, ctxt, instance)
        self.act(ctxt, instance, method.partition("_")[0])
        getattr(self.client, method)(ctxt, instance=instance, **args)
        return ctxt

    # Looking

    def server(self, server: str, deleted: bool = False) -> objects.Instance | None:
        attrs = ("info_cache", "system_metadata", "flavor", "metadata")
        try:
            return self.db.query(lambda tx: instances.load(tx, server, attrs, read_deleted=deleted))
        except exceptions.InstanceNotFound:
            return None

    def until(self, server: str, **states: Any) -> objects.Instance:
        """The server once it shows these values."""
        found: list[objects.Instance | None] = [None]

        def shows() -> bool:
            found[0] = self.server(server)
            return found[0] is not None and all(getattr(found[0], k) == v for k, v in states.items())

        assert wait_for(shows), f"{states} did not come; the server is {found[0] and describe(found[0])}"
        assert found[0] is not None
        return found[0]

    def idle(self) -> None:
        """Until no host has anything to do."""
        assert wait_for(lambda: not any(h.agent.lanes.depth for h in self.hosts.values()))

    def gone(self, server: str) -> None:
        assert wait_for(lambda: self.server(server) is None), "the server is still there"

    def fault(self, server: str) -> objects.InstanceFault | None:
        found = self.db.query(faults.get_by_instance_uuids, self.ctxt(), [server])
        return found.objects[0] if found.objects else None

    def events(self, server: str, request_id: str) -> list[tuple[str, str | None]]:
        found = self.db.query(action.get_by_request_id, self.ctxt(), server, request_id)
        listed = self.db.query(action.events_get_by_action, self.ctxt(), found.id)
        return [(event.event, event.result) for event in listed.objects]

    def details(self, server: str, ctxt: RequestContext) -> str | None:
        """What the last event of the request's action says."""
        found = self.db.query(action.get_by_request_id, ctxt, server, ctxt.request_id)
        listed = self.db.query(action.events_get_by_action, ctxt, found.id)
        details: str | None = listed.objects[0].details
        return details

    def leftovers(self, server: str) -> dict[str, Any]:
        """What the server holds elsewhere."""
        return {
            "allocations": self.cloud.placement.held(server),
            "ports": [port["id"] for port in self.cloud.neutron.ports_of(server)],
            "attachments": [a["id"] for a in self.cloud.cinder.attachments.values() if a["instance"] == server],
            "guests": [name for name in self.hosts if server in self.driver(name).guests()],
        }

    def disable(self, host: str) -> None:
        with self.db.write() as tx:
            tx.execute(SERVICES.update().where(SERVICES.c.host == host).values(disabled=True))


NOTHING: dict[str, Any] = {"allocations": {}, "ports": [], "attachments": [], "guests": []}


class Dead:
    """Stands for whatever a killed process can no longer reach."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit("this process was killed")


def image_disk() -> objects.BlockDeviceMapping:
    return objects.BlockDeviceMapping(
        source_type="image",
        destination_type="local",
        boot_index=0,
        device_type="disk",
        image_id=IMAGE_ID,
        delete_on_termination=True,
    )


def volume_disk(volume_id: str, boot_index: int = 0, **more: Any) -> objects.BlockDeviceMapping:
    return objects.BlockDeviceMapping(
        source_type="volume",
        destination_type="volume",
        boot_index=boot_index,
        device_type="disk",
        volume_id=volume_id,
        **more,
    )


def wait_for(condition: Callable[[], Any], patience: float = PATIENCE) -> bool:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def describe(instance: objects.Instance) -> str:
    return f"{instance.vm_state}/{instance.task_state} on {instance.host}"
