"""Reports of other services while a host is busy: heard at once, merged for each server, and written by one hand."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.compute.world import WaitingDriver, World, wait_for

from kilonova.compute.inbox import MOST_PORTS, Inbox
from kilonova.contract import objects
from kilonova.db.objects import instance as instances
from kilonova.reconcile.host import loops
from kilonova.virt.driver import GuestChange


class Stubborn(WaitingDriver):
    """Its guests do not shut down until they are let go."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.release = threading.Event()
        self.stopping = 0

    def power_off(self, *args: Any, **kwargs: Any) -> None:
        self.stopping += 1
        self.release.wait(60)
        super().power_off(*args, **kwargs)


def report(world: World, server: objects.Instance, name: str, tag: str | None, status: str = "completed") -> None:
    event = objects.InstanceExternalEvent(instance_uuid=server.uuid, name=name, status=status, tag=tag, data={})
    world.client.external_instance_event(world.ctxt(), instances=[server], events=[event], host="h1")


def plugged(world: World, server: objects.Instance) -> None:
    assert wait_for(lambda: world.cloud.neutron.ports_of(server.uuid))
    waits = world.hosts["h1"].agent.events._waits
    assert wait_for(lambda: server.uuid in waits)
    for port in world.cloud.neutron.ports_of(server.uuid):
        report(world, server, "network-vif-plugged", port["id"])


def build(world: World) -> objects.Instance:
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    plugged(world, asked)
    return world.until(asked.uuid, vm_state="active", task_state=None)


def test_stops_do_not_keep_events_from_arriving(world: World) -> None:
    """More stops than the bus has threads, of guests that take their time, and more than the host has lanes for."""
    world.bus.transport._workers = 3  # type: ignore[attr-defined]
    world.set("kilonova", agent_workers=8)
    world.host(driver=Stubborn)
    driver = world.driver()
    assert isinstance(driver, Stubborn)
    servers = [build(world) for _ in range(6)]
    for server in servers:
        world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
    assert wait_for(lambda: driver.stopping == 2), "a kind of work took all lanes, or none"
    build(world)
    assert driver.stopping == 2
    driver.release.set()
    for server in servers:
        world.until(server.uuid, vm_state="stopped", task_state=None)


@pytest.mark.parametrize(
    ("method", "task", "away"),
    [
        ("terminate_instance", "deleting", "neutron"),
        ("terminate_instance", "deleting", "placement"),
        ("reboot_instance", "rebooting", "neutron"),
        ("start_instance", "powering-on", "neutron"),
    ],
)
def test_what_waits_for_a_service_that_is_away_keeps_no_stop_waiting(
    world: World, method: str, task: str, away: str
) -> None:
    world.set("kilonova", agent_workers=4)
    host = world.host()
    waiting, stopped = [world.built() for _ in range(8)], world.built()
    more: dict[str, Any] = {"terminate_instance": {"bdms": None}, "reboot_instance": {"block_device_info": None}}
    more["reboot_instance"]["reboot_type"] = "SOFT"
    getattr(world.cloud, away).away = 503
    for server in waiting:
        world.cast(method, server, task, **more.get(method, {}))
    assert wait_for(lambda: host.agent.lanes.depth == len(waiting))
    world.cast("stop_instance", stopped, "powering-off", clean_shutdown=True)
    world.until(stopped.uuid, vm_state="stopped", task_state=None)
    assert wait_for(lambda: host.agent.lanes.depth == len(waiting))
    getattr(world.cloud, away).away = None
    world.idle()


def test_a_call_to_stop_is_answered_when_the_guest_is_off(world: World) -> None:
    world.host(driver=Stubborn)
    driver = world.driver()
    assert isinstance(driver, Stubborn)
    server = build(world)
    server.task_state = "powering-off"
    world.db.run(instances.save, world.ctxt(), server)
    done = threading.Event()

    def stop() -> None:
        world.client.stop_instance(world.ctxt(), instance=server, do_cast=False)
        done.set()

    threading.Thread(target=stop, daemon=True).start()
    assert wait_for(lambda: driver.stopping == 1)
    assert not done.is_set()
    driver.release.set()
    assert done.wait(20)


# --- merging -----------------------------------------------------------------------------------


def test_events_of_one_server_are_merged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    host = world.host()
    server = world.built()
    [port] = world.cloud.neutron.ports_of(server.uuid)
    network, looks, go, begun = host.agent.network, [], threading.Event(), threading.Event()
    real = network.refresh

    def slow(*args: Any) -> Any:
        looks.append(args)
        begun.set()
        go.wait(20)
        return real(*args)

    monkeypatch.setattr(network, "refresh", slow)
    report(world, server, "network-changed", port["id"])
    assert begun.wait(20)
    for _ in range(50):
        report(world, server, "network-changed", port["id"])
    assert wait_for(lambda: host.agent.inbox._news)
    world.cloud.neutron.ports[port["id"]]["status"] = "ACTIVE"
    assert host.agent.lanes.depth == 2
    go.set()
    world.idle()
    assert len(looks) == 2
    assert world.server(server.uuid).info_cache.network_info[0]["active"]


def test_many_ports_are_read_at_once() -> None:
    uuid = "11111111-1111-4111-8111-111111111111"
    inbox, server = Inbox(), objects.Instance(uuid=uuid)
    assert inbox.changed(None, server, "p0")
    assert not inbox.changed(None, server, "p0")
    assert not inbox.deleted(None, server, "gone")
    news = inbox.take(uuid)
    assert news is not None
    assert (news.changed, news.deleted, news.everything) == ({"p0"}, {"gone"}, False)
    assert inbox.take(uuid) is None
    for n in range(1000):
        inbox.changed(None, server, f"p{n}")
        inbox.deleted(None, server, f"q{n}")
        assert len(inbox._news[uuid].changed) + len(inbox._news[uuid].deleted) <= 2 * MOST_PORTS
    news = inbox.take(uuid)
    assert news is not None
    assert news.everything
    assert (news.changed, news.deleted) == (set(), set())


