"""select_destinations against a Placement with memory: claims, alternates, races, rollback, explanations."""

from __future__ import annotations

import concurrent.futures
import json
import threading
import time
import uuid

import pytest
from tests import fakes
from tests.unit.scheduler import make

from kilonova.clients.placement.client import AllocationConflict, Placement
from kilonova.contract import context, exceptions, objects
from kilonova.db.api import instance_mappings
from kilonova.scheduler import groups, plugins
from kilonova.scheduler.destinations import Chooser
from kilonova.scheduler.groups import Group
from kilonova.scheduler.service import Handlers
from kilonova.scheduler.snapshot.cache import Snapshot, Tail

CTXT = context.RequestContext(user_id="user", project_id=make.PROJECT, auth_token="t")
SECOND = "cccccccc-0000-4000-8000-000000000002"


class Mappings:
    """The API database, as far as it knows whose servers there are: {uuid: project}."""

    def __init__(self) -> None:
        self.projects: dict[str, str] = {}

    @property
    def api(self):
        return self

    def query(self, statement, uuids):
        assert statement is instance_mappings.instance_mapping_list
        return [{"instance_uuid": u, "project_id": self.projects[u]} for u in uuids if u in self.projects]


class World:
    """Hosts that Placement and the databases agree on."""

    def __init__(self, conf, source) -> None:
        self.conf = conf
        self.source = source
        self.cloud = fakes.Cloud()
        self.snapshot = Snapshot(source, spacing=0.0)
        self.cells = Mappings()

    def host(self, name, *, vcpu=8, memory_mb=16384, cell=make.CELL, aggregates=(), traits=(), **row):
        self.source.put(name, cell=cell, **row)
        self.cloud.placement.host(
            name, vcpu=vcpu, memory_mb=memory_mb, provider=uuid_of(name), aggregates=aggregates, traits=traits
        )

    @property
    def chooser(self) -> Chooser:
        conf = self.conf
        chosen = plugins.filters(conf), plugins.weighers(conf)
        return Chooser(conf, self.cells, self.cloud.clients, self.snapshot, *chosen)

    def select(self, spec=None, uuids=None, alternates=False):
        spec = spec or make.spec()
        return self.chooser.select(CTXT, spec, uuids or [spec.instance_uuid], alternates=alternates)


def uuid_of(name):
    return make.node_row(name)["uuid"]


def new_uuids(count):
    return [str(uuid.uuid4()) for _ in range(count)]


@pytest.fixture
def world(conf, source) -> World:
    return World(conf, source)


