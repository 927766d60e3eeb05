"""A host's record: identity, service, node, provider; and how it starts and ends."""

from __future__ import annotations

import dataclasses
import json
import threading
from typing import Any

import pytest
from tests.fakes.guests import spec
from tests.unit.compute.world import World, wait_for

from kilonova.compute import provider, recovery, resources, service, usage
from kilonova.compute.store import RpcStore
from kilonova.contract import context, exceptions, objects
from kilonova.virt.driver import Inventory, NodeResources
from kilonova.virt.fake.driver import FakeDriver, SmallFakeDriver
from kilonova.virt.hardware import disk_names, numa
from kilonova.wire.rpc.errors import RpcTimeout
from kilonova.wire.rpc.transport import Address, Message


def node(world: World, host: str = "h1") -> Any:
    [found] = world.hosts[host].agent.store.nodes_of_host(context.admin(), host)
    return found


def offered(world: World, host: str = "h1") -> Any:
    [uuid] = world.driver(host).nodes().values()
    return world.cloud.placement.providers[uuid]


# --- registration ------------------------------------------------------------------------------


def test_a_new_host_registers_itself(world: World) -> None:
    host = world.host(driver=SmallFakeDriver)
    own = host.agent.store.service(context.admin(), "h1", "nova-compute")
    assert own is not None
    assert (own.topic, own.version, own.disabled) == ("compute", 74, False)
    record = node(world)
    assert (record.hypervisor_hostname, record.hypervisor_type, record.vcpus) == ("h1", "fake", 2)
    assert (record.service_id, record.mapped) == (own.id, 0)
    assert (record.cpu_allocation_ratio, record.ram_allocation_ratio) == (4.0, 1.0)
    assert record.uuid == (world.folder / "h1" / "compute_id").read_text()
    assert record.supported_hv_specs[0].hv_type == "fake"
    found = offered(world)
    assert found.name == "h1"
    assert found.inventories["VCPU"]["allocation_ratio"] == 4.0
    assert found.inventories["MEMORY_MB"]["reserved"] == 512
    assert {"COMPUTE_NODE", "OWNER_NOVA", "COMPUTE_NET_ATTACH_INTERFACE"} <= found.traits
    assert not {"COMPUTE_STATUS_DISABLED", "COMPUTE_REMOTE_MANAGED_PORTS"} & found.traits


