"""Repair loops of a host against a real agent: each harm is made, seen and repaired; what is well is left alone."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from tests.unit.compute.world import NOTHING, World, wait_for

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db.objects import instance as instances
from kilonova.reconcile.host import loops, power_sync
from kilonova.reconcile.host.power_sync import Step
from kilonova.virt.driver import GuestChange
from kilonova.virt.fake.driver import FakeDriver


@pytest.fixture
def host(world: World) -> Any:
    world.set("kilonova", reconcile_grace=0.0)
    return world.host(loops=loops.make)


def loop(host: Any, name: str) -> Any:
    return next(each for each in host._loops if each.name == name)


def save(world: World, server: objects.Instance, **values: Any) -> None:
    for name, value in values.items():
        setattr(server, name, value)
    world.db.run(instances.save, world.ctxt(), server)


def passes(host: Any, name: str, times: int = 2) -> Any:
    for _ in range(times):
        report = loop(host, name).run()
    return report


# --- power_sync --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vm_state", "recorded", "real", "step"),
    [
        ("active", 1, 1, Step.NOTHING),
        ("active", 1, 4, Step.RECORD | Step.STOP),
        ("active", 4, 4, Step.STOP),
        ("active", 1, 6, Step.RECORD | Step.STOP),
        ("active", 1, 3, Step.RECORD),
        ("active", 1, 7, Step.RECORD | Step.STOP),
        ("active", 1, 0, Step.RECORD),
        ("stopped", 4, 4, Step.NOTHING),
        ("stopped", 4, 1, Step.RECORD | Step.STOP),
        ("stopped", 4, 0, Step.RECORD),
        ("paused", 3, 3, Step.NOTHING),
        ("paused", 3, 4, Step.RECORD | Step.STOP),
        ("error", 1, 4, Step.RECORD),
        ("rescued", 1, 4, Step.RECORD),
    ],
)
def test_what_a_power_state_means(vm_state: str, recorded: int, real: int, step: Step) -> None:
    instance = objects.Instance(vm_state=vm_state, power_state=recorded, task_state=None)
    assert power_sync.judge(instance, real) == step
    instance.task_state = "rebooting"
    assert power_sync.judge(instance, real) == Step.NOTHING


def test_a_guest_that_stops_by_itself_stops_its_server_at_once(world: World, host: Any) -> None:
    server = world.built()
    world.driver().change(server.uuid, GuestChange.STOPPED)
    server = world.until(server.uuid, vm_state="stopped", task_state=None)
    assert server.power_state == 4


def test_an_event_that_was_missed_is_found_by_the_comparison(world: World, host: Any) -> None:
    server = world.built()
    world.driver().power_off(server)
    assert loop(host, "power_sync").run() == 1
    world.until(server.uuid, vm_state="stopped", task_state=None, power_state=4)
    world.idle()
    assert loop(host, "power_sync").run() == 0


def test_a_stopped_server_that_runs_is_stopped_again(world: World, host: Any) -> None:
    server = world.built()
    world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
    server = world.until(server.uuid, vm_state="stopped", task_state=None)
    world.driver().change(server.uuid, GuestChange.STARTED)
    assert wait_for(lambda: world.driver().guest(server.uuid).power_state == 4)
    world.until(server.uuid, vm_state="stopped", task_state=None, power_state=4)


def test_events_during_an_operation_are_its_own(world: World, host: Any) -> None:
    server = world.built()
    driver = world.driver()
    real = driver.reboot

    def reboot(*args: Any) -> None:
        driver.change(server.uuid, GuestChange.STOPPED)
        real(*args)
        driver.change(server.uuid, GuestChange.STARTED)

    driver.reboot = reboot  # type: ignore[method-assign]
    world.cast("reboot_instance", server, "rebooting", block_device_info=None, reboot_type="SOFT")
    world.until(server.uuid, vm_state="active", task_state=None)
    world.idle()
    assert world.server(server.uuid).vm_state == "active"


def test_events_can_be_switched_off(world: World) -> None:
    world.set("workarounds", handle_virt_lifecycle_events=False)
    world.host(loops=loops.make)
    server = world.built()
    world.driver().change(server.uuid, GuestChange.STOPPED)
    world.idle()
    assert world.server(server.uuid).vm_state == "active"


def test_power_sync_rests_while_it_is_switched_off(world: World, host: Any) -> None:
    server = world.built()
    world.set("kilonova", reconcile_disabled=["power_sync"])
    world.driver().change(server.uuid, GuestChange.STOPPED)
    assert loop(host, "power_sync").run() == 0
    world.idle()
    assert world.server(server.uuid).vm_state == "active"
    world.set("kilonova", reconcile_disabled=[])
    assert loop(host, "power_sync").run() == 1
    world.until(server.uuid, vm_state="stopped", task_state=None)


def test_loops_run_as_often_as_the_configuration_says_now(world: World) -> None:
    world.set(periodic_enable=True, periodic_fuzzy_delay=3600, sync_power_state_interval=7200)
    world.set("kilonova", reconcile_interval=3600.0)
    host = world.host(loops=loops.make)

    def timer(name: str) -> Any:
        return next(each for each in host.agent.timers.timers if each.name == name)

    world.set("kilonova", reconcile_interval=0.1)
    host.reload()
    assert wait_for(lambda: timer("missing_guests").runs > 1)
    # That one has an option of its own, and a spacing that did not change begins no new wait.
    assert (timer("power_sync").spacing, timer("power_sync").runs) == (7200, 0)


# --- guests and records ------------------------------------------------------------------------


def left_running(world: World) -> objects.Instance:
    """A guest whose server was deleted behind the host's back."""
    server = world.built()
    world.db.run(instances.destroy, world.ctxt(), world.server(server.uuid))
    world.hosts["h1"].agent.tracker.forget(server.uuid)
    return server