def test_one_server(world):
    world.host("h1")
    spec = make.spec()
    [[selection]] = world.select(spec)
    assert (selection.service_host, selection.nodename, selection.cell_uuid) == ("h1", "h1", make.CELL)
    assert selection.compute_node_uuid == uuid_of("h1")
    assert selection.availability_zone == "nova"
    assert selection.allocation_request_version == "1.36"
    held = world.cloud.placement.held(spec.instance_uuid)
    assert held == {uuid_of("h1"): {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
    taken = json.loads(selection.allocation_request)["allocations"]
    assert {provider: each["resources"] for provider, each in taken.items()} == held
    assert world.cloud.placement.consumers[spec.instance_uuid].project == make.PROJECT


def test_every_limit_is_said(world):
    """Nova's hosts fail on one that is not there."""
    world.host("h1")
    [[selection]] = world.select()
    assert {name: getattr(selection.limits, name) for name in objects.SchedulerLimits.fields} == {
        "disk_gb": None,
        "memory_mb": None,
        "numa_topology": None,
        "vcpu": None,
    }
    assert all(selection.limits.obj_attr_is_set(name) for name in objects.SchedulerLimits.fields)


def test_no_host_reads_a_database_per_request(world):
    for n in range(5):
        world.host(f"h{n}")
    world.snapshot = Snapshot(world.source, spacing=60.0)
    for _ in range(10):
        world.select()
    assert len(world.source.looks) == 1


def test_alternates_of_the_same_cell(world):
    for n in range(4):
        world.host(f"h{n}", free_ram_mb=1000 * (n + 1))
    world.host("far", cell=SECOND, free_ram_mb=4500)
    [found] = world.select(alternates=True)
    assert [each.service_host for each in found] == ["far"]
    [found] = world.select(make.spec(ignore_hosts=["far"]), alternates=True)
    assert [each.service_host for each in found] == ["h3", "h2", "h1"], "max_attempts in all"
    assert json.loads(found[1].allocation_request)["allocations"] == {
        uuid_of("h2"): {"resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
    }
    assert len(world.cloud.placement.consumers) == 2, "alternates are not claimed"


def test_multi_create_spreads(world):
    for n in range(3):
        world.host(f"h{n}")
    uuids = new_uuids(3)
    found = world.select(make.spec(), uuids)
    assert {each[0].service_host for each in found} == {"h0", "h1", "h2"}
    assert set(world.cloud.placement.consumers) == set(uuids)


def test_multi_create_is_all_or_nothing(world):
    world.host("h1", memory_mb=1024)
    before = world.snapshot.by_name("h1", None)[0].free_ram_mb
    with pytest.raises(exceptions.NoValidHost):
        world.select(make.spec(), new_uuids(3))
    assert world.cloud.placement.consumers == {}
    host = world.snapshot.by_name("h1", None)[0]
    assert (host.free_ram_mb, host.instances) == (before, set())


def test_a_full_host_is_passed_over(world):
    world.host("h1", free_ram_mb=16000)
    world.host("h2", free_ram_mb=100)
    real = world.cloud.placement.candidates

    def filled_meanwhile(request):
        answer = real(request)
        world.cloud.placement.providers[uuid_of("h1")].inventories["MEMORY_MB"]["total"] = 1
        return answer

    patch(world.cloud.placement, real, filled_meanwhile)
    chooser = world.chooser
    spec = make.spec()
    [[selection]] = chooser.select(CTXT, spec, [spec.instance_uuid])
    assert selection.service_host == "h2"
    [decision] = chooser.record.last(spec.instance_uuid)
    assert decision.claims == [("h1", "no room any more"), ("h2", "claimed")]


def patch(service, handler, instead):
    service._routes = [(m, p, instead if h == handler else h) for m, p, h in service._routes]


def test_nothing_offered(world):
    world.host("h1", vcpu=0)
    with pytest.raises(exceptions.NoValidHost, match="no host offers") as caught:
        world.select()
    assert caught.value.format_message().startswith("No valid host was found. There are not enough hosts available")
    assert caught.value.kwargs["explanation"]["candidates"] == 0


def test_all_filtered_says_why(world):
    world.host("h1")
    world.host("h2")
    row = world.source.rows[make.CELL].services[0]
    row["forced_down"] = True
    world.source.rows[make.CELL].services[1]["disabled"] = True
    with pytest.raises(exceptions.NoValidHost, match="2 hosts had room; ComputeFilter left 0 of 2") as caught:
        world.select()
    [step] = caught.value.kwargs["explanation"]["filters"]
    assert {each["reason"]: each["hosts"] for each in step["reasons"]} == {
        "its service was declared down": ["h1"],
        "disabled": ["h2"],
    }
    assert "h1" not in caught.value.format_message(), "users see no names"


def test_disabled_hosts_are_not_even_offered(world):
    world.host("h1", traits=["COMPUTE_STATUS_DISABLED"])
    with pytest.raises(exceptions.NoValidHost, match="no host offers"):
        world.select()


def test_named_hosts(world):
    for name in ("h1", "h2", "h3"):
        world.host(name)
    [[forced]] = world.select(make.spec(force_hosts=["h2"]))
    assert forced.service_host == "h2"
    target = objects.Destination(host="h3")
    [[requested]] = world.select(make.spec(requested_destination=target))
    assert (requested.service_host, target.node) == ("h3", "h3")
    assert ("in_tree", uuid_of("h3")) in world.chooser_query()
    with pytest.raises(exceptions.NoValidHost, match="No such host - host: h9"):
        world.select(make.spec(force_hosts=["h9"]))


def _last_query(self):
    requests = [each for each in self.cloud.placement.requests if each.path == "/allocation_candidates"]
    return list(requests[-1].params)


World.chooser_query = _last_query


def test_zone_goes_to_placement_as_aggregate(world):
    world.host("h1", aggregates=["u1"])
    world.host("h2")
    world.source.listed = [make.Aggregate.of(1, "u1", "a", ["h1"], {"availability_zone": "az1"})]
    [[selection]] = world.select(make.spec(availability_zone="az1"))
    assert (selection.service_host, selection.availability_zone) == ("h1", "az1")
    assert ("member_of", "in:u1") in world.chooser_query()


def test_limit_and_its_exceptions(world):
    world.host("h1")
    world.select()
    assert ("limit", "1000") in world.chooser_query()
    world.select(make.spec(scheduler_hints={"different_host": ["x"]}))
    assert not any(name == "limit" for name, _ in world.chooser_query())


def test_d3_a_hint_tells_nothing_of_where_servers_of_others_are(world):
    world.conf.set_override("enabled_filters", ["DifferentHostFilter", "SameHostFilter"], group="filter_scheduler")
    own, theirs, nobody = new_uuids(3)
    world.host("h1")
    spec = make.spec()
    world.cells.projects = {own: spec.project_id, theirs: "somebody-else"}
    world.select(spec)
    world.snapshot.instances_are("h1", [own, theirs])

    def found(**hints):
        try:
            return bool(world.select(make.spec(scheduler_hints=hints)))
        except exceptions.NoValidHost:
            return False

    assert [found(different_host=[uuid]) for uuid in (own, theirs, nobody)] == [False, True, True]
    assert [found(same_host=[uuid]) for uuid in (own, theirs, nobody)] == [True, False, False]


def test_a_move_stays_in_its_cell(world):
    world.host("h1")
    world.host("far", cell=SECOND, free_ram_mb=16000)
    target = objects.Destination(cell=objects.CellMapping(uuid=make.CELL), allow_cross_cell_move=False)
    [[selection]] = world.select(make.spec(requested_destination=target))
    assert selection.service_host == "h1"


def test_pinned_servers_fall_back_to_shared_inventory(world):
    world.host("h1")
    [[selection]] = world.select(make.spec(specs={"hw:cpu_policy": "dedicated"}))
    assert selection.service_host == "h1"


def test_rebuild_checks_but_claims_nothing(world):
    world.host("h1", vcpu=0)
    target = objects.Destination(host="h1", node="h1")
    hints = {"_nova_check_type": ["rebuild"]}
    [[selection]] = world.select(make.spec(scheduler_hints=hints, requested_destination=target))
    assert selection.service_host == "h1"
    assert world.cloud.placement.calls == []
    wrong = {"hw_architecture": "aarch64"}
    with pytest.raises(exceptions.NoValidHost):
        world.select(make.spec(scheduler_hints=hints, requested_destination=target, props=wrong))


def test_repeated_build_replaces_its_first_claim(world):
    world.host("h1")
    world.host("h2")
    spec = make.spec(force_hosts=["h1"])
    world.select(spec)
    again = make.spec(force_hosts=["h2"], instance_uuid=spec.instance_uuid)
    world.select(again)
    assert set(world.cloud.placement.held(spec.instance_uuid)) == {uuid_of("h2")}


def test_a_move_holds_both_hosts(world):
    world.host("h1")
    world.host("h2")
    spec = make.spec(force_hosts=["h1"])
    world.select(spec)
    world.source.rows[make.CELL] = Tail([], [], [{"uuid": spec.instance_uuid, "host": "h1", "deleted": 0}])
    world.snapshot.refresh(force=True)
    world.select(make.spec(force_hosts=["h2"], instance_uuid=spec.instance_uuid))
    assert set(world.cloud.placement.held(spec.instance_uuid)) == {uuid_of("h1"), uuid_of("h2")}


def test_claims_are_given_back_when_the_consumer_keeps_changing(world, monkeypatch):
    world.host("h1")
    conflict = {"errors": [{"code": "placement.concurrent_update", "detail": "consumer generation conflict"}]}
    world.cloud.placement.fail("PUT", "/allocations/", status=409, body=conflict, times=99)
    monkeypatch.setattr("kilonova.base.retry.time.sleep", lambda _: None)
    with pytest.raises(AllocationConflict):
        world.select()
    assert world.cloud.placement.consumers == {}


def with_group(monkeypatch, group):
    monkeypatch.setattr(groups, "of_request", lambda cells, spec, instance: group)


def test_anti_affinity_within_one_request(world, monkeypatch):
    for n in range(3):
        world.host(f"h{n}")
    uuids = new_uuids(3)
    with_group(monkeypatch, Group("g", "anti-affinity", {}, frozenset(uuids), {}))
    found = world.select(make.spec(), uuids)
    assert {each[0].service_host for each in found} == {"h0", "h1", "h2"}
    more = new_uuids(1)
    with_group(monkeypatch, Group("g", "anti-affinity", {}, frozenset([*uuids, *more]), {}))
    with pytest.raises(exceptions.NoValidHost, match="ServerGroupAntiAffinityFilter left 0"):
        world.select(make.spec(), more)


def test_affinity_within_one_request(world, monkeypatch):
    for n in range(3):
        world.host(f"h{n}")
    uuids = new_uuids(3)
    with_group(monkeypatch, Group("g", "affinity", {}, frozenset(uuids), {}))
    found = world.select(make.spec(), uuids)
    assert len({each[0].service_host for each in found}) == 1


def test_a_policy_nobody_keeps_is_refused(world, monkeypatch):
    world.host("h1")
    world.conf.set_override("enabled_filters", ["ComputeFilter"], "filter_scheduler")
    with_group(monkeypatch, Group("g", "anti-affinity", {}, frozenset(), {}))
    with pytest.raises(exceptions.UnsupportedPolicyException):
        world.select()


def test_parallel_requests_never_oversubscribe(world):
    for n in range(4):
        world.host(f"h{n}", memory_mb=512 * 5)
    chooser = world.chooser
    outcomes = []

    def build():
        spec = make.spec()
        try:
            chooser.select(CTXT, spec, [spec.instance_uuid], alternates=True)
            outcomes.append("ok")
        except exceptions.NoValidHost:
            outcomes.append("none")

    threads = [threading.Thread(target=build) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (outcomes.count("ok"), outcomes.count("none")) == (20, 10)
    assert all(world.cloud.placement.used(uuid_of(f"h{n}"), "MEMORY_MB") == 512 * 5 for n in range(4))


def test_handlers(world):
    world.host("h1")
    handlers = Handlers(world.chooser, world.snapshot)
    spec = make.spec()
    arguments = {"spec_obj": spec, "instance_uuids": [spec.instance_uuid]}
    [[selection]] = handlers.select_destinations(CTXT, **arguments, return_objects=True, return_alternates=True)
    assert isinstance(selection, objects.Selection)
    other = make.spec()
    assert handlers.select_destinations(CTXT, spec_obj=other, instance_uuids=[other.instance_uuid]) == [
        {"host": "h1", "nodename": "h1", "limits": {}}
    ]
    with pytest.raises(exceptions.InvalidInput):
        handlers.select_destinations(CTXT, request_spec={}, filter_properties={})
    handlers.sync_instance_info(CTXT, host_name="h1", instance_uuids=["a"])
    handlers.delete_instance_info(CTXT, host_name="h1", instance_uuid="a")
    handlers.update_instance_info(
        CTXT, host_name="h1", instance_info=objects.InstanceList(objects=[objects.Instance(uuid=new_uuids(1)[0])])
    )
    aggregate = objects.Aggregate(id=1, uuid=new_uuids(1)[0], name="a", hosts=["h1"], metadata={"k": "v"})
    handlers.update_aggregates(CTXT, aggregates=[aggregate])
    assert world.snapshot.by_name("h1", None)[0].metadata_values("k") == {"v"}
    handlers.delete_aggregate(CTXT, aggregate=aggregate)
    assert world.snapshot.by_name("h1", None)[0].aggregates == ()


def test_claims_on_one_provider_take_turns(world, monkeypatch):
    """Two that meet in Placement are how it gives out more than there is."""
    world.host("h1", vcpu=4)
    inside, most, claim = [], [], Placement.claim

    def watched(placement, *args, **more):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        try:
            return claim(placement, *args, **more)
        finally:
            inside.pop()

    monkeypatch.setattr(Placement, "claim", watched)
    chooser = world.chooser
    specs = [make.spec() for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda spec: chooser.select(CTXT, spec, [spec.instance_uuid]), specs))
    assert len(found) == 4
    assert most == [1, 1, 1, 1]
