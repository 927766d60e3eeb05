"""Our compute hosts on the peer's control plane and the peer's on ours: servers live, and every record agrees.

Keystone, Placement, Neutron, Glance, MariaDB and RabbitMQ are real, guests are those of the fake drivers. Needs
PEER_PYTHON (a Python with the peer in it).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.interop.mixed import Host, Mixed, Side
from tests.real import broker, servers

from kilonova.cloud.library import Running, Surroundings, surroundings
from kilonova.cloud.rest import RestError, poll

PEER = os.environ.get("PEER_PYTHON")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not PEER, reason="PEER_PYTHON names no Python with the peer"),
    pytest.mark.skipif(not (broker.rabbitmq_found() and servers.mariadb_found()), reason="needs RabbitMQ and MariaDB"),
]
PORT_OFFSET = 20000
NEWEST = {"OpenStack-API-Version": "compute 2.96"}
PLACEMENT = {"OpenStack-API-Version": "placement 1.36"}
OTHER: dict[Side, Side] = {"ours": "theirs", "theirs": "ours"}
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

    def until(self, server: str, status: str, also: Callable[[Any], bool] = lambda shown: True) -> Any:
        end = time.monotonic() + PATIENCE
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
            poll(f"{server} is not gone", lambda one=server: self.gone(one), PATIENCE)

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


@pytest.fixture(scope="module")
def lab() -> Iterator[Surroundings]:
    with (
        tempfile.TemporaryDirectory(prefix="kn-both-", ignore_cleanup_errors=True) as root,
        surroundings(Path(root) / "s", profile="full", port_offset=PORT_OFFSET) as made,
    ):
        yield made


@pytest.fixture(scope="module", params=["ours", "theirs"])
def cloud(lab: Surroundings, request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """A control plane with a host of its own side and two of the other; one of these refuses its first build."""
    control: Side = request.param
    other = OTHER[control]
    hosts = [
        Host("refusing", other, "FakeRescheduleDriver"),
        Host("other", other, "MediumFakeDriver"),
        Host("same", control, "MediumFakeDriver"),
    ]
    place = dataclasses.replace(lab.site, peer=Path(str(PEER)).parents[1])
    service = Mixed(place, lab.cloud.supervisor, control, hosts)
    with lab.running(service) as running:
        yield Cloud(lab, service, running)


def test_a_host_refuses_and_the_next_one_builds(cloud: Cloud) -> None:
    """It comes first: the refusing host has the most memory, and it has refused nothing yet."""
    server = cloud.create("refused")
    shown = cloud.until(server, "ACTIVE")
    host = shown["OS-EXT-SRV-ATTR:host"]
    assert host in ("other", "same")
    cloud.assert_lives_on(server, host)
    assert cloud.hosts_of("compute__do_build_and_run_instance", server) == ["refusing", host]
    cloud.delete(server)
    cloud.assert_left_nothing(server)


@pytest.mark.parametrize("host", ["other", "same"])
def test_a_server_lives_its_whole_life(cloud: Cloud, host: str) -> None:
    server = cloud.create("whole", host, metadata={"a": "1"}, tags=["t"], description="d", hostname="guest")
    shown = cloud.until(server, "ACTIVE")
    cloud.assert_lives_on(server, host)
    assert (shown["metadata"], shown["tags"], shown["description"]) == ({"a": "1"}, ["t"], "d")
    assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == shown["OS-EXT-SRV-ATTR:host"] == host
    assert server in [one["id"] for one in cloud.demo.get(cloud.url("/servers?tags=t"), **NEWEST)["servers"]]
    assert cloud.act(server, "os-getConsoleOutput", {"length": 5})["output"]
    cloud.act(server, "os-stop")
    cloud.until(server, "SHUTOFF", lambda shown: shown["OS-EXT-STS:power_state"] == 4)
    assert cloud.instance(server)["vm_state"] == "stopped"
    cloud.act(server, "os-start")
    cloud.until(server, "ACTIVE", lambda shown: shown["OS-EXT-STS:power_state"] == 1)
    for kind in ("SOFT", "HARD"):
        cloud.act(server, "reboot", {"type": kind})
        cloud.until(server, "ACTIVE")
    cloud.assert_lives_on(server, host)
    assert cloud.actions(server) == {
        "create": {"compute__do_build_and_run_instance": "Success"},
        "stop": {"compute_stop_instance": "Success"},
        "start": {"compute_start_instance": "Success"},
        "reboot": {"compute_reboot_instance": "Success"},
    }
    cloud.delete(server)
    cloud.assert_left_nothing(server)
    assert cloud.actions(server)["delete"] == {"compute_terminate_instance": "Success"}


def test_many_servers_come_and_go_at_once(cloud: Cloud) -> None:
    with cloud.only("other", "same"):
        cloud.create("many", min_count=16, max_count=16)
        ids = [one["id"] for one in cloud.demo.get(cloud.url("/servers?name=many"), **NEWEST)["servers"]]
        assert len(ids) == 16
        hosts = {server: cloud.until(server, "ACTIVE")["OS-EXT-SRV-ATTR:host"] for server in ids}
    assert set(hosts.values()) == {"other", "same"}
    for server, host in hosts.items():
        cloud.assert_lives_on(server, host)
    cloud.delete(*ids)
    for server in ids:
        cloud.assert_left_nothing(server)
    poll("used memory is not given back", lambda: used(cloud) == dict.fromkeys(cloud.service.members, 512), 180)


def used(cloud: Cloud) -> dict[str, int]:
    """MiB, with what each host keeps for itself."""
    return {host: cloud.node(host)["memory_mb_used"] for host in cloud.service.members}


def test_a_server_that_no_host_builds_is_in_error(cloud: Cloud) -> None:
    with cloud.only("refusing"):
        server = cloud.create("nowhere")
        shown = cloud.until(server, "ERROR")
    assert shown["fault"]["code"] == 500
    assert shown["fault"]["message"]
    assert shown["OS-EXT-SRV-ATTR:host"] is None
    assert cloud.claims(server) == {}
    cloud.delete(server)
    cloud.assert_left_nothing(server)


@pytest.mark.parametrize("host", ["other", "same"])
def test_a_service_is_disabled_and_forced_down(cloud: Cloud, host: str) -> None:
    cloud.set_status(host, "disabled")
    shown = cloud.services()[host]
    assert (shown["status"], shown["disabled_reason"], shown["state"]) == ("disabled", "a test", "up")
    poll("no trait in Placement", lambda: "COMPUTE_STATUS_DISABLED" in traits(cloud, host), PATIENCE)
    cloud.set_status(host, "enabled")
    poll("a trait in Placement", lambda: "COMPUTE_STATUS_DISABLED" not in traits(cloud, host), PATIENCE)
    for forced, state in ((True, "down"), (False, "up")):
        cloud.change_service(host, {"forced_down": forced})
        assert cloud.services()[host]["state"] == state


def test_a_host_is_stopped_and_started(cloud: Cloud) -> None:
    """One of ours: the peer's fake driver makes a new node identity whenever it starts, and the peer refuses that."""
    [host] = [name for name in ("other", "same") if cloud.service.members[name].side == "ours"]
    server = cloud.create("kept", host)
    cloud.until(server, "ACTIVE")
    seen = cloud.services()[host]["updated_at"]
    cloud.running.stop(f"nova-compute-{host}")
    cloud.running.start()
    poll("the host says nothing", lambda: cloud.services()[host]["updated_at"] > seen, PATIENCE)
    cloud.act(server, "reboot", {"type": "HARD"})
    cloud.until(server, "ACTIVE")
    cloud.assert_lives_on(server, host)
    cloud.delete(server)
    cloud.assert_left_nothing(server)