def test_a_host_that_starts_before_its_conductor_asks_again_soon(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent before a conductor has a queue is lost: the host waited for its answer for a minute."""
    asked = []
    really = RpcStore.reach

    def reach(store: RpcStore, ctxt: Any, patience: float) -> None:
        asked.append(patience)
        if len(asked) < 3:
            raise RpcTimeout("nobody is there")
        really(store, ctxt, patience)

    monkeypatch.setattr(RpcStore, "reach", reach)
    world.host()
    assert asked == [service.FIRST_CONTACT] * 3


def test_a_conductor_is_reached_or_not_within_the_time_given(world: World) -> None:
    store = RpcStore(world.bus, "h1")
    store.reach(context.admin(), 5)
    for server in world.servers:
        server.stop()
    world.set(rpc_response_timeout=600)
    with pytest.raises(RpcTimeout):
        store.reach(context.admin(), 0.1)


def test_nothing_is_written_that_did_not_change(world: World) -> None:
    host = world.host()
    before = (offered(world).generation, node(world).updated_at)
    requests: list[str] = []
    send = world.cloud.placement.send
    world.cloud.placement.send = lambda request: requests.append(request.method) or send(request)  # type: ignore[method-assign]
    host.agent.tracker.audit(context.admin())
    assert requests == []
    assert (offered(world).generation, node(world).updated_at) == before


def test_the_uptime_is_recorded_for_lists(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes all the time: alone, it is written every ten minutes."""
    told = ["up 1 day"]
    monkeypatch.setattr(FakeDriver, "uptime", lambda driver: told[0])
    host = world.host()
    assert node(world).stats["uptime"] == "up 1 day"
    told[0] = "up 2 days"
    host.agent.tracker.audit(context.admin())
    assert node(world).stats["uptime"] == "up 1 day"
    host.agent.tracker.nodes["h1"].written_at -= resources.UPTIME_AGE
    host.agent.tracker.audit(context.admin())
    assert node(world).stats["uptime"] == "up 2 days"


def test_a_host_without_uptime_records_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(driver: FakeDriver) -> str:
        raise NotImplementedError

    monkeypatch.setattr(FakeDriver, "uptime", unknown)
    world.host()
    assert "uptime" not in node(world).stats


def test_what_somebody_else_changed_in_placement_is_respected(world: World) -> None:
    """An operator's ratio and traits stay; ours are put back after a conflict."""
    host = world.host()
    found = offered(world)
    found.inventories["VCPU"]["allocation_ratio"] = 2.0
    found.traits.add("CUSTOM_RACK_7")
    found.traits.discard("COMPUTE_NODE")
    found.generation += 1
    world.stop()
    host = world.host()
    found = offered(world)
    assert found.inventories["VCPU"]["allocation_ratio"] == 2.0
    assert {"CUSTOM_RACK_7", "COMPUTE_NODE"} <= found.traits
    found.generation += 1
    host.agent.tracker.set_disabled(context.admin(), True)
    assert "COMPUTE_STATUS_DISABLED" in offered(world).traits
    assert "CUSTOM_RACK_7" in offered(world).traits
    world.set(cpu_allocation_ratio=8.0)
    host.agent.tracker.audit(context.admin())
    assert offered(world).inventories["VCPU"]["allocation_ratio"] == 8.0
    assert node(world).cpu_allocation_ratio == 8.0


def test_a_disabled_service_shows_in_placement(world: World) -> None:
    host = world.host()
    world.disable("h1")
    host._audit()
    assert "COMPUTE_STATUS_DISABLED" in offered(world).traits


def test_a_lost_provider_is_made_again(world: World) -> None:
    host = world.host()
    world.cloud.placement.providers.clear()
    world.set(reserved_host_memory_mb=1024)
    host.agent.tracker.audit(context.admin())
    assert offered(world).inventories["MEMORY_MB"]["reserved"] == 1024
    assert "COMPUTE_NODE" in offered(world).traits


def test_capability_traits_are_the_contracts() -> None:
    class Able:
        capabilities = {"supports_multiattach": True, "supports_secure_boot": False, "has_imagecache": True}

    assert provider.capability_traits(Able()) == {"COMPUTE_VOLUME_MULTI_ATTACH"}  # type: ignore[arg-type]


# --- identity ----------------------------------------------------------------------------------


def test_a_host_that_lost_its_identity_does_not_start(world: World) -> None:
    world.host()
    world.stop()
    (world.folder / "h1" / "compute_id").unlink()
    with pytest.raises(exceptions.InvalidConfiguration, match="node identity"):
        world.host()


def test_a_renamed_host_does_not_start(world: World) -> None:
    world.host()
    world.stop()
    (world.folder / "h1").rename(world.folder / "h2")
    with pytest.raises(exceptions.InvalidConfiguration, match="renamed"):
        world.host("h2")


def test_a_new_host_with_guests_does_not_start(world: World) -> None:
    driver = FakeDriver(world.conf, "h1", world.folder / "h1")
    driver.spawn(context.admin(), spec())
    with pytest.raises(exceptions.InvalidConfiguration, match="right database"):
        world.host()


def test_a_host_of_an_old_service_takes_its_nodes_uuid(world: World) -> None:
    world.host()
    uuid = node(world).uuid
    world.stop()
    (world.folder / "h1" / "compute_id").unlink()
    from kilonova.db.cell.tables import SERVICES

    with world.db.write() as tx:
        tx.execute(SERVICES.update().values(version=60))
    host = world.host()
    assert node(world).uuid == uuid == (world.folder / "h1" / "compute_id").read_text()
    assert host.agent.tracker.service.version == 74


# --- living ------------------------------------------------------------------------------------


def test_heartbeats_count(world: World) -> None:
    world.set(report_interval=1)
    host = world.host()

    def beats() -> int:
        return host.agent.store.service(context.admin(), "h1", "nova-compute").report_count

    assert wait_for(lambda: beats() >= 2)
    assert host.agent.store.service(context.admin(), "h1", "nova-compute").last_seen_up is not None


def test_a_host_waits_for_its_conductor(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.set(rpc_response_timeout=1)
    for server in world.servers:
        server.stop()
    starting = threading.Thread(target=world.host)
    starting.start()
    assert wait_for(lambda: "host h1 waits for a conductor" in caplog.text)
    assert "h1" not in world.hosts
    world.servers[0].start()
    starting.join(15)
    assert "h1" in world.hosts


def test_a_call_that_was_carried_out_although_its_answer_was_lost(world: World) -> None:
    """The save is asked again; that it was made before is no error."""
    host = world.host()
    server = world.asked(world.ctxt())
    conductor = host.agent.store._conductor
    real, lost = conductor.object_action, []

    def lossy(*args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        if not lost:
            lost.append(True)
            raise RpcTimeout("the answer was lost")
        return answer

    conductor.object_action = lossy
    server.task_state = "networking"
    host.agent.store.save(world.ctxt(), server, expected=("scheduling", None))
    assert world.server(server.uuid).task_state == "networking"
    assert server.obj_what_changed() == set()
    # A real contradiction is an error still.
    lost.clear()
    other = world.server(server.uuid)
    other.task_state = "spawning"
    with pytest.raises(exceptions.UnexpectedTaskStateError):
        host.agent.store.save(world.ctxt(), other, expected="scheduling")


def test_schedulers_hear_which_servers_are_here(world: World) -> None:
    host = world.host()
    server = world.built()
    host._list()
    assert wait_for(lambda: ("sync", (server.uuid,)) in world.schedulers.told)


def test_status_says_what_runs(world: World) -> None:
    host = world.host()
    assert host.status()["operations"] == 0
    assert {"node_record", "journal"} <= set(host.status()["timers"])


# --- claims ------------------------------------------------------------------------------------


def instance(**more: Any) -> objects.Instance:
    made = spec().instance
    for name, value in {"vm_state": "building", "task_state": None, "pci_requests": None, **more}.items():
        setattr(made, name, value)
    return made


def test_claims_are_counted_and_audits_keep_them(world: World) -> None:
    tracker = world.host().agent.tracker
    made = instance(numa_topology=None)
    tracker.claim(context.admin(), made, "h1", [])
    assert (made.host, made.node, made.launched_on, made.compute_id) == ("h1", "h1", "h1", node(world).id)
    tracker.audit(context.admin())
    assert made.uuid in tracker.tracked()
    assert node(world).memory_mb_used == 512 + 192
    tracker.forget(made.uuid)
    tracker.flush(context.admin())
    assert node(world).memory_mb_used == 512


def test_what_was_forgotten_during_an_audit_stays_forgotten(world: World) -> None:
    host = world.host()
    server = world.built()
    tracker, store = host.agent.tracker, host.agent.store
    read = store.instances_of_node

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = read(*args, **kwargs)
        tracker.forget(server.uuid)
        return found

    store.instances_of_node = slow
    tracker.audit(context.admin())
    assert tracker.tracked() == set()


@pytest.mark.parametrize("begun", ["before", "meanwhile"])
def test_a_claim_that_settled_during_an_audit_is_kept(world: World, begun: str) -> None:
    """The record was read before it named this host; the claim ended before what was read is taken over."""
    host = world.host()
    tracker, store = host.agent.tracker, host.agent.store
    made = instance(numa_topology=None)
    read = store.instances_of_node
    if begun == "before":
        tracker.claim(context.admin(), made, "h1", [])

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = read(*args, **kwargs)
        if begun == "meanwhile":
            tracker.claim(context.admin(), made, "h1", [])
        made.vm_state = "active"
        tracker.settle(made)
        return found

    store.instances_of_node = slow
    tracker.audit(context.admin())
    assert tracker.nodes["h1"].usages[made.uuid].vm_state == "active"
    assert node(world).memory_mb_used == 512 + 192
    # Once the record has had its time to name it, the record's word counts again.
    store.instances_of_node = read
    tracker.audit(context.admin())
    assert tracker.tracked() == set()


def test_a_state_that_changed_during_an_audit_is_kept(world: World) -> None:
    host = world.host()
    server = world.built()
    tracker, store = host.agent.tracker, host.agent.store
    read = store.instances_of_node

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = read(*args, **kwargs)
        server.vm_state = "stopped"
        tracker.update(server)
        return found

    store.instances_of_node = slow
    tracker.audit(context.admin())
    assert tracker.nodes["h1"].usages[server.uuid].vm_state == "stopped"


def test_an_audit_that_fails_leaves_no_memory_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    host = world.host()
    tracker = host.agent.tracker

    def silent(*args: Any) -> Any:
        raise RpcTimeout("nobody answers")

    monkeypatch.setattr(host.agent.store, "instances_of_node", silent)
    with pytest.raises(RpcTimeout):
        tracker.audit(context.admin())
    tracker.forget("11111111-1111-4111-8111-111111111111")
    assert tracker._touched is None


def test_claims_that_cannot_be_met(world: World) -> None:
    tracker = world.host().agent.tracker
    with pytest.raises(exceptions.ComputeResourcesUnavailable, match="no node other"):
        tracker.claim(context.admin(), instance(numa_topology=None), "other", [])
    request = objects.InstancePCIRequest(count=1, alias_name="gpu", spec=[])
    asked = instance(numa_topology=None, pci_requests=objects.InstancePCIRequests(requests=[request]))
    with pytest.raises(exceptions.ComputeResourcesUnavailable, match="PCI"):
        tracker.claim(context.admin(), asked, "h1", [])
    assert tracker.tracked() == set()


def test_a_volume_backed_server_takes_no_disk(world: World) -> None:
    tracker = world.host().agent.tracker
    root = objects.BlockDeviceMapping(boot_index=0, destination_type="volume", source_type="volume")
    made = instance(numa_topology=None)
    tracker.claim(context.admin(), made, "h1", [root])
    assert tracker.nodes["h1"].usages[made.uuid].local_gb == 0


# --- pure parts --------------------------------------------------------------------------------


def test_stats_are_novas() -> None:
    building = usage.Usage(1, 1, 1, "p", None, "building", "spawning")
    idle = dataclasses.replace(building, vm_state="active", task_state=None, os_type="linux")
    assert usage.stats([building, idle], 2) == {
        "failed_builds": "2",
        "io_workload": "1",
        "num_instances": "2",
        "num_os_type_None": "1",
        "num_os_type_linux": "1",
        "num_proj_p": "2",
        "num_task_None": "1",
        "num_task_spawning": "1",
        "num_vm_active": "1",
        "num_vm_building": "1",
    }
    assert usage.workload(usage.stats([building, idle], 0)) == 1
    assert usage.stats([], 0) == {"failed_builds": "0", "io_workload": "0", "num_instances": "0"}


@pytest.mark.parametrize(
    ("vm_state", "task_state", "method"),
    [
        ("active", None, None),
        ("active", "powering-off", "stop_instance"),
        ("stopped", "powering-on", "start_instance"),
        ("active", "rebooting", "reboot_instance"),
        ("error", "deleting", "terminate_instance"),
        ("error", "powering-off", None),
        ("building", "deleting", "terminate_instance"),
        ("building", "spawning", "build_and_run_instance"),
        ("soft-delete", "deleting", None),
        ("active", "resize_prep", None),
    ],
)
def test_what_states_say_is_open(vm_state: str, task_state: str | None, method: str | None) -> None:
    made = objects.Instance(vm_state=vm_state, task_state=task_state, power_state=1)
    assert recovery.judge(made, 1)[0] == method


def test_disk_names() -> None:
    assert disk_names.first("scsi") == "/dev/sda"
    assert disk_names.following("/dev/vda", {"/dev/vda", "vdb"}) == "/dev/vdc"
    assert disk_names.following("/dev/xvda", set()) == "/dev/xvda"
    assert disk_names.following("/dev/sda1", {"/dev/sda1"}) == "/dev/sdb"
    assert [disk_names.letters(n) for n in (0, 25, 26, 701, 702)] == ["a", "z", "aa", "zz", "aaa"]


def topology(*cells: Any) -> str:
    made = [
        objects.NUMACell(
            id=n,
            cpuset=set(shared),
            pcpuset=set(pinned),
            memory=memory,
            cpu_usage=0,
            memory_usage=0,
            pinned_cpus=set(),
            siblings=[],
            mempages=[objects.NUMAPagesTopology(size_kb=2048, total=256, used=0, reserved=0)],
        )
        for n, (shared, pinned, memory) in enumerate(cells)
    ]
    return json.dumps(objects.NUMATopology(cells=made).obj_to_primitive())


def wanted(*cells: Any, policy: str | None = None, **more: Any) -> objects.InstanceNUMATopology:
    made = []
    for n, (cpus, memory) in enumerate(cells):
        pinned = policy == "dedicated"
        sets = {"cpuset": set() if pinned else set(cpus), "pcpuset": set(cpus) if pinned else set()}
        made.append(objects.InstanceNUMACell(id=n, memory=memory, cpu_policy=policy, **sets, **more))
    return objects.InstanceNUMATopology(cells=made)


def test_numa_places_each_node_on_another_and_pins() -> None:
    text = topology(([0, 1], [2, 3], 1024), ([4, 5], [6, 7], 2048))
    host = numa.host_topology(text, [])
    assert [c.id for c in numa.place(host, wanted(([0], 2000)), None).cells] == [1]
    both = numa.place(host, wanted(([0], 1000), ([1], 1000)), None)
    assert [c.id for c in both.cells] == [0, 1]
    assert numa.place(host, wanted(([0], 2000), ([1], 2000)), None) is None
    pinned = numa.place(host, wanted(([0, 1], 512), policy="dedicated"), None)
    assert pinned.cells[0].cpu_pinning_raw == {"0": 2, "1": 3}
    used = numa.host_topology(text, [pinned])
    assert [c.id for c in numa.place(used, wanted(([0, 1], 512), policy="dedicated"), None).cells] == [1]
    assert numa.place(used, wanted(([0], 1), policy="dedicated", cpu_thread_policy="isolate"), None) is None


def test_numa_limits_and_pages() -> None:
    text = topology(([0, 1], [], 1024))
    limits = objects.NUMATopologyLimits(cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)
    first = numa.place(numa.host_topology(text, []), wanted(([0], 600)), limits)
    used = numa.host_topology(text, [first])
    assert numa.place(used, wanted(([0], 600)), limits) is None
    assert numa.place(used, wanted(([0], 600)), None) is not None
    assert numa.place(used, wanted(([0, 1], 100)), limits) is None
    paged = numa.place(used, wanted(([0], 512), pagesize=2048), None)
    assert numa.place(numa.host_topology(text, [paged]), wanted(([0], 2), pagesize=2048), None) is None
    assert numa.place(used, wanted(([0], 512), pagesize=1048576), None) is None


def test_a_numa_claim_goes_through_the_tracker(world: World) -> None:
    class Big(FakeDriver):
        def resources(self, node: str) -> NodeResources:
            return dataclasses.replace(super().resources(node), numa_topology=topology(([0, 1], [], 1024)))

    tracker = world.host(driver=Big).agent.tracker
    made = instance(numa_topology=wanted(([0], 600)))
    limits = objects.SchedulerLimits(
        numa_topology=objects.NUMATopologyLimits(cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)
    )
    tracker.claim(context.admin(), made, "h1", [], limits)
    tracker.flush(context.admin())
    assert numa.loads(node(world).numa_topology).cells[0].memory_usage == 600
    with pytest.raises(exceptions.ComputeResourcesUnavailable, match="NUMA"):
        tracker.claim(context.admin(), instance(numa_topology=wanted(([0], 600))), "h1", [], limits)


def test_an_inventory_of_nothing_is_not_reported(world: World) -> None:
    class Empty(FakeDriver):
        def inventory(self, node: str) -> Any:
            return {**super().inventory(node), "VGPU": Inventory(total=0), "CUSTOM_X": Inventory(total=2)}

    world.host(driver=Empty)
    assert set(offered(world).inventories) == {"VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_X"}


def test_periodic_work_begins_at_random_moments(world: World) -> None:
    world.set(periodic_enable=True, periodic_fuzzy_delay=50)
    delays = [
        timer.initial_delay
        for name in ("h1", "h2")
        for timer in world.host(name).agent.timers.timers
        if timer.name in ("resources", "scheduler_sync")
    ]
    assert len(set(delays)) == 4
    assert all(delay is not None and 0 <= delay <= 50 for delay in delays)


def test_a_server_that_goes_while_the_host_is_counted_is_not_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = world.host().agent
    server, kept = world.built(), world.built()
    agent.tracker._volume_backed.clear()
    look = agent.store.block_devices_of

    def look_and_lose(*args: Any) -> Any:
        found = look(*args)
        agent.tracker.forget(kept.uuid)
        return found

    agent.tracker._volume_backed[kept.uuid] = False
    monkeypatch.setattr(agent.store, "block_devices_of", look_and_lose)
    agent.tracker.audit(world.ctxt())
    assert agent.tracker.tracked() == {server.uuid}


def test_a_host_that_ends_hears_what_its_work_waits_for_and_nothing_new(world: World) -> None:
    """On its second topic; and it says that it lives until its work has ended."""
    plugged = threading.Event()

    class Waiting(FakeDriver):
        def spawn(self, ctxt: Any, guest: Any) -> None:
            super().spawn(ctxt, guest)
            with self.services.events.expect(guest.instance.uuid, [("network-vif-plugged", "p")], 60):
                plugged.set()

    world.set(report_interval=1)
    host = world.host(driver=Waiting)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    assert plugged.wait(20)
    ending = threading.Thread(target=host.stop, args=(60,))
    ending.start()
    assert wait_for(lambda: host.agent.lanes._stopping)
    seen = host.agent.store.service(context.admin(), "h1", "nova-compute").report_count
    with pytest.raises(RpcTimeout):
        world.bus.call(world.ctxt(), Address("compute", "h1"), Message("get_host_uptime", {}, "6.0"), 0.2)
    assert wait_for(lambda: host.agent.store.service(context.admin(), "h1", "nova-compute").report_count > seen)
    event = objects.InstanceExternalEvent(
        instance_uuid=asked.uuid, name="network-vif-plugged", status="completed", tag="p", data={}
    )
    world.client.external_instance_event(world.ctxt(), instances=[asked], events=[event], host="h1")
    ending.join(30)
    assert not ending.is_alive()
    assert world.server(asked.uuid).vm_state == "active"
