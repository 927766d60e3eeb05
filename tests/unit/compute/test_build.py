"""Building servers on a host: works, fails at every step, gives way to a delete."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from tests.fakes.guests import IMAGE_ID
from tests.unit.compute.world import NOTHING, WaitingDriver, World, volume_disk, wait_for

from kilonova.base.stripes import Stripes
from kilonova.compute.ops.build import failure, group, job
from kilonova.contract import exceptions, objects
from kilonova.db.objects import instance as instances
from kilonova.virt.fake.driver import FakeDriver


def test_a_server_is_built(world: World) -> None:
    world.host()
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    server = world.until(asked.uuid, vm_state="active", task_state=None)
    assert (server.host, server.node, server.power_state) == ("h1", "h1", 1)
    assert server.launched_at is not None
    assert server.root_device_name == "/dev/vda"
    [vif] = server.info_cache.network_info
    [port] = world.cloud.neutron.ports_of(asked.uuid)
    assert vif["id"] == port["id"]
    assert port["binding:host_id"] == "h1"
    assert world.driver().guest(asked.uuid).power_state == 1
    world.idle()
    assert world.events(asked.uuid, ctxt.request_id) == [("compute__do_build_and_run_instance", "Success")]
    assert ("update", asked.uuid) in world.schedulers.told


def ended_in_error(world: World, asked: Any, ctxt: Any) -> Any:
    """The server is in ERROR on no host, and nothing is held for it."""
    server = world.until(asked.uuid, vm_state="error", task_state=None)
    world.idle()
    assert (server.host, server.node, server.compute_id, server.availability_zone) == (None, None, None, None)
    assert server.info_cache.network_info == []
    assert world.leftovers(asked.uuid) == NOTHING
    assert world.hosts["h1"].agent.tracker.tracked() == set()
    assert world.tasks.builds == []
    assert world.events(asked.uuid, ctxt.request_id) == [("compute__do_build_and_run_instance", "Error")]
    return world.fault(asked.uuid)


def test_a_hopeless_build_ends_in_error(world: World) -> None:
    world.host()
    world.fail("spawn", exceptions.ImageUnacceptable(image_id="i", reason="it has a backing file"))
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    fault = ended_in_error(world, asked, ctxt)
    assert fault.code == 500
    assert f"Build of instance {asked.uuid} aborted" in fault.message
    assert "it has a backing file" in fault.message
    assert "Traceback" in fault.details


def test_a_build_that_may_not_be_tried_again_ends_in_error(world: World) -> None:
    world.host()
    world.fail("spawn", exceptions.NovaException("the hypervisor said no"))
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, filter_properties={})
    assert ended_in_error(world, asked, ctxt).message == "the hypervisor said no"


@pytest.mark.parametrize("after", [False, True])
def test_a_failed_build_is_tried_elsewhere(world: World, after: bool) -> None:
    world.host()
    world.fail("spawn", exceptions.ComputeResourcesUnavailable(reason="no room"), after=after)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, host_list=[])
    assert wait_for(lambda: world.tasks.builds)
    world.idle()
    server = world.server(asked.uuid)
    assert (server.vm_state, server.task_state, server.host, server.node) == ("building", "scheduling", None, None)
    assert world.leftovers(asked.uuid) == NOTHING
    assert world.fault(asked.uuid) is None
    [args] = world.tasks.builds
    [handed] = args["instances"]
    assert handed.uuid == asked.uuid
    # A host of Nova's looks at this, and makes no ports where there seem to be some.
    assert handed.system_metadata["network_allocated"] == "False"
    retry = args["filter_properties"]["retry"]
    assert retry["hosts"] == [["h1", "h1"]]
    assert "no room" in retry["exc_reason"]
    assert any("no room" in line for line in retry["exc"])
    assert args["admin_password"] == "secret"
    assert args["host_lists"] == [[]]
    assert world.hosts["h1"].agent.tracker.nodes["h1"].failed_builds == 1
    assert world.events(asked.uuid, ctxt.request_id) == [("compute__do_build_and_run_instance", "Success")]


def test_a_second_try_after_a_reschedule_works(world: World) -> None:
    world.host()
    world.host("h2")
    world.fail("spawn", exceptions.ComputeResourcesUnavailable(reason="no room"))
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    assert wait_for(lambda: world.tasks.builds)
    again = world.server(asked.uuid)
    world.claim(ctxt, again, "h2")
    world.cast_build(ctxt, again, "h2")
    server = world.until(asked.uuid, vm_state="active", task_state=None)
    assert server.host == "h2"
    [port] = world.cloud.neutron.ports_of(asked.uuid)
    assert port["binding:host_id"] == "h2"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            {"status": 409, "body": {"NeutronError": {"type": "IpAddressGenerationFailure", "message": "none left"}}},
            "Failed to allocate the network(s) with error",
        ),
        ({"status": 500}, "neutron"),
    ],
)
def test_networks_that_cannot_be_had(world: World, error: dict[str, Any], message: str) -> None:
    world.host()
    world.cloud.neutron.fail("POST", ".*ports", times=10, **error)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, filter_properties={})
    assert message in ended_in_error(world, asked, ctxt).message


def test_a_volume_that_cannot_be_had(world: World) -> None:
    world.host()
    volume = world.cloud.cinder.volume(project="project")
    world.cloud.cinder.fail("PUT", "/attachments/", status=500, times=10)
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[volume_disk(volume)], image_ref="")
    world.cast_build(ctxt, asked)
    told = ended_in_error(world, asked, ctxt).message
    assert "Failure prepping block device: The service cinder answered with HTTP 500." in told
    assert world.cloud.cinder.volumes[volume]["status"] == "available"


class HalfMade(FakeDriver):
    """Makes guests that do not come up."""

    def spawn(self, ctxt: Any, guest: Any) -> None:
        super().spawn(ctxt, guest)
        raise exceptions.ResizeError(reason="broken")


@pytest.mark.parametrize("properties", [{}, {"retry": {"num_attempts": 1, "hosts": []}}])
def test_a_guest_that_cannot_be_destroyed_keeps_what_it_has(
    world: World, monkeypatch: pytest.MonkeyPatch, properties: dict[str, Any]
) -> None:
    """The record says where it is, nothing is taken from under it, and its delete tries again."""
    monkeypatch.setattr(failure, "DESTROY_PAUSE", 0.0)
    world.host(driver=HalfMade)
    world.fail("destroy", OSError("busy"), calls=[1, 2, 3])
    volume = world.cloud.cinder.volume(project="project")
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[volume_disk(volume)], image_ref="")
    world.cast_build(ctxt, asked, filter_properties=properties)
    server = world.until(asked.uuid, vm_state="error", task_state=None)
    world.idle()
    assert (server.host, len(server.info_cache.network_info)) == ("h1", 1)
    assert "broken" in world.fault(asked.uuid).message
    left = world.leftovers(asked.uuid)
    assert (len(left["ports"]), len(left["attachments"]), left["guests"]) == (1, 1, ["h1"])
    assert left["allocations"]
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


def test_a_guest_that_is_destroyed_at_the_second_try_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure, "DESTROY_PAUSE", 0.0)
    world.host(driver=HalfMade)
    world.fail("destroy", OSError("busy"), calls=[1])
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, filter_properties={})
    assert "broken" in ended_in_error(world, asked, ctxt).message


@pytest.mark.parametrize("properties", [{}, {"retry": {"num_attempts": 1, "hosts": []}}])
def test_no_path_of_the_host_is_told(world: World, properties: dict[str, Any]) -> None:
    """Neither in the fault, nor in the event, nor in the reason that the conductor makes a fault of."""
    world.host()
    error = exceptions.ResizeError(reason="qemu-img: Could not open '/var/lib/nova/instances/_base/x': is corrupt")
    world.fail("spawn", error)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, filter_properties=properties)
    assert wait_for(lambda: world.tasks.builds or world.fault(asked.uuid))
    world.idle()
    fault = world.fault(asked.uuid)
    told = fault.message if fault else world.tasks.builds[0]["filter_properties"]["retry"]["exc_reason"]
    assert "/var" not in told
    assert "is corrupt" in told
    if fault:
        assert world.details(asked.uuid, ctxt) == told


def test_a_failed_reboot_says_why(world: World) -> None:
    """In the fault and in the event of the action, without the host's paths."""
    world.host()
    server = world.built()
    world.fail("reboot", OSError(28, "No space left on device", "/var/lib/nova/instances/x"))
    ctxt = world.cast("reboot_instance", server, "rebooting_hard", block_device_info=None, reboot_type="HARD")
    assert wait_for(lambda: world.fault(server.uuid))
    world.idle()
    assert world.fault(server.uuid).message == "No space left on device"
    assert world.details(server.uuid, ctxt) == "No space left on device"


