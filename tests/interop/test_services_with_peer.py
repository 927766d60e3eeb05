"""Our compute hosts on the peer's control plane and the peer's on ours: servers live, and every record agrees.

Keystone, Placement, Neutron, Glance, MariaDB and RabbitMQ are real, guests are those of the fake drivers. Needs
PEER_PYTHON (a Python with the peer in it).
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.mixed import Host, Mixed, Side
from tests.interop.mixed_cloud import NEWEST, PATIENCE, PLACEMENT, Cloud
from tests.needs import needs

from kilonova.cloud.library import Surroundings, surroundings
from kilonova.cloud.rest import poll

PEER = os.environ.get("PEER_PYTHON")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    needs("peer"),
    needs("rabbitmq", "mariadb"),
]
PORT_OFFSET = 20000
OTHER: dict[Side, Side] = {"ours": "theirs", "theirs": "ours"}


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
    """It comes first: the refusing host has the most memory, and it has refused nothing yet.

    The next one is of the other kind: it has to understand what the first has left.
    """
    with cloud.only("refusing", "same"):
        server = cloud.create("refused")
        cloud.until(server, "ACTIVE")
    cloud.assert_lives_on(server, "same")
    assert cloud.hosts_of("compute__do_build_and_run_instance", server) == ["refusing", "same"]
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
