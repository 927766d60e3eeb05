"""Builds through the whole control plane: works, fails at every part, survives lost messages and lost processes."""

from __future__ import annotations

import pytest
from tests.ops.control_plane import ControlPlane

from kilonova.cmd import assembly
from kilonova.contract import exceptions
from kilonova.virt.fake.driver import FakeDriver


def broken() -> Exception:
    return exceptions.InstanceDeployFailure(reason="the hypervisor said no")


def test_several_at_once(cloud: ControlPlane) -> None:
    first = cloud.create("many", min_count=3, max_count=3)
    listed = cloud.request("GET", "/servers", status=200)["servers"]
    assert len(listed) == 3
    for server in listed:
        cloud.until_status(server["id"], "ACTIVE")
    assert first["id"] in {server["id"] for server in listed}
    assert len(cloud.cloud.placement.consumers) == 3


def test_no_host_is_explained_and_the_server_can_be_deleted(cloud: ControlPlane) -> None:
    huge = cloud.make_flavor("huge", root_gb=10**6)
    server = cloud.create("one", flavorRef=huge)["id"]
    shown = cloud.until_status(server, "ERROR")
    assert shown["fault"]["code"] == 500
    assert shown["fault"]["message"].startswith("No valid host was found. ")
    (create,) = cloud.actions(server)
    assert (create["action"], create["message"]) == ("create", "Error")
    (event,) = create["events"]
    assert event["result"] == "Error"
    (listed,) = cloud.request("GET", "/servers/detail", status=200)["servers"]
    assert listed["fault"]["message"] == shown["fault"]["message"]
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()


def test_a_host_that_fails_is_replaced_by_an_alternate(cloud: ControlPlane) -> None:
    cloud.fault("h1", "spawn", broken)
    shown = cloud.active("one", availability_zone="nova")
    other = cloud.active("two")
    hosts = {shown["OS-EXT-SRV-ATTR:host"], other["OS-EXT-SRV-ATTR:host"]}
    assert hosts == {"h2"}
    assert len(cloud.cloud.neutron.ports) == 2
    cloud.assert_clean()


def test_all_hosts_fail(cloud: ControlPlane) -> None:
    cloud.fault("h1", "spawn", broken)
    cloud.fault("h2", "spawn", broken)
    server = cloud.create("one")["id"]
    shown = cloud.until_status(server, "ERROR")
    assert shown["fault"]["message"]
    cloud.until("no claim", lambda: not cloud.cloud.placement.held(server))
    assert cloud.cloud.neutron.ports_of(server) == []
    assert cloud.guests() == {}


def test_a_cast_of_the_api_that_is_lost(cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    from kilonova.wire.rpc.clients import ComputeTaskClient

    monkeypatch.setattr(ComputeTaskClient, "schedule_and_build_instances", lambda *a, **k: None, raising=False)
    cloud.active("one")


def test_a_conductor_that_stops_hands_its_builds_on(cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    built = cloud.hold(monkeypatch, FakeDriver, "spawn")
    servers = [cloud.create(f"n{n}")["id"] for n in range(6)]
    conductor, loops, scheduler = cloud._services
    conductor.stop(5.0)
    fresh = assembly.conductor(cloud.parts, alone=False)
    cloud._services[:2] = fresh
    loops.stop(1.0)
    for service in fresh:
        service.start()
    built.set()
    for server in servers:
        cloud.until_status(server, "ACTIVE", 60)
    cloud.assert_clean()
    assert scheduler in cloud._services


def test_a_host_that_stays_away_while_it_builds(cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.conf.set_override("service_down_time", 2)
    built = cloud.hold(monkeypatch, FakeDriver, "spawn")
    server = cloud.create("one")["id"]
    cloud.until("spawning", lambda: cloud.show(server)["OS-EXT-STS:task_state"] == "spawning")
    host = cloud.show(server)["OS-EXT-SRV-ATTR:host"]
    cloud.hosts[host]._heartbeat.beat = lambda ctxt: None
    shown = cloud.until_status(server, "ERROR", 30)
    assert "stopped reporting" in shown["fault"]["message"]
    cloud.until("no claim", lambda: not cloud.cloud.placement.held(server))
    assert cloud.cloud.neutron.ports_of(server) == []
    built.set()