def test_a_network_that_is_not_wired_is_named(world: World) -> None:
    world.host(driver=WaitingDriver)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, filter_properties={})
    assert wait_for(lambda: world.hosts["h1"].agent.events._waits)
    [port] = world.cloud.neutron.ports_of(asked.uuid)
    world.hosts["h1"].agent.events.deliver(asked.uuid, "network-vif-plugged", port["id"], "failed")
    why = f"event network-vif-plugged of {port['id']} was reported as failed"
    assert (
        f"Failed to allocate the network(s) with error {why}, not rescheduling."
        in ended_in_error(world, asked, ctxt).message
    )


def test_a_rescheduled_server_keeps_its_volume_reserved(world: World) -> None:
    world.host()
    volume = world.cloud.cinder.volume(project="project")
    world.fail("spawn", exceptions.ComputeResourcesUnavailable(reason="no room"))
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[volume_disk(volume)], image_ref="")
    world.cast_build(ctxt, asked)
    assert wait_for(lambda: world.tasks.builds)
    world.idle()
    [disk] = world.disks(asked)
    [attachment] = world.leftovers(asked.uuid)["attachments"]
    assert disk.attachment_id == attachment
    assert disk.connection_info is None
    assert world.cloud.cinder.volumes[volume]["status"] == "reserved"