def test_events_of_many_servers_leave_room_for_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.set("kilonova", agent_workers=4)
    host = world.host()
    servers = [world.built() for _ in range(6)]
    go = threading.Event()
    monkeypatch.setattr(host.agent.network, "refresh", lambda *args: go.wait(20))
    for server in servers:
        report(world, server, "network-changed", None)
    assert wait_for(lambda: host.agent.lanes.depth == 6)
    world.cast("terminate_instance", servers[0], "deleting", bdms=world.disks(servers[0]))
    world.gone(servers[0].uuid)
    go.set()


def test_a_guest_that_goes_up_and_down_has_one_look_waiting(world: World) -> None:
    host = world.host(loops=loops.make)
    server = world.built()
    hold = threading.Event()
    host.agent.lanes.submit(server.uuid, lambda turn: hold.wait(20))
    for _ in range(50):
        world.driver().change(server.uuid, GuestChange.STOPPED)
        world.driver().change(server.uuid, GuestChange.STARTED)
    assert host.agent.lanes.depth == 2
    world.driver().change(server.uuid, GuestChange.STOPPED)
    hold.set()
    world.until(server.uuid, vm_state="stopped", task_state=None)


# --- one hand ----------------------------------------------------------------------------------


def test_an_older_look_does_not_replace_a_newer_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop asked Neutron before the port became active, and writes after an event has brought that."""
    host = world.host(loops=loops.make)
    server = world.built()
    [port] = world.cloud.neutron.ports_of(server.uuid)
    neutron, asked, go = world.clients.neutron, threading.Event(), threading.Event()
    real = neutron.network_info

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        if not asked.is_set():
            asked.set()
            go.wait(1)
        return found

    monkeypatch.setattr(neutron, "network_info", slow)
    loop = next(each for each in host._loops if each.name == "network_info")
    healing = threading.Thread(target=loop.run)
    healing.start()
    assert asked.wait(20)
    world.cloud.neutron.ports[port["id"]]["status"] = "ACTIVE"
    report(world, server, "network-changed", port["id"])
    healing.join(20)
    world.idle()
    assert world.server(server.uuid).info_cache.network_info[0]["active"]


@pytest.mark.parametrize("status", [None, 500, 503])
def test_what_an_event_brought_during_a_build_stays(
    world: World, monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    """The build knows of its ports before it saves them; Neutron may have more to say until then."""
    host = world.host()
    neutron, network = world.clients.neutron, host.agent.network
    real = neutron.allocate

    def allocate(ctxt: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        info = real(ctxt, instance, *args, **kwargs)
        world.cloud.neutron.ports[info[0]["id"]]["status"] = "ACTIVE"
        network.refresh(ctxt, objects.Instance(uuid=instance.uuid, project_id=instance.project_id), info[0]["id"])
        if status:
            world.cloud.neutron.fail("GET", ".*ports", status=status, times=4)
        return info

    monkeypatch.setattr(neutron, "allocate", allocate)
    server = world.built()
    assert world.server(server.uuid).info_cache.network_info[0]["active"] is (status is None)
    assert network._drafts == {}


def test_a_port_that_goes_during_a_build_is_not_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told before the record names the port: there is nothing to take from the record yet."""
    host = world.host(driver=WaitingDriver)
    neutron, network = world.clients.neutron, host.agent.network
    real = neutron.allocate

    def allocate(ctxt: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        info = real(ctxt, instance, *args, **kwargs)
        del world.cloud.neutron.ports[info[0]["id"]]
        bare = objects.Instance(uuid=instance.uuid, project_id=instance.project_id)
        assert network.drop(ctxt, bare, {info[0]["id"]}) == []
        return info

    monkeypatch.setattr(neutron, "allocate", allocate)
    server = world.built()
    assert world.server(server.uuid).info_cache.network_info == []


def test_an_operation_that_waits_for_neutron_keeps_nobody_from_writing(world: World) -> None:
    """Locks are shared by servers: a delete of another one must not wait for this one's Neutron."""
    network, server = world.host().agent.network, world.built()
    world.cloud.neutron.fail("GET", ".*ports", status=503, times=999)
    before = len(world.cloud.neutron.requests)
    world.cast("reboot_instance", server, "rebooting_hard", block_device_info=None, reboot_type="HARD")
    assert wait_for(lambda: len(world.cloud.neutron.requests) > before + 4), "it waits"
    done: list[Any] = []
    writing = threading.Thread(target=lambda: done.append(network.drop(world.ctxt(), server, {"another"})))
    writing.start()
    writing.join(8)
    assert done == [[]]
    world.cloud.neutron.faults.clear()
    world.until(server.uuid, vm_state="active", task_state=None)


def test_a_reboot_writes_what_it_learned_at_once(world: World) -> None:
    world.host()
    server = world.built()
    [port] = world.cloud.neutron.ports_of(server.uuid)
    world.cloud.neutron.ports[port["id"]]["status"] = "ACTIVE"
    world.fail("reboot")
    world.cast("reboot_instance", server, "rebooting_hard", block_device_info=None, reboot_type="HARD")
    assert wait_for(lambda: world.fault(server.uuid) is not None)
    assert world.server(server.uuid).info_cache.network_info[0]["active"]
