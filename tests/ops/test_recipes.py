"""Recipes from public bug reports about building, showing and deleting; each is named after its id."""

from __future__ import annotations

import concurrent.futures
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.ops.control_plane import PROJECT, ControlPlane

from kilonova.api import quota
from kilonova.api.ops import build as api_build
from kilonova.contract import exceptions
from kilonova.db.api import instance_groups
from kilonova.db.api.tables import INSTANCE_MAPPINGS

GROUP = {"server_group": {"name": "g", "policy": "soft-affinity"}}


@pytest.fixture
def nowhere(cloud: ControlPlane) -> str:
    """A flavor that fits on no host."""
    return cloud.make_flavor("huge", root_gb=10**6)


def failed(cloud: ControlPlane, flavor: str, name: str = "failed") -> str:
    server: str = cloud.create(name, flavorRef=flavor)["id"]
    cloud.until_status(server, "ERROR")
    return server


@pytest.mark.parametrize("wanted", ["1", "0", "-1", "%20", "a" * 300])
def test_b001_integer_in_place_of_a_uuid(cloud: ControlPlane, wanted: str) -> None:
    answer = cloud.request("GET", f"/servers/{wanted}")
    assert answer.status_code == 404
    assert "itemNotFound" in answer.json


def test_b016_console_asked_while_the_server_is_being_deleted(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.active()["id"]
    host = cloud.guests()[server]
    from kilonova.virt.fake.driver import FakeDriver

    held = cloud.hold(monkeypatch, FakeDriver, "destroy")
    cloud.delete(server)
    cloud.until("deleting", lambda: cloud.show(server)["OS-EXT-STS:task_state"] == "deleting")
    cloud.act(server, "os-getConsoleOutput", {}, status=409)
    held.set()
    cloud.until_gone(server)
    assert host not in cloud.guests().values()


def test_b031_a_marker_among_failed_servers(cloud: ControlPlane, nowhere: str) -> None:
    mixed = []
    for n in range(3):
        mixed.append(failed(cloud, nowhere, f"bad-{n}"))
        mixed.append(cloud.active(f"good-{n}")["id"])
    for limit in range(1, 7):
        seen: list[str] = []
        marker = ""
        while True:
            page = cloud.request("GET", f"/servers?limit={limit}{marker}", status=200)["servers"]
            if not page:
                break
            seen += [one["id"] for one in page]
            marker = f"&marker={seen[-1]}"
        assert sorted(seen) == sorted(mixed)
        assert len(seen) == len(set(seen))


def test_b034_the_fault_is_in_the_detailed_list_too(cloud: ControlPlane, nowhere: str) -> None:
    server = failed(cloud, nowhere)
    shown = cloud.request("GET", f"/servers/{server}", status=200)["server"]
    listed = cloud.request("GET", "/servers/detail", status=200)["servers"]
    assert shown["fault"]["code"] == 500
    assert [one["fault"] for one in listed if one["id"] == server] == [shown["fault"]]


def test_b037_an_action_record_when_scheduling_fails(cloud: ControlPlane, nowhere: str) -> None:
    server = failed(cloud, nowhere)
    (action,) = cloud.actions(server)
    assert action["action"] == "create"
    assert action["message"] == "Error"
    assert "Error" in [event["result"] for event in action["events"]]


def test_b055_the_fault_does_not_leak_internals(cloud: ControlPlane) -> None:
    for host in cloud.hosts:
        cloud.fault(host, "spawn", lambda: RuntimeError("secret /etc/x password=hunter2"))
    server = cloud.create()["id"]
    cloud.until_status(server, "ERROR")
    seen = cloud.request("GET", f"/servers/{server}", status=200)["server"]["fault"]
    assert "secret" not in str(seen)
    assert "hunter2" not in str(seen)


def test_b064_failed_builds_do_not_eat_quota(cloud: ControlPlane, nowhere: str) -> None:
    cloud.conf.set_override("instances", 1, group="quota")
    for _ in range(5):
        server = failed(cloud, nowhere)
        cloud.delete(server)
        cloud.until_gone(server)
    cloud.active()


def test_b070_a_build_that_fails_is_tried_elsewhere(cloud: ControlPlane) -> None:
    cloud.fault("h1", "spawn", lambda: exceptions.ComputeResourcesUnavailable(reason="injected"), calls=range(1, 10))
    servers = [cloud.create(f"s{n}")["id"] for n in range(4)]
    for server in servers:
        assert cloud.until_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == "h2"
    tried = {len(cloud.actions(server)[-1]["events"]) for server in servers}
    assert max(tried) > 1
    cloud.assert_clean()


@pytest.mark.hosts("h1", "h2", "h3", "h4")
@pytest.mark.parametrize(("policy", "number"), [("affinity", 10), ("anti-affinity", 4)])
def test_d9_parallel_creates_keep_the_policy_and_all_live(cloud: ControlPlane, policy: str, number: int) -> None:
    for name in ("instances", "cores", "ram"):
        cloud.conf.set_override(name, -1, group="quota")
    body = {"server_group": {"name": "g", "policy": policy}}
    group = cloud.request("POST", "/os-server-groups", body, status=200)["server_group"]["id"]
    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        made = list(pool.map(lambda n: cloud.create(f"s{n}", hints={"group": group})["id"], range(number)))
    hosts = [cloud.until_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:host"] for server in made]
    assert len(set(hosts)) == (1 if policy == "affinity" else number)
    cloud.assert_clean()


class _CountsAtOnce:
    """Nova's API: of requests that come at once each finds room, and is recorded."""

    def __getattr__(self, name: str) -> Any:
        return getattr(quota, name)

    def servers_allowed(self, rooms: object, each: object, low: int, high: int) -> int:
        return high

    def take_servers(self, *args: object) -> None:
        pass


def test_q1_of_requests_that_novas_api_let_through_the_first_live(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.conf.set_override("instances", 5, group="quota")
    monkeypatch.setattr(api_build, "quota", _CountsAtOnce())
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cloud.create(f"s{n}"), range(8)))
    with cloud.parts.cells.api.read() as tx:
        query = sa.select(INSTANCE_MAPPINGS.c.instance_uuid).order_by(INSTANCE_MAPPINGS.c.id)
        servers = list(tx.execute(query).scalars())
    for server in servers[:5]:
        cloud.until_status(server, "ACTIVE")
    for server in servers[5:]:
        shown = cloud.until_status(server, "ERROR")
        assert "Quota exceeded for instances" in shown["fault"]["message"]
        cloud.delete(server)
        cloud.until_gone(server)
    cloud.assert_clean()
    monkeypatch.undo()
    cloud.create("more", status=403)


@pytest.mark.hosts("h1", "h2", "h3", "h4")
@pytest.mark.parametrize("policy", ["anti-affinity"])
def test_b073_parallel_creates_keep_anti_affinity(cloud: ControlPlane, policy: str) -> None:
    group = str(uuid.uuid4())
    with cloud.parts.cells.api.write() as tx:
        instance_groups.instance_group_create(
            tx, {"uuid": group, "name": "g", "project_id": PROJECT, "user_id": "joe"}, policy
        )
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda n: cloud.create(f"s{n}", hints={"group": group})["id"], range(6)))

    def settled() -> bool:
        shown = [cloud.show(server) for server in made]
        return all(s["status"] in ("ACTIVE", "ERROR") for s in shown)

    cloud.until("all settled", settled, 90)
    shown = [cloud.show(server) for server in made]
    hosts = [s["OS-EXT-SRV-ATTR:host"] for s in shown if s["status"] == "ACTIVE"]
    assert len(hosts) == len(set(hosts)) >= 1
    assert all(s.get("fault") for s in shown if s["status"] == "ERROR")
    cloud.assert_clean()