def test_a_volume_is_made_from_an_image(world: World) -> None:
    world.host()
    world.set(block_device_allocate_retries_interval=0)
    disk = objects.BlockDeviceMapping(
        source_type="image", destination_type="volume", boot_index=0, volume_size=3, image_id=IMAGE_ID
    )
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[disk])
    world.cast_build(ctxt, asked)
    world.until(asked.uuid, vm_state="active")
    [made] = world.cloud.cinder.volumes.values()
    assert (made["size"], made["status"]) == (3, "in-use")
    [mapping] = world.disks(asked)
    assert mapping.volume_id == made["id"]


@pytest.mark.parametrize("cross", [True, False])
def test_where_volumes_stay_in_their_zone_one_is_made_in_the_servers(world: World, cross: bool) -> None:
    world.clients.cinder.cross_az_attach = cross
    world.host()
    world.set(block_device_allocate_retries_interval=0)
    disk = objects.BlockDeviceMapping(
        source_type="image", destination_type="volume", boot_index=0, volume_size=3, image_id=IMAGE_ID
    )
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[disk], availability_zone="far")
    world.cast_build(ctxt, asked)
    world.until(asked.uuid, vm_state="active")
    [made] = world.cloud.cinder.volumes.values()
    assert made["availability_zone"] == ("nova" if cross else "far")


def test_a_host_in_another_zone_than_the_volume_leaves_it_to_others(world: World) -> None:
    world.clients.cinder.cross_az_attach = False
    world.host()
    volume = world.cloud.cinder.volume(project="project")
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[volume_disk(volume)], image_ref="", availability_zone="far")
    world.cast_build(ctxt, asked)
    assert wait_for(lambda: world.tasks.builds)
    assert "availability zone nova" in world.tasks.builds[0]["filter_properties"]["retry"]["exc_reason"]


def test_a_delete_ends_a_build(world: World) -> None:
    """The build gives way after the step it is in, cleans up, and the delete does the rest."""
    world.host()
    held = world.hold("spawn")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    held.reached()
    server = world.until(asked.uuid, task_state="spawning")
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    assert wait_for(lambda: world.hosts["h1"].agent.lanes.depth == 2)
    held.release()
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING
    assert world.fault(server.uuid) is None