@pytest.mark.parametrize(("action", "power"), [("reap", None), ("shutdown", 4), ("log", 1), ("noop", 1)])
def test_a_guest_of_a_deleted_server(world: World, action: str, power: int | None) -> None:
    world.set(running_deleted_instance_action=action)
    world.set("kilonova", reconcile_grace=0.0)
    host = world.host(loops=loops.make)
    server = left_running(world)
    first = loop(host, "unknown_guests").run()
    assert first.repaired == 0
    assert world.driver().guest(server.uuid).power_state == 1
    loop(host, "unknown_guests").run()
    if power is None:
        assert server.uuid not in world.driver().guests()
        assert world.leftovers(server.uuid)["ports"] == []
    else:
        assert world.driver().guest(server.uuid).power_state == power


def test_a_guest_of_a_server_deleted_just_now_is_given_time(world: World) -> None:
    world.set(running_deleted_instance_timeout=3600)
    world.set("kilonova", reconcile_grace=0.0)
    host = world.host(loops=loops.make)
    server = left_running(world)
    assert passes(host, "unknown_guests").seen == []
    assert server.uuid in world.driver().guests()


def test_a_guest_of_a_build_that_was_given_up(world: World, host: Any) -> None:
    """The conductor gave the build up while the host could not be told; the record names no host."""
    server = world.built()
    save(world, server, vm_state="error", host=None, node=None, compute_id=None, launched_at=None)
    host.agent.tracker.forget(server.uuid)
    assert passes(host, "unknown_guests").repaired == 1
    assert server.uuid not in world.driver().guests()
    # What it holds elsewhere is for its delete.
    assert len(world.leftovers(server.uuid)["ports"]) == 1


def test_a_guest_whose_server_failed_here_stays(world: World, host: Any) -> None:
    server = world.built()
    save(world, server, vm_state="error", launched_at=None)
    host.agent.tracker.forget(server.uuid)
    assert passes(host, "unknown_guests", 3).repaired == 0
    assert server.uuid in world.driver().guests()


