"""Recipes from public bug reports about building, showing and deleting; each is named after its id."""

from __future__ import annotations

import uuid

import pytest
from tests.ops.control_plane import PROJECT, ControlPlane

from kilonova.contract import exceptions
from kilonova.db.api import instance_groups


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
@pytest.mark.parametrize("policy", ["anti-affinity"])
def test_b073_parallel_creates_keep_anti_affinity(cloud: ControlPlane, policy: str) -> None:
    import concurrent.futures

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