def test_a_delete_does_not_wait_for_interfaces(world: World) -> None:
    """A guest that waits for its ports is given up at once."""

    world.host(driver=WaitingDriver)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    server = world.until(asked.uuid, task_state="spawning")
    began = time.monotonic()
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)
    world.idle()
    assert time.monotonic() - began < 10
    assert world.leftovers(server.uuid) == NOTHING
    # The next build of the same host waits and is woken.
    other = world.asked(ctxt)
    world.cast_build(ctxt, other)
    waiting = world.until(other.uuid, task_state="spawning")
    [port] = world.cloud.neutron.ports_of(other.uuid)
    event = objects.InstanceExternalEvent(
        instance_uuid=other.uuid, name="network-vif-plugged", status="completed", tag=port["id"], data={}
    )
    time.sleep(0.1)
    world.client.external_instance_event(world.ctxt(), instances=[waiting], events=[event], host="h1")
    world.until(other.uuid, vm_state="active")


def test_a_server_deleted_before_its_build(world: World) -> None:
    world.host()
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.db.run(instances.destroy, ctxt, world.server(asked.uuid))
    world.cast_build(ctxt, asked)
    assert wait_for(lambda: not world.cloud.placement.held(asked.uuid))
    world.idle()
    assert world.leftovers(asked.uuid) == NOTHING


def test_a_repeated_cast_builds_once(world: World) -> None:
    world.host()
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    for _ in range(3):
        world.cast_build(ctxt, asked)
    world.until(asked.uuid, vm_state="active", task_state=None)
    world.cast_build(ctxt, asked)
    world.idle()
    assert world.until(asked.uuid, vm_state="active", task_state=None).host == "h1"
    assert len(world.cloud.neutron.ports_of(asked.uuid)) == 1
    assert world.events(asked.uuid, ctxt.request_id) == [("compute__do_build_and_run_instance", "Success")]


def test_a_build_of_a_server_that_is_elsewhere_is_refused(world: World) -> None:
    """A late cast must not touch a server that another request has brought up."""
    world.host()
    world.host("h2")
    server = world.built("h2")
    server.task_state = "rebooting"
    world.db.run(instances.save, world.ctxt(), server)
    ctxt = world.ctxt()
    world.act(ctxt, server, "create")
    world.cast_build(ctxt, server)
    world.idle()
    now = world.server(server.uuid)
    assert (now.vm_state, now.task_state, now.host) == ("active", "rebooting", "h2")
    assert len(world.cloud.neutron.ports_of(server.uuid)) == 1
    assert world.cloud.placement.held(server.uuid)


def test_a_cast_that_waited_while_its_host_was_down_is_refused_once_another_has_built_the_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctxt = world.ctxt()
    world.host("h2")
    asked = world.asked(ctxt, "h2")
    late = asked.obj_clone()
    world.cast_build(ctxt, asked, "h2")
    world.until(asked.uuid, vm_state="active", task_state=None)
    world.idle()
    journal, ended = world.host().agent.journal, []
    finish = journal.finish
    monkeypatch.setattr(journal, "finish", lambda *args: (finish(*args), ended.append(args[2])))
    world.cast_build(ctxt, late, "h1")
    assert wait_for(lambda: ended == [job.REFUSED])
    world.idle()
    now = world.server(asked.uuid)
    assert (now.vm_state, now.task_state, now.host) == ("active", None, "h2")
    assert len(world.cloud.neutron.ports_of(asked.uuid)) == 1


def test_builds_are_bounded_and_others_wait(world: World) -> None:
    world.set(max_concurrent_builds=2)
    world.set("kilonova", fake_latency={"spawn": 0.1})
    most = [0, 0]
    lock = threading.Lock()

    class Counting(FakeDriver):
        def spawn(self, ctxt: Any, guest: Any) -> None:
            with lock:
                most[0] += 1
                most[1] = max(most)
            super().spawn(ctxt, guest)
            with lock:
                most[0] -= 1

    world.host(driver=Counting)
    asked = []
    for _ in range(6):
        ctxt = world.ctxt()
        asked.append(world.asked(ctxt))
        world.cast_build(ctxt, asked[-1])
    for each in asked:
        world.until(each.uuid, vm_state="active")
    assert most[1] == 2


