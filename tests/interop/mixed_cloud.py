"""What one asks a mixed compute service, and its records in the database, Placement and Neutron."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from tests.interop.mixed import Mixed

from kilonova.cloud.library import Running, Surroundings
from kilonova.cloud.rest import RestError, poll

NEWEST = {"OpenStack-API-Version": "compute 2.96"}
PLACEMENT = {"OpenStack-API-Version": "placement 1.36"}
PATIENCE = 90.0


class Cloud:
    """A mixed compute service and what one asks it."""

    def __init__(self, lab: Surroundings, service: Mixed, running: Running) -> None:
        self.lab, self.service, self.running = lab, service, running
        self.site = lab.site
        self.admin = lab.rest()
        self.demo = lab.rest("demo", "demo")
        self.image = self.demo.get(self.site.url("glance", "/v2/images?name=guest"))["images"][0]["id"]
        self.network = self.demo.get(self.site.url("neutron", "/v2.0/networks?name=private"))["networks"][0]["id"]
        self.database = sa.create_engine(running.cell_database)

    # Requests

    def url(self, path: str) -> str:
        return f"{self.running.compute_url}{path}"

    def get(self, path: str, version: str = "2.96") -> Any:
        return self.admin.get(self.url(path), **{"OpenStack-API-Version": f"compute {version}"})

    def create(self, name: str, host: str | None = None, **more: Any) -> str:
        """The id of a new server; with `host`, on that host."""
        server = {"name": name, "flavorRef": "1", "imageRef": self.image, "networks": [{"uuid": self.network}], **more}
        client = self.demo
        if host is not None:
            # Only administrators may name a host.
            client, server["host"] = self.lab.rest("admin", "demo"), host
        return str(client.post(self.url("/servers"), {"server": server}, NEWEST)["server"]["id"])

    def show(self, server: str) -> Any:
        return self.get(f"/servers/{server}")["server"]

    def act(self, server: str, action: str, value: Any = None) -> Any:
        return self.demo.post(self.url(f"/servers/{server}/action"), {action: value}, NEWEST)

    def until(
        self,
        server: str,
        status: str,
        also: Callable[[Any], bool] = lambda shown: True,
        patience: float = PATIENCE,
    ) -> Any:
        end = time.monotonic() + patience
        while True:
            shown = self.show(server)
            if shown["status"] == status and shown["OS-EXT-STS:task_state"] is None and also(shown):
                return shown
            over = time.monotonic() > end or (shown["status"] == "ERROR" and status != "ERROR")
            assert not over, f"{shown['status']} {shown['OS-EXT-STS:task_state']}, not {status}: {shown.get('fault')}"
            time.sleep(0.3)

    def delete(self, *ids: str) -> None:
        for server in ids:
            self.demo.call("DELETE", self.url(f"/servers/{server}"))
        for server in ids:
            poll(f"{server} is not gone", functools.partial(self.gone, server), PATIENCE)

    def gone(self, server: str) -> bool:
        try:
            self.show(server)
        except RestError as error:
            if error.code != 404:
                raise
            return True
        return False

    def actions(self, server: str) -> dict[str, dict[str, str]]:
        """Results of the events of each action, by names."""
        listed = self.get(f"/servers/{server}/os-instance-actions")["instanceActions"]
        found = {}
        for one in listed:
            path = f"/servers/{server}/os-instance-actions/{one['request_id']}"
            found[one["action"]] = {e["event"]: e["result"] for e in self.get(path)["instanceAction"]["events"]}
        return found

    def hosts_of(self, event: str, server: str) -> list[str]:
        """Hosts in the events of that name, the oldest first."""
        statement = (
            "SELECT e.host FROM instance_actions_events e JOIN instance_actions a ON a.id = e.action_id"
            " WHERE a.instance_uuid = :uuid AND e.event = :event ORDER BY e.id"
        )
        return [row["host"] for row in self.rows(statement, uuid=server, event=event)]

    # Records

    def rows(self, statement: str, **values: Any) -> list[Any]:
        with self.database.connect() as connection:
            return [row._asdict() for row in connection.execute(sa.text(statement), values)]

    def instance(self, server: str) -> Any:
        return self.rows("SELECT * FROM instances WHERE uuid = :uuid", uuid=server)[0]

    def claims(self, server: str) -> dict[str, dict[str, int]]:
        """Resources in Placement by host."""
        base = self.site.url("placement")
        names = {
            one["uuid"]: one["name"]
            for one in self.admin.get(f"{base}/resource_providers", **PLACEMENT)["resource_providers"]
        }
        held = self.admin.get(f"{base}/allocations/{server}", **PLACEMENT)["allocations"]
        return {names[provider]: one["resources"] for provider, one in held.items()}

    def ports(self, server: str) -> list[Any]:
        return list(self.admin.get(self.site.url("neutron", f"/v2.0/ports?device_id={server}"))["ports"])

    def services(self) -> dict[str, Any]:
        """Compute services by host."""
        return {one["host"]: one for one in self.get("/os-services?binary=nova-compute")["services"]}

    def assert_lives_on(self, server: str, host: str) -> None:
        row = self.instance(server)
        assert (row["vm_state"], row["task_state"], row["host"], row["node"]) == ("active", None, host, host)
        assert (row["power_state"], row["deleted"]) == (1, 0)
        assert row["launched_at"] is not None
        assert row["compute_id"] == self.node(host)["id"]
        assert self.claims(server) == {host: {"VCPU": 1, "MEMORY_MB": 192, "DISK_GB": 1}}
        assert [(port["binding:host_id"], port["device_owner"]) for port in self.ports(server)] == [
            (host, "compute:nova")
        ]
        assert len(self.show(server)["addresses"]["private"]) == 1

    def assert_left_nothing(self, server: str) -> None:
        row = self.instance(server)
        assert row["deleted"] == row["id"]
        assert (row["vm_state"], row["task_state"]) == ("deleted", None)
        assert self.claims(server) == {}
        assert self.ports(server) == []
        for table in ("block_device_mapping", "instance_info_caches", "virtual_interfaces"):
            left = self.rows(f"SELECT * FROM {table} WHERE instance_uuid = :uuid AND deleted = 0", uuid=server)
            assert left == [], table

    def node(self, host: str) -> Any:
        return self.rows("SELECT * FROM compute_nodes WHERE host = :host AND deleted = 0", host=host)[0]

    # Hosts

    def set_status(self, host: str, status: str) -> None:
        self.change_service(host, {"status": status} | ({"disabled_reason": "a test"} if status == "disabled" else {}))

    def change_service(self, host: str, body: dict[str, Any]) -> None:
        self.admin.call("PUT", self.url(f"/os-services/{self.services()[host]['id']}"), body, NEWEST)

    @contextlib.contextmanager
    def only(self, *hosts: str) -> Iterator[None]:
        """All other hosts are disabled meanwhile."""
        others = [host for host in self.service.members if host not in hosts]
        for host in others:
            self.set_status(host, "disabled")
        try:
            yield
        finally:
            for host in others:
                self.set_status(host, "enabled")