def test_b112_a_volume_is_free_after_a_failed_boot(cloud: ControlPlane) -> None:
    cloud.conf.set_override("cores", -1, group="quota")
    nowhere = cloud.make_flavor("wide", vcpus=10**6)
    volume = cloud.cloud.cinder.volume(project=PROJECT, bootable="true")
    device = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    server = cloud.create(flavorRef=nowhere, imageRef="", block_device_mapping_v2=[device])["id"]
    cloud.until_status(server, "ERROR")
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.until("the volume available", lambda: cloud.cloud.cinder.volumes[volume]["status"] == "available")


def test_b112_a_volume_is_free_when_every_host_failed(cloud: ControlPlane) -> None:
    for host in ("h1", "h2"):
        cloud.fault(host, "spawn", lambda: exceptions.DiskNotFound(location="injected"), calls=range(1, 10))
    cinder = cloud.cloud.cinder
    volume = cinder.volume(project=PROJECT, bootable="true")
    root = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    made = {"source_type": "blank", "destination_type": "volume", "volume_size": 1, "delete_on_termination": True}
    server = cloud.create(imageRef="", block_device_mapping_v2=[root, {**made, "boot_index": -1}])["id"]
    cloud.until_status(server, "ERROR")
    cloud.until("the volume available", lambda: cinder.volumes[volume]["status"] == "available")
    cloud.until("the made volume gone", lambda: set(cinder.volumes) == {volume})
    assert not cinder.attachments