def test_the_group_rule_is_checked_once_more(world: World) -> None:
    world.host()
    first = world.built()
    ctxt = world.ctxt()
    second = world.asked(ctxt)
    made = world.group("anti-affinity", first.uuid, second.uuid)
    hints = {"scheduler_hints": {"group": [made]}}
    world.cast_build(ctxt, second, filter_properties={"retry": {"num_attempts": 1, "hosts": []}, **hints})
    assert wait_for(lambda: world.tasks.builds)
    world.idle()
    assert "nti-affinity" in world.tasks.builds[0]["filter_properties"]["retry"]["exc_reason"]
    assert world.leftovers(second.uuid) == NOTHING
    assert world.hosts["h1"].agent.tracker.nodes["h1"].failed_builds == 0


@pytest.mark.parametrize(("policy", "hosts"), [("anti-affinity", ("h1", "h1")), ("affinity", ("h1", "h2"))])
def test_d9_of_two_at_once_the_later_member_yields(
    world: World, monkeypatch: pytest.MonkeyPatch, policy: str, hosts: tuple[str, str]
) -> None:
    """Both are taken on before either looks, as they are when schedulers of Nova's chose for them."""
    for host in sorted(set(hosts)):
        world.host(host)
    ctxts = world.ctxt(), world.ctxt()
    first, second = (world.asked(ctxt, host=host) for ctxt, host in zip(ctxts, hosts, strict=True))
    hints = {"scheduler_hints": {"group": [world.group(policy, first.uuid, second.uuid)]}}
    gate, check = threading.Barrier(2), group.check

    def together(build: Any) -> None:
        gate.wait(20)
        check(build)

    monkeypatch.setattr(group, "check", together)
    for ctxt, server, host in zip(ctxts, (first, second), hosts, strict=True):
        retry = {"retry": {"num_attempts": 1, "hosts": []}}
        world.cast_build(ctxt, server, host=host, filter_properties={**retry, **hints})
    world.until(first.uuid, vm_state="active")
    assert wait_for(lambda: world.tasks.builds)
    world.idle()
    assert [each.uuid for each in world.tasks.builds[0]["instances"]] == [second.uuid]
    assert len(world.tasks.builds) == 1
    assert world.leftovers(second.uuid) == NOTHING


