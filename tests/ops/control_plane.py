"""The whole control plane in one process: API, scheduler, conductor, hosts with the fake driver; SQLite, bus in memory.

Keystone, Placement, Neutron, Glance and Cinder are fakes on the HTTP level, everything of ours is real.
"""

from __future__ import annotations

import collections
import pathlib
import shutil
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import falcon.testing
from tests import fakes
from tests.waiting import Late, until

from kilonova import conf as configuration
from kilonova.cmd import assembly
from kilonova.contract.context import RequestContext
from kilonova.db.api import cell_mappings, flavors, host_mappings
from kilonova.db.cells import CELL0_UUID
from kilonova.db.flows import FlowTable
from kilonova.virt.fake.driver import FakeDriver
from kilonova.virt.fake.faults import Fault
from kilonova.wire.rpc.bus import Bus

PROJECT = "6f70656e737461636b20342065766572"
CELL = "11111111-1111-1111-1111-111111111111"
PATIENCE = 30.0

QUICK = {
    "flow_lease": 4.0,
    "flow_poll": 0.1,
    "flow_grace": 1.0,
    "flow_watch": 0.2,
    "flow_resend": 3.0,
    "service_patience": 8.0,
    "reconcile_interval": 0.5,
    "reconcile_grace": 1.0,
    "node_write_delay": 0.05,
}
"""Options of [kilonova] that make waiting short."""