def test_b115_a_second_try_keeps_the_attachment(cloud: ControlPlane) -> None:
    cloud.fault("h1", "spawn", lambda: exceptions.ComputeResourcesUnavailable(reason="injected"))
    volume = cloud.cloud.cinder.volume(project=PROJECT, bootable="true")
    device = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    server = cloud.create(imageRef="", block_device_mapping_v2=[device])["id"]
    shown = cloud.until_status(server, "ACTIVE")
    assert shown["OS-EXT-SRV-ATTR:host"] == "h2"
    assert [v["id"] for v in shown["os-extended-volumes:volumes_attached"]] == [volume]
    cloud.until("the volume in use", lambda: cloud.cloud.cinder.volumes[volume]["status"] == "in-use")


def test_b067_members_of_a_group_are_counted_in_multi_creates(cloud: ControlPlane) -> None:
    cloud.conf.set_override("server_group_members", 5, group="quota")
    group = cloud.request("POST", "/os-server-groups", GROUP, status=200)["server_group"]["id"]
    for n in range(3):
        cloud.create(f"s{n}", hints={"group": group})
    cloud.create("many", status=403, min_count=3, max_count=3, hints={"group": group})
    cloud.create("many", min_count=2, max_count=2, hints={"group": group})
    cloud.create("more", status=403, hints={"group": group})


def test_b067_members_of_a_group_in_parallel_creates(cloud: ControlPlane) -> None:
    cloud.conf.set_override("server_group_members", 5, group="quota")
    group = cloud.request("POST", "/os-server-groups", GROUP, status=200)["server_group"]["id"]
    body = {"name": "s", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none"}
    request = {"server": body, "os:scheduler_hints": {"group": group}}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: cloud.request("POST", "/servers", request).status_code, range(8)))
    assert set(codes) <= {202, 403}
    members = cloud.request("GET", f"/os-server-groups/{group}", status=200)["server_group"]["members"]
    assert len(members) == codes.count(202) <= 5