def test_d9_a_member_that_leaves_its_host_between_two_reads_is_in_no_other_cell(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = world.host("h1").agent
    ctxt = world.ctxt()
    first, second = world.asked(ctxt, host="h1"), world.asked(ctxt, host="h2")
    hints = {"scheduler_hints": {"group": [world.group("affinity", first.uuid, second.uuid)]}}
    answers = iter([["h2"], []])
    monkeypatch.setattr(agent.store, "group_hosts", lambda *asked, **excluded: next(answers, []))
    monkeypatch.setattr(group, "PAUSES", (0.01,) * 3)
    world.cast_build(ctxt, first, filter_properties={"retry": {"num_attempts": 1, "hosts": []}, **hints})
    world.until(first.uuid, vm_state="active")
    assert not world.tasks.builds


def grouped(world: World, server: objects.Instance) -> dict[str, Any]:
    hints = {"scheduler_hints": {"group": [world.group("affinity", server.uuid)]}}
    return {"retry": {"num_attempts": 1, "hosts": []}, **hints}


def test_a_look_at_a_group_that_takes_its_time_keeps_no_other_group_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conductor may be slow to answer."""
    monkeypatch.setattr(group, "_turns", Stripes(1 << 16))
    agent = world.host().agent
    ctxt, hold, real = world.ctxt(), threading.Event(), agent.store.group_of
    slow, quick = world.asked(ctxt), world.asked(ctxt)

    def group_of(ctxt: Any, uuid: str) -> Any:
        if uuid == slow.uuid:
            hold.wait(20)
        return real(ctxt, uuid)

    monkeypatch.setattr(agent.store, "group_of", group_of)
    for server in (slow, quick):
        world.cast_build(ctxt, server, filter_properties=grouped(world, server))
        if server is slow:
            world.until(server.uuid, task_state="networking")
    world.until(quick.uuid, vm_state="active")
    assert not hold.is_set()
    hold.set()
    world.until(slow.uuid, vm_state="active")


def test_a_delete_does_not_wait_for_a_member_that_may_yield(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def yields(build: Any) -> None:
        raise group.LaterMemberError

    world.host()
    monkeypatch.setattr(group, "_look", yields)
    monkeypatch.setattr(group, "PAUSES", (60.0,))
    ctxt = world.ctxt()
    server = world.asked(ctxt)
    world.cast_build(ctxt, server, filter_properties=grouped(world, server))
    world.until(server.uuid, task_state="networking")
    world.cast("terminate_instance", world.server(server.uuid), "deleting", bdms=None)
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


@pytest.mark.parametrize(
    ("mine", "others", "host"),
    [
        ("a", {}, None),
        ("a", {"b": ("h2", False)}, None),
        ("a", {"b": ("h2", True)}, "h2"),
        ("b", {"a": ("h1", False), "c": ("h2", False)}, "h1"),
        ("c", {"a": ("h1", False), "b": ("h2", False)}, "h1"),
        ("c", {"a": ("h1", False), "b": ("h2", True)}, "h2"),
        ("x", {"a": ("h1", False)}, "h1"),
    ],
)
def test_d9_where_members_belong(mine: str, others: dict[str, tuple[str, bool]], host: str | None) -> None:
    assert group.common_host(mine, ["a", "b", "c"], others) == host


def test_d9_who_comes_first_on_a_host() -> None:
    assert group.before("b", ["a", "b", "c"], {"a", "c"}, set()) == {"a"}
    assert group.before("b", ["a", "b", "c"], {"a", "c"}, {"c"}) == {"a", "c"}


def test_where_no_host_may_look_at_groups_the_scheduler_is_trusted(world: World) -> None:
    world.set("workarounds", disable_group_policy_check_upcall=True)
    world.host()
    first = world.built()
    ctxt = world.ctxt()
    second = world.asked(ctxt)
    hints = {"scheduler_hints": {"group": [world.group("anti-affinity", first.uuid, second.uuid)]}}
    world.cast_build(ctxt, second, filter_properties={"retry": {"num_attempts": 1, "hosts": []}, **hints})
    world.until(second.uuid, vm_state="active")


def test_the_node_record_follows(world: World) -> None:
    world.host()
    server = world.built()

    def record() -> Any:
        [node] = world.hosts["h1"].agent.store.nodes_of_host(world.ctxt(), "h1")
        return node

    assert wait_for(lambda: record().memory_mb_used == 512 + 192)
    node = record()
    assert (node.vcpus_used, node.local_gb_used, node.running_vms) == (1, 1, 1)
    assert node.stats["num_instances"] == "1"
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    assert wait_for(lambda: record().memory_mb_used == 512)


def test_config_drive_and_files_reach_the_guest(world: World) -> None:
    seen: dict[str, Any] = {}

    class Papers:
        def files(self, instance: Any, network_info: Any, **more: Any) -> dict[str, bytes]:
            seen.update(more, ports=[vif["id"] for vif in network_info])
            return {"openstack/latest/meta_data.json": b"{}"}

    world.host(documents=Papers())
    ctxt = world.ctxt()
    asked = world.asked(ctxt, config_drive="True")
    world.cast_build(ctxt, asked, injected_files=[["/etc/motd", "aGVsbG8="]])
    server = world.until(asked.uuid, vm_state="active")
    assert seen["injected_files"] == [("/etc/motd", b"hello")]
    assert seen["admin_password"] == "secret"
    assert seen["ports"] == [vif["id"] for vif in server.info_cache.network_info]
    assert world.driver()._guests.get(asked.uuid).config_drive
