"""The scheduler against a real Placement: queries it accepts, claims, races, groups of resources.

That of the cloud of profile full. Hosts are providers of their own, removed at the end.
"""

from __future__ import annotations

import concurrent.futures
import uuid
from collections.abc import Iterator

import pytest
from tests.real import test_clients
from tests.unit.scheduler import make

from kilonova import conf as options
from kilonova.clients.bundle import Clients
from kilonova.contract import context, exceptions, objects
from kilonova.scheduler import candidates, plugins
from kilonova.scheduler.destinations import Chooser
from kilonova.scheduler.snapshot.cache import Snapshot

pytestmark = test_clients.pytestmark
services = test_clients.clients


class World:
    def __init__(self, clients: Clients, hosts: int) -> None:
        self.clients = clients
        self.admin = context.admin()
        self.trait = f"CUSTOM_REAL_{uuid.uuid4().hex[:8].upper()}"
        self.source = make.FakeSource()
        self.names = [f"{self.trait.lower()}-{n}" for n in range(hosts)]
        self.providers: list[str] = []
        for name in self.names:
            self._host(name)
        conf = options.load([])
        self.chooser = Chooser(
            conf, None, clients, Snapshot(self.source, spacing=60.0), plugins.filters(conf), plugins.weighers(conf)
        )

    def _host(self, name: str) -> None:
        placement, provider = self.clients.placement, make.node_row(name)["uuid"]
        made = placement.provider_ensure(self.admin, provider, name)
        inventory = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 512 * 5}, "DISK_GB": {"total": 100}}
        generation = placement.inventory_set(self.admin, provider, inventory, made.generation)
        placement.traits_set(self.admin, provider, [self.trait, "OWNER_NOVA"], generation)
        self.source.put(name)
        self.providers.append(provider)

    def spec(self, **more) -> objects.RequestSpec:
        specs = {f"trait:{self.trait}": "required"} | more.pop("specs", {})
        return make.spec(specs=specs, **more)

    def select(self, spec, uuids=None, alternates=True):
        return self.chooser.select(self.admin, spec, uuids or [spec.instance_uuid], alternates=alternates)

    def held(self) -> dict[str, str]:
        """{server: host's provider}"""
        placement = self.clients.placement
        return {
            server: provider
            for provider in self.providers
            for server in placement.allocations_by_provider(self.admin, provider)
        }

    def remove(self) -> None:
        for server in self.held():
            self.clients.placement.allocations_delete(self.admin, server, force=True)
        for provider in self.providers:
            self.clients.placement.provider_delete(self.admin, provider)


@pytest.fixture
def world(services) -> Iterator[World]:
    made = World(services, 3)
    yield made
    made.remove()


def test_a_server_with_alternates(world):
    spec = world.spec()
    [found] = world.select(spec)
    assert sorted(each.service_host for each in found) == sorted(world.names)
    assert world.held() == {spec.instance_uuid: found[0].compute_node_uuid}


def test_fifteen_fit_and_the_rest_is_told_so(world):
    def build(_):
        spec = world.spec()
        try:
            world.select(spec)
        except exceptions.NoValidHost:
            return "none"
        return "ok"

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(build, range(20)))
    assert (outcomes.count("ok"), outcomes.count("none")) == (15, 5)
    assert len(world.held()) == 15


def test_all_or_nothing(world):
    with pytest.raises(exceptions.NoValidHost):
        world.select(world.spec(), [str(uuid.uuid4()) for _ in range(16)])
    assert world.held() == {}


def test_a_named_host(world):
    [[found]] = world.select(world.spec(force_hosts=[world.names[1]]))
    assert found.service_host == world.names[1]


@pytest.mark.parametrize(
    "fields",
    [
        {"specs": {"resources:VCPU": "0", "resources:PCPU": "1"}},
        {"specs": {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"}},
        {"specs": {"resources_NIC:SRIOV_NET_VF": "1", "trait_NIC:HW_NIC_SRIOV": "required"}},
        {"specs": {"trait:HW_CPU_X86_AVX": "forbidden", "os:secure_boot": "required", "hw:mem_encryption": "true"}},
        {"props": {"traits_required": ["HW_CPU_X86_VMX"], "hw_tpm_version": "2.0"}},
        {"requested_destination": objects.Destination(aggregates=[f"{uuid.uuid4()},{uuid.uuid4()}"],
                                                      forbidden_aggregates={str(uuid.uuid4())})},
        {"requested_resources": [
            objects.RequestGroup(requester_id="p1", resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1}),
            objects.RequestGroup(requester_id="p2", resources={"NET_PACKET_RATE_KILOPACKET_PER_SEC": 1}),
        ], "request_level_params": objects.RequestLevelParams(
            root_required={"HW_CPU_X86_AVX"}, root_forbidden={"COMPUTE_STATUS_DISABLED"}, same_subtree=[["p1", "p2"]])},
    ],
)  # fmt: skip
def test_queries_are_understood(world, fields):
    spec = world.spec(**fields)
    with pytest.raises(exceptions.NoValidHost, match="no host offers"):
        world.select(spec)
    assert candidates.from_request(spec, 10).params()