class ControlPlane:
    """One cell with the given hosts. Requests are made as `joe` of PROJECT unless told otherwise."""

    def __init__(self, folder: pathlib.Path, templates: pathlib.Path, hosts: Sequence[str] = ("h1", "h2")) -> None:
        self.folder = folder
        self.conf = self._configure(templates)
        self.cloud = fakes.Cloud()
        self.cloud.keystone.projects.add(PROJECT)
        self.parts = assembly.Parts(self.conf)
        # The other services are in memory: what the configuration would reach is replaced before it is first used.
        self.parts.__dict__["clients"] = self.cloud.clients
        self._map_cells()
        self.hosts: dict[str, Any] = {}
        self._services = [*assembly.conductor(self.parts, alone=False), assembly.scheduler(self.parts)]
        for service in self._services:
            service.start()
        for host in hosts:
            self.start_host(host)
        self.http = falcon.testing.TestClient(assembly.api(self.parts))
        self.network = self.cloud.neutron.network(project=PROJECT)
        self.image = self.cloud.glance.image(project=PROJECT)
        self.flavor = self.make_flavor()

    def _bus_address(self) -> str:
        return f"fake://{uuid.uuid4().hex}/"

    def _configure(self, templates: pathlib.Path) -> Any:
        for name, source in (("api", "api"), ("cell0", "cell"), ("cell1", "cell")):
            shutil.copy(templates / f"{source}.db", self.folder / f"{name}.db")
        conf = configuration.new()
        conf([], project="nova", default_config_files=[], default_config_dirs=[])
        conf.set_override("auth_strategy", "noauth2", group="api")
        conf.set_override("connection", f"sqlite:///{self.folder}/api.db", group="api_database")
        conf.set_override("connection", f"sqlite:///{self.folder}/cell1.db", group="database")
        conf.set_override("host", "control")
        conf.set_override("transport_url", f"fake://{uuid.uuid4().hex}/") if "transport_url" in conf else None
        for name, value in QUICK.items():
            conf.set_override(name, value, group="kilonova")
        self.bus_url = self._bus_address()
        bus = Bus(conf, self.bus_url)
        for name, value in {"report_interval": 1, "shutdown_timeout": 0, "rpc_response_timeout": 10}.items():
            conf.set_override(name, value)
        self._bus = bus
        return conf

    def _map_cells(self) -> None:
        self.parts.__dict__["bus"] = self._bus
        with self.parts.cells.api.write() as tx:
            for uuid_, name, bus in ((CELL0_UUID, "cell0", "none:///"), (CELL, "cell1", self.bus_url)):
                cell_mappings.cell_mapping_create(
                    tx,
                    {
                        "uuid": uuid_,
                        "name": name,
                        "transport_url": bus,
                        "database_connection": f"sqlite:///{self.folder}/{name}.db",
                        "disabled": False,
                    },
                )

    # Hosts

    def start_host(self, host: str) -> None:
        """Start an agent; its guests are those of its last life."""
        made: Any = assembly.compute(self.parts, host, self.folder / host, driver_factory=FakeDriver)
        made.start()
        self.hosts[host] = made
        cell = self.parts.cells.cell(CELL)
        with self.parts.cells.api.write() as tx:
            if host_mappings.host_mapping_get(tx, host) is None:
                host_mappings.host_mapping_create(tx, host, cell.id)

    def stop_host(self, host: str) -> None:
        self.hosts.pop(host).stop(5.0)

    def driver(self, host: str) -> FakeDriver:
        found = self.hosts[host].agent.driver
        assert isinstance(found, FakeDriver)
        return found

    def fault(self, host: str, method: str, error: Callable[[], Exception], **more: Any) -> None:
        """Make calls of a host's driver fail."""
        self.driver(host).faults.add(Fault(method, error, **more))

    def hold(self, patch: Any, kind: type[Any], method: str) -> threading.Event:
        """Make every call of `kind.method` wait until the event that is returned is set."""
        released, original = threading.Event(), getattr(kind, method)

        def waiting(*args: Any, **kwargs: Any) -> Any:
            released.wait(PATIENCE)
            return original(*args, **kwargs)

        patch.setattr(kind, method, waiting)
        return released

    def guests(self) -> dict[str, str]:
        """Instance uuid -> host, for every guest that a hypervisor knows."""
        return {guest: host for host in self.hosts for guest in self.driver(host).guests()}

    # Requests

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str = "2.96",
        user: str = "joe",
        project: str = PROJECT,
        status: int | None = None,
    ) -> Any:
        """The answer; with `status` its body, after a check."""
        headers = {"X-Auth-Token": f"{user}:{project}", "OpenStack-API-Version": f"compute {version}"}
        more = {} if body is None else {"json": body}
        answer = self.http.simulate_request(method, f"/v2.1{path}", headers=headers, **more)
        if status is None:
            return answer
        assert answer.status_code == status, f"{method} {path}: {answer.status} {answer.text}"
        return answer.json if answer.text else None

    def create(self, name: str = "one", status: int = 202, **server: Any) -> Any:
        """POST /servers; `version`, `hints`, `user` are taken out of the keywords. Returns the server, or the fault."""
        outer = {k: server.pop(k) for k in ("version", "user", "project") if k in server}
        hints = server.pop("hints", None)
        body: dict[str, Any] = {
            "server": {
                "name": name,
                "flavorRef": self.flavor,
                "imageRef": self.image,
                "networks": [{"uuid": self.network}],
                **server,
            }
        }
        if hints:
            body["os:scheduler_hints"] = hints
        answer = self.request("POST", "/servers", body, status=status, **outer)
        return answer["server"] if status == 202 and "server" in answer else answer

    def show(self, server: str, **more: Any) -> Any:
        return self.request("GET", f"/servers/{server}", status=200, user="admin", **more)["server"]

    def act(self, server: str, action: str, value: Any = None, status: int = 202, **more: Any) -> Any:
        return self.request("POST", f"/servers/{server}/action", {action: value}, status=status, **more)

    def delete(self, server: str, status: int = 204) -> None:
        self.request("DELETE", f"/servers/{server}", status=status)

    def actions(self, server: str) -> list[dict[str, Any]]:
        """Actions with their events, newest first."""
        listed = self.request("GET", f"/servers/{server}/os-instance-actions", status=200, user="admin")
        return [
            self.request("GET", f"/servers/{server}/os-instance-actions/{one['request_id']}", status=200, user="admin")[
                "instanceAction"
            ]
            for one in listed["instanceActions"]
        ]

    # Waiting

    def until(self, what: str, test: Callable[[], Any], patience: float = PATIENCE) -> Any:
        """The first true answer of `test`."""
        return until(test, patience, what, every=0.05)

    def until_status(self, server: str, status: str, patience: float = PATIENCE) -> Any:
        """The server once it has the status and no task. Fails at once when it is in ERROR instead."""

        def reached() -> Any:
            found = self.show(server)
            if found["status"] == "ERROR" != status:
                raise AssertionError(f"{server} is in ERROR: {found.get('fault')}")
            return found if found["status"] == status and found["OS-EXT-STS:task_state"] is None else None

        try:
            return self.until(f"{server} {status}", reached, patience)
        except Late as late:
            raise Late(f"{late}; it is {self.show(server)}") from None

    def until_gone(self, server: str, patience: float = PATIENCE) -> None:
        self.until(f"{server} gone", lambda: self.request("GET", f"/servers/{server}").status_code == 404, patience)

    def active(self, name: str = "one", **server: Any) -> Any:
        """A new server, built."""
        return self.until_status(self.create(name, **server)["id"], "ACTIVE")

    def watch_looks(self, patch: Any) -> Callable[[str], int]:
        """How often the flows of a database, by its name, have been looked through by all conductors from now on."""
        looks: collections.Counter[str] = collections.Counter()
        original = FlowTable.any_due

        def any_due(table: FlowTable, scopes: Any) -> bool:
            found = original(table, scopes)
            looks[table.name] += 1
            return found

        patch.setattr(FlowTable, "any_due", any_due)
        return lambda name: looks[name]

    # What is left behind

    def leftovers(self) -> dict[str, Any]:
        """What other services and hypervisors hold although no living server explains it. Empty is good."""
        known = self.instance_uuids()
        found = {
            "allocations": [c for c in self.cloud.placement.consumers if c not in known],
            "ports": [p["id"] for p in self.cloud.neutron.ports.values() if p.get("device_id") not in {*known, ""}],
            "attachments": [a["id"] for a in self.cloud.cinder.attachments.values() if a.get("instance") not in known],
            "guests": [g for g in self.guests() if g not in known],
        }
        return {kind: items for kind, items in found.items() if items}

    def instance_uuids(self) -> set[str]:
        import sqlalchemy as sa

        from kilonova.db.cell.tables import INSTANCES

        with self.parts.cells.cell(CELL).database.read() as tx:
            return set(tx.execute(sa.select(INSTANCES.c.uuid).where(INSTANCES.c.deleted == 0)).scalars())

    def assert_clean(self) -> None:
        """Nothing is left behind, at once or after the repair loops ran."""
        try:
            self.until("a clean cloud", lambda: not self.leftovers(), 15)
        except Late:
            raise AssertionError(f"left behind: {self.leftovers()}") from None

    # Records

    def make_flavor(self, name: str = "small", extra_specs: dict[str, str] | None = None, **values: Any) -> str:
        """A public flavor; returns its id."""
        columns = {
            "name": name,
            "flavorid": name,
            "memory_mb": 512,
            "vcpus": 1,
            "root_gb": 1,
            "ephemeral_gb": 0,
            "swap": 0,
            "rxtx_factor": 1.0,
            "is_public": True,
            "disabled": False,
            **values,
        }
        with self.parts.cells.api.write() as tx:
            flavors.flavor_create(tx, columns, extra_specs or {})
        return name

    def context(self) -> RequestContext:
        return RequestContext(user_id="joe", project_id=PROJECT)

    def close(self) -> None:
        for host in list(self.hosts):
            self.stop_host(host)
        for service in reversed(self._services):
            service.stop()
        self.parts.close()