@pytest.mark.hosts("h1", "h2", "h3")
@pytest.mark.parametrize("policy", ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"])
def test_b076_a_second_try_keeps_the_policy_of_the_group(cloud: ControlPlane, policy: str) -> None:
    body = {"server_group": {"name": "g", "policy": policy}}
    group = cloud.request("POST", "/os-server-groups", body, status=200)["server_group"]["id"]
    first = cloud.active("first", hints={"group": group})["OS-EXT-SRV-ATTR:host"]
    others = [host for host in cloud.hosts if host != first]
    failing = first if policy == "affinity" else others[0]
    error = lambda: exceptions.ComputeResourcesUnavailable(reason="injected")  # noqa: E731
    cloud.fault(failing, "spawn", error, calls=range(1, 3))
    second = cloud.create("second", hints={"group": group})["id"]
    if policy == "affinity":
        # There is no other place for it: it ends with a reason, on no host.
        assert cloud.until_status(second, "ERROR")["fault"]["message"]
    else:
        host = cloud.until_status(second, "ACTIVE")["OS-EXT-SRV-ATTR:host"]
        assert policy != "anti-affinity" or host != first
    cloud.assert_clean()


CALLS = ("POST /v2.0/ports", "PUT /v2.0/ports/", "PUT /attachments/", "POST /attachments/", "PUT /allocations/")


@pytest.mark.parametrize("step", CALLS)
@pytest.mark.parametrize("times", [1, 2])
def test_b130_deleted_at_each_call_of_its_build(cloud: ControlPlane, step: str, times: int) -> None:
    method, path = step.split()
    volume = cloud.cloud.cinder.volume(project=PROJECT)
    devices = [
        {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": cloud.image},
        {"source_type": "volume", "destination_type": "volume", "boot_index": 1, "uuid": volume},
    ]
    answers: list[int] = []
    made: list[str] = []
    accepted = threading.Event()

    def intrude() -> None:
        accepted.wait(10)
        answers.extend(cloud.request("DELETE", f"/servers/{made[0]}").status_code for _ in range(times))

    for service in (cloud.cloud.neutron, cloud.cloud.glance, cloud.cloud.cinder, cloud.cloud.placement):
        _before(service, method, path, intrude)
    port = cloud.cloud.neutron.port(cloud.network, project=PROJECT)
    networks = [{"uuid": cloud.network}, {"port": port}]
    made.append(cloud.create(block_device_mapping_v2=devices, networks=networks)["id"])
    accepted.set()
    cloud.until("the deletion", lambda: len(answers) >= times)
    assert set(answers) <= {204, 404}
    cloud.until_gone(made[0])
    cloud.assert_clean()
    cloud.until("the volume available", lambda: cloud.cloud.cinder.volumes[volume]["status"] == "available")
    assert cloud.guests() == {}
    assert cloud.cloud.neutron.ports[port]["device_id"] == ""


def _before(service: Any, method: str, path: str, intrude: Callable[[], None]) -> None:
    """Once, before such a request of a build is carried out, let somebody in."""
    send, done = service.send, threading.Event()

    def sending(request: Any) -> Any:
        if request.method == method and request.path.startswith(path) and not done.is_set():
            done.set()
            intrude()
        return send(request)

    service.send = sending


@pytest.mark.parametrize("hostname", ["a-", "A_b", "x."])
def test_r24_a_given_host_name_that_dns_does_not_take(cloud: ControlPlane, hostname: str) -> None:
    answer = cloud.create(status=400, hostname=hostname, version="2.94")
    assert "hostname" in answer["badRequest"]["message"]
    server = cloud.active(hostname="good.example.org", version="2.94")["id"]
    body = {"server": {"hostname": hostname}}
    refused = cloud.request("PUT", f"/servers/{server}", body, version="2.94", status=400)
    assert "hostname" in refused["badRequest"]["message"]
    assert cloud.show(server)["OS-EXT-SRV-ATTR:hostname"] == "good.example.org"


def test_r24_servers_that_are_called_what_no_host_can_be(cloud: ControlPlane) -> None:
    """The fake refuses as Neutron does what is no DNS name."""
    for name, count in (("é", 1), ("a" * 63, 2), ("日本", 2)):
        first = cloud.create(name, min_count=count)["id"]
        cloud.until_status(first, "ACTIVE")
    named = {port["dns_name"] for port in cloud.cloud.neutron.ports.values()}
    assert {"e", "a" * 61 + "-1"} <= named