class Forgetful(FakeDriver):
    """Something of a guest stays plugged when it is destroyed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.left: set[str] = set()

    def destroy(self, ctxt: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        super().destroy(ctxt, instance, *args, **kwargs)
        self.left.add(instance.uuid)

    def leftovers(self) -> set[str]:
        return set(self.left)

    def unplug(self, uuid: str) -> None:
        self.left.remove(uuid)


def test_what_a_server_left_plugged_is_unplugged(world: World) -> None:
    world.set("kilonova", reconcile_grace=0.0)
    host = world.host(driver=Forgetful, loops=loops.make)
    driver = world.driver()
    assert isinstance(driver, Forgetful)
    ended, here = world.built(), world.built()
    world.cast("terminate_instance", ended, "deleting", bdms=world.disks(ended))
    world.gone(ended.uuid)
    world.idle()
    stranger = "11111111-1111-4111-8111-111111111111"
    driver.left |= {here.uuid, stranger}
    assert loop(host, "leftover_plugs").run().repaired == 0
    assert loop(host, "leftover_plugs").run().repaired == 2
    assert driver.left == {here.uuid}


def test_what_is_plugged_for_a_server_that_came_here_meanwhile_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.set("kilonova", reconcile_grace=0.0)
    host, server = world.host(driver=Forgetful, loops=loops.make), world.built()
    driver, lanes = world.driver(), host.agent.lanes
    assert isinstance(driver, Forgetful)
    driver.left.add(server.uuid)
    save(world, server, host="h2")
    real, turns = lanes.submit, []

    def later(key: str, *args: Any, **kwargs: Any) -> Any:
        """Something else had the turn before."""
        save(world, server, host="h1")
        turns.append(key)
        return real(key, *args, **kwargs)

    monkeypatch.setattr(lanes, "submit", later)
    passes(host, "leftover_plugs")
    assert turns == [server.uuid]
    assert driver.left == {server.uuid}


def test_a_guest_without_a_record_is_only_reported(world: World, host: Any) -> None:
    from tests.fakes.guests import spec

    stranger = spec()
    world.driver().spawn(world.ctxt(), stranger)
    report = passes(host, "unknown_guests")
    assert stranger.instance.uuid in report.seen[0]
    assert report.repaired == 0
    assert stranger.instance.uuid in world.driver().guests()


def test_a_server_without_a_guest_is_reported(world: World, host: Any) -> None:
    server = world.built()
    world.driver()._guests.drop(server.uuid)
    report = passes(host, "missing_guests")
    assert server.uuid in report.seen[0]
    assert report.repaired == 0


# --- interrupted -------------------------------------------------------------------------------


def test_a_lost_cast_is_done_after_two_sightings(world: World, host: Any) -> None:
    server = world.built()
    save(world, server, task_state="powering-off")
    assert loop(host, "interrupted").run().repaired == 0
    assert loop(host, "interrupted").run().repaired == 1
    world.until(server.uuid, vm_state="stopped", task_state=None)


def test_a_lost_delete_is_done(world: World, host: Any) -> None:
    server = world.built()
    save(world, server, task_state="deleting")
    passes(host, "interrupted")
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


def test_a_build_that_lost_its_job_ends(world: World, host: Any) -> None:
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    save(world, asked, host="h1", node="h1", compute_id=1, task_state="networking")
    passes(host, "interrupted")
    world.until(asked.uuid, vm_state="error", task_state=None)
    world.idle()
    assert world.leftovers(asked.uuid) == NOTHING
    assert world.fault(asked.uuid) is not None


def test_work_under_way_is_not_interrupted(world: World) -> None:
    world.set("kilonova", reconcile_grace=0.0)
    host = world.host(loops=loops.make)
    held = world.hold("spawn")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    held.reached()
    assert passes(host, "interrupted", 3).seen == []
    held.release()
    world.until(asked.uuid, vm_state="active")


def test_an_overdue_build_goes_to_error(world: World) -> None:
    world.set(instance_build_timeout=60)
    host = world.host(loops=loops.make)
    held = world.hold("spawn")
    ctxt = world.ctxt()
    asked = world.asked(ctxt, created_at=clock.now() - datetime.timedelta(seconds=120))
    world.cast_build(ctxt, asked)
    held.reached()
    passes(host, "overdue_builds")
    world.until(asked.uuid, vm_state="error", task_state=None)
    held.release()
    world.idle()
    assert world.server(asked.uuid).vm_state == "error"
    assert "longer than 60 s" in world.fault(asked.uuid).message
    left = world.leftovers(asked.uuid)
    assert (left["ports"], left["guests"]) == ([], [])


# --- network_info ------------------------------------------------------------------------------


def test_network_info_rests_while_it_is_switched_off(world: World, host: Any) -> None:
    server = world.built()
    world.set("kilonova", reconcile_disabled=["network_info"])
    assert loop(host, "network_info").run() is None
    world.set("kilonova", reconcile_disabled=[])
    assert loop(host, "network_info").run() == server.uuid


def test_a_stale_cache_is_healed_and_strayed_ports_come_back(world: World, host: Any) -> None:
    server = world.built()
    [port] = world.cloud.neutron.ports_of(server.uuid)
    world.cloud.neutron.ports[port["id"]]["binding:host_id"] = "elsewhere"
    world.cloud.neutron.ports[port["id"]]["status"] = "ACTIVE"
    assert loop(host, "network_info").run() == server.uuid
    assert world.server(server.uuid).info_cache.network_info[0]["active"]
    assert world.cloud.neutron.ports[port["id"]]["binding:host_id"] == "h1"


def test_every_loop_survives_a_silent_conductor(world: World, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.built()

    def silent(*args: Any, **kwargs: Any) -> Any:
        raise exceptions.NovaException("nobody answers")

    monkeypatch.setattr(host.agent.store, "call", silent)
    for each in ("unknown_guests", "missing_guests", "interrupted", "overdue_builds"):
        loop(host, each).run()
    assert loop(host, "missing_guests").run().error is not None
