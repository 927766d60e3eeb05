"""Stop, start, reboot, delete, console, events: what a host does to guests that exist."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.compute.world import NOTHING, PROJECT, World, volume_disk, wait_for

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.contract.rpc import compute as table
from kilonova.db.objects import instance as instances
from kilonova.virt.driver import BlockDevices


def test_stop_start_and_both_reboots(world: World) -> None:
    world.host()
    server = world.built()
    ctxt = world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
    server = world.until(server.uuid, vm_state="stopped", task_state=None)
    assert server.power_state == 4
    world.idle()
    assert world.events(server.uuid, ctxt.request_id) == [("compute_stop_instance", "Success")]
    ctxt = world.cast("start_instance", server, "powering-on")
    server = world.until(server.uuid, vm_state="active", task_state=None)
    assert server.power_state == 1
    world.idle()
    assert world.events(server.uuid, ctxt.request_id) == [("compute_start_instance", "Success")]
    for kind, task in (("SOFT", "rebooting"), ("HARD", "rebooting_hard")):
        boots = world.driver()._guests.get(server.uuid).boots
        ctxt = world.cast("reboot_instance", server, task, block_device_info=None, reboot_type=kind)
        server = world.until(server.uuid, vm_state="active", task_state=None)
        assert world.driver()._guests.get(server.uuid).boots == boots + 1
        world.idle()
        assert world.events(server.uuid, ctxt.request_id) == [("compute_reboot_instance", "Success")]


@pytest.mark.parametrize(
    ("method", "task", "args"),
    [("stop_instance", "powering-off", {"clean_shutdown": True}), ("start_instance", "powering-on", {})],
)
def test_a_guest_that_is_missing_leaves_no_server_stuck(
    world: World, method: str, task: str, args: dict[str, Any]
) -> None:
    world.host()
    server = world.built()
    world.driver().destroy(world.ctxt(), server, [], BlockDevices())
    ctxt = world.cast(method, server, task, **args)
    world.until(server.uuid, vm_state="active", task_state=None)
    world.idle()
    fault = world.fault(server.uuid)
    assert fault is not None
    assert "could not be found" in fault.message
    assert world.events(server.uuid, ctxt.request_id) == [(f"compute_{method}", "Error")]


def test_a_failed_operation_looks_once_whether_the_server_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.host()
    server = world.built()
    world.driver().destroy(world.ctxt(), server, [], BlockDevices())
    store, asked = world.hosts["h1"].agent.store, []
    real = store.instance
    monkeypatch.setattr(store, "instance", lambda *args: (asked.append(args), real(*args))[1])
    world.cast("start_instance", server, "powering-on")
    assert wait_for(lambda: world.fault(server.uuid) is not None)
    world.idle()
    # Once more to give the task state back.
    assert [attrs for _, _, attrs in asked if not attrs] == [(), ()]


def test_delete_leaves_nothing(world: World) -> None:
    world.host()
    server = world.built()
    ctxt = world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING
    left = world.server(server.uuid, deleted=True)
    assert (left.vm_state, left.task_state, left.power_state) == ("deleted", None, 0)
    assert left.terminated_at is not None
    assert left.cleaned
    assert ("delete", server.uuid) in world.schedulers.told
    assert world.events(server.uuid, ctxt.request_id) == [("compute_terminate_instance", "Success")]
    assert world.hosts["h1"].agent.tracker.tracked() == set()


def test_a_delete_that_begins_at_once_refuses_no_waits_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.host()
    server = world.built()
    agent, allowed = world.hosts["h1"].agent, threading.Event()
    submit, allow = agent.lanes.submit, agent.events.allow

    def submit_and_see_it_begin(*args: Any, **kwargs: Any) -> Any:
        future = submit(*args, **kwargs)
        if kwargs["preempt"]:
            allowed.wait(10)
        return future

    monkeypatch.setattr(agent.lanes, "submit", submit_and_see_it_begin)
    monkeypatch.setattr(agent.events, "allow", lambda uuid: (allow(uuid), allowed.set()))
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    with agent.events.expect(server.uuid, [], timeout=1.0):
        assert allowed.is_set()


def test_a_delete_whose_record_names_no_interfaces_keeps_the_port_that_its_user_brought(world: World) -> None:
    world.host()
    server = world.built()
    [made] = world.cloud.neutron.ports_of(server.uuid)
    brought = world.cloud.neutron.ports[world.cloud.neutron.port(world.network, project=PROJECT)]
    brought |= {"device_id": server.uuid, "created_at": "2020-01-01T00:00:00Z"}
    made["created_at"] = clock.iso(clock.now())
    server.info_cache.network_info = []
    world.db.run(instances.save, world.ctxt(), server)
    world.cast("terminate_instance", world.server(server.uuid), "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert made["id"] not in world.cloud.neutron.ports
    assert world.cloud.neutron.ports[brought["id"]]["device_id"] == ""


def test_a_repeated_delete_does_no_harm(world: World) -> None:
    world.host()
    server = world.built()
    ctxt = world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    for context in (ctxt, world.ctxt()):
        world.client.terminate_instance(context, instance=server, bdms=objects.BlockDeviceMappingList(objects=[]))
        world.idle()
    assert world.leftovers(server.uuid) == NOTHING


def test_a_failed_delete_shows_and_can_be_repeated(world: World) -> None:
    world.host()
    server = world.built()
    world.fail("destroy", calls=[1])
    ctxt = world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    server = world.until(server.uuid, vm_state="error", task_state=None)
    world.idle()
    assert "destroy is broken" in world.fault(server.uuid).message
    assert world.events(server.uuid, ctxt.request_id) == [("compute_terminate_instance", "Error")]
    assert len(world.leftovers(server.uuid)["ports"]) == 1
    # The same request again (a flow that sends its cast once more) begins again.
    world.client.terminate_instance(ctxt, instance=server, bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


def test_delete_does_not_forget_allocations_while_placement_is_down(world: World) -> None:
    world.host()
    server = world.built()
    world.cloud.placement.fail("DELETE", "/allocations/", status=500, times=4)
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    server = world.until(server.uuid, vm_state="error")
    world.idle()
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


@pytest.mark.parametrize("keep", [True, False])
def test_delete_releases_volumes(world: World, keep: bool) -> None:
    world.host()
    ctxt = world.ctxt()
    volume = world.cloud.cinder.volume(project="project")
    asked = world.asked(ctxt, disks=[volume_disk(volume, delete_on_termination=not keep)], image_ref="")
    world.cast_build(ctxt, asked)
    server = world.until(asked.uuid, vm_state="active", task_state=None)
    assert world.cloud.cinder.volumes[volume]["status"] == "in-use"
    assert world.driver()._guests.get(server.uuid).volumes == (volume,)
    [disk] = world.disks(server)
    assert disk.attachment_id
    assert disk.device_name == "/dev/vda"
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING
    assert (volume in world.cloud.cinder.volumes) is keep


def test_failed_stop_gives_the_task_state_back(world: World) -> None:
    world.host()
    server = world.built()
    world.fail("power_off", exceptions.InstancePowerOffFailure(reason="stuck"))
    ctxt = world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
    assert wait_for(lambda: world.fault(server.uuid) is not None)
    server = world.until(server.uuid, vm_state="active", task_state=None)
    assert "stuck" in world.fault(server.uuid).message
    world.idle()
    assert world.events(server.uuid, ctxt.request_id) == [("compute_stop_instance", "Error")]


def test_failed_stop_does_not_take_the_server_from_its_delete(world: World) -> None:
    world.host()
    server = world.built()
    world.fail("power_off")
    held = world.hold("power_off")
    world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
    held.reached()
    server = world.server(server.uuid)
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    assert wait_for(lambda: world.hosts["h1"].agent.lanes.depth == 2)
    held.release()
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


def test_failed_reboot_of_a_running_guest_stays_active(world: World) -> None:
    world.host()
    server = world.built()
    world.fail("reboot")
    ctxt = world.cast("reboot_instance", server, "rebooting", block_device_info=None, reboot_type="SOFT")
    assert wait_for(lambda: world.fault(server.uuid) is not None)
    server = world.until(server.uuid, vm_state="active", task_state=None)
    world.idle()
    assert "reboot is broken" in world.fault(server.uuid).message
    assert world.events(server.uuid, ctxt.request_id) == [("compute_reboot_instance", "Error")]


def test_failed_reboot_of_a_dead_guest_is_an_error(world: World) -> None:
    world.host()
    server = world.built()
    world.fail("reboot")
    world.driver().power_off(server)
    world.cast("reboot_instance", server, "rebooting_hard", block_device_info=None, reboot_type="HARD")
    world.until(server.uuid, vm_state="error", task_state=None)


def test_console_output_is_cut_to_its_last_lines(world: World) -> None:
    world.host()
    server = world.built()
    whole = world.client.get_console_output(world.ctxt(), instance=server, tail_length=None)
    assert whole.startswith("[    0.000000] Linux")
    assert whole.endswith("web login: ")
    for length in (2, "2"):
        cut = world.client.get_console_output(world.ctxt(), instance=server, tail_length=length)
        assert cut == "\n".join(whole.split("\n")[-2:])
    assert world.client.get_console_output(world.ctxt(), instance=server, tail_length=0) == ""
    server.uuid = "11111111-1111-4111-8111-111111111111"
    with pytest.raises(exceptions.InstanceNotFound):
        world.client.get_console_output(world.ctxt(), instance=server, tail_length=1)


def test_host_calls(world: World) -> None:
    world.host()
    assert " up 0 min,  0 users,  load average: 0.00" in world.client.get_host_uptime(world.ctxt(), host="h1")
    [provider] = world.driver().nodes().values()
    traits = world.cloud.placement.providers[provider].traits
    assert world.client.set_host_enabled(world.ctxt(), host="h1", enabled=False) == "disabled"
    assert "COMPUTE_STATUS_DISABLED" in world.cloud.placement.providers[provider].traits
    assert world.client.set_host_enabled(world.ctxt(), host="h1", enabled=True) == "enabled"
    assert world.cloud.placement.providers[provider].traits == traits


def test_what_is_not_built_says_so(world: World) -> None:
    world.host()
    with pytest.raises(NotImplementedError, match="host_power_action"):
        world.client.host_power_action(world.ctxt(), host="h1", action="reboot")
    server = world.built()
    ctxt = world.cast("pause_instance", server, "pausing")
    assert wait_for(lambda: world.fault(server.uuid) is not None)
    server = world.until(server.uuid, vm_state="active", task_state=None)
    assert "does not support pause_instance" in world.fault(server.uuid).message
    world.idle()
    assert world.events(server.uuid, ctxt.request_id) == [("compute_pause_instance", "Error")]


def test_every_method_of_the_contract_has_an_answer(world: World) -> None:
    host = world.host()
    assert all(callable(getattr(host._handlers, served.name)) for served in table.API.served)


def test_a_changed_network_is_read_again(world: World) -> None:
    world.host()
    server = world.built()
    [port] = world.cloud.neutron.ports_of(server.uuid)
    world.cloud.neutron.ports[port["id"]]["status"] = "ACTIVE"
    event = objects.InstanceExternalEvent(
        instance_uuid=server.uuid, name="network-changed", status="completed", tag=port["id"], data={}
    )
    world.client.external_instance_event(world.ctxt(), instances=[server], events=[event], host="h1")

    def active() -> bool:
        return bool(world.server(server.uuid).info_cache.network_info[0]["active"])

    assert wait_for(active)


def test_a_deleted_port_leaves_the_cache(world: World) -> None:
    world.host()
    server = world.built()
    [port] = world.cloud.neutron.ports_of(server.uuid)
    event = objects.InstanceExternalEvent(
        instance_uuid=server.uuid, name="network-vif-deleted", status="completed", tag=port["id"], data={}
    )
    world.client.external_instance_event(world.ctxt(), instances=[server], events=[event], host="h1")
    assert wait_for(lambda: world.server(server.uuid).info_cache.network_info == [])
