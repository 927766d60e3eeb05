"""Deletions through the whole control plane: in every state, racing with builds, without the host."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from tests.ops.control_plane import ControlPlane

from kilonova.contract import exceptions


def test_twice_at_once(cloud: ControlPlane) -> None:
    server = cloud.active("one")["id"]
    answers = {cloud.request("DELETE", f"/servers/{server}").status_code for _ in range(3)}
    assert answers <= {204, 404}
    cloud.until_gone(server)
    cloud.assert_clean()


@pytest.mark.parametrize("seed", range(4))
def test_at_random_moments_of_builds(cloud: ControlPlane, seed: int) -> None:
    """B130: always 204 or 404, always gone at the end, nothing left."""
    rng = random.Random(seed)
    for host in cloud.hosts:
        cloud.driver(host)._latency = {"spawn": 0.2}
    servers = []
    for n in range(8):
        server = cloud.create(f"n{n}")["id"]
        servers.append(server)
        time.sleep(rng.random() * 0.25)
        victim = rng.choice(servers)
        assert cloud.request("DELETE", f"/servers/{victim}").status_code in (204, 404)
    for server in servers:
        assert cloud.request("DELETE", f"/servers/{server}").status_code in (204, 404)
    for server in servers:
        cloud.until_gone(server)
    cloud.assert_clean()
    assert cloud.guests() == {}


def test_a_lost_cast_is_sent_again(cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    from kilonova.wire.rpc.clients import ComputeClient

    server = cloud.active("one")["id"]
    with monkeypatch.context() as patch:
        patch.setattr(ComputeClient, "terminate_instance", lambda *a, **k: None, raising=False)
        cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()
    assert cloud.guests() == {}


def test_the_host_is_down_and_comes_back(cloud: ControlPlane, forward: Callable[[float], None]) -> None:
    cloud.conf.set_override("service_down_time", 2)
    server = cloud.active("one")
    host = server["OS-EXT-SRV-ATTR:host"]
    cloud.stop_host(host)
    forward(3)
    cloud.delete(server["id"])
    cloud.until_gone(server["id"])
    cloud.assert_clean()
    cloud.start_host(host)
    cloud.until("the guest is removed", lambda: cloud.guests() == {}, 60)


def test_a_driver_that_cannot_destroy_leaves_error_and_deleting_again_works(cloud: ControlPlane) -> None:
    server = cloud.active("one")
    host, uuid = server["OS-EXT-SRV-ATTR:host"], server["id"]
    cloud.fault(host, "destroy", lambda: exceptions.InstanceTerminationFailure(reason="the hypervisor said no"))
    cloud.delete(uuid)
    shown = cloud.until_status(uuid, "ERROR")
    assert "hypervisor said no" in shown["fault"]["message"]
    cloud.driver(host).faults.clear()
    cloud.delete(uuid)
    cloud.until_gone(uuid)
    cloud.assert_clean()


def test_a_server_without_a_host(cloud: ControlPlane) -> None:
    for host in cloud.hosts:
        cloud.fault(host, "spawn", lambda: exceptions.InstanceDeployFailure(reason="no"))
    server = cloud.create("one")["id"]
    cloud.until_status(server, "ERROR")
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()


def test_repair_loops_find_nothing_to_do_after_a_quiet_life(
    cloud: ControlPlane, forward: Callable[[float], None]
) -> None:
    server = cloud.active("one")["id"]
    cloud.delete(server)
    cloud.until_gone(server)
    forward(2)
    loops = cloud._services[1]
    before = {report.loop: report.passes for report in loops.reports()}
    cloud.until("two more passes", lambda: all(each.passes >= before[each.loop] + 2 for each in loops.reports()))
    assert {report.loop: report.repaired_ever for report in loops.reports()} == dict.fromkeys(loops.passes, 0)
    assert all(report.error is None for report in loops.reports())