def test_hosts_offer_the_same_resources(cloud: Cloud) -> None:
    shown = {one["hypervisor_hostname"]: one for one in cloud.get("/os-hypervisors/detail", "2.87")["hypervisors"]}
    assert set(shown) == set(cloud.service.members)
    # Nova's hosts count what is gone only at their next look.
    passing = ("vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb", "free_disk_gb", "running_vms")
    own = ("id", "hypervisor_hostname", "service", *passing)
    other, same = ({k: v for k, v in shown[host].items() if k not in own} for host in ("other", "same"))
    assert other == same
    assert inventory(cloud, "other") == inventory(cloud, "same")
    for host in cloud.service.members:
        assert cloud.node(host)["uuid"] == provider(cloud, host)["uuid"]
    assert traits(cloud, "other") == traits(cloud, "same")


def test_a_list_shows_the_uptime_that_our_hosts_record(cloud: Cloud) -> None:
    """The peer's fake driver has none."""
    listed = cloud.get("/os-hypervisors/detail", "2.88")["hypervisors"]
    known = {one["hypervisor_hostname"] for one in listed if one["uptime"]}
    assert known == {host.name for host in cloud.service.members.values() if host.side == "ours"}


def provider(cloud: Cloud, host: str) -> Any:
    found = cloud.admin.get(cloud.site.url("placement", f"/resource_providers?name={host}"), **PLACEMENT)
    return found["resource_providers"][0]


def inventory(cloud: Cloud, host: str) -> Any:
    base = cloud.site.url("placement", f"/resource_providers/{provider(cloud, host)['uuid']}")
    return cloud.admin.get(f"{base}/inventories", **PLACEMENT)["inventories"]


def traits(cloud: Cloud, host: str) -> set[str]:
    base = cloud.site.url("placement", f"/resource_providers/{provider(cloud, host)['uuid']}")
    return set(cloud.admin.get(f"{base}/traits", **PLACEMENT)["traits"])
