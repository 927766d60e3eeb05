"""Claims, generations and candidates against a Placement with memory."""

from __future__ import annotations

import pytest
from tests import fakes

from kilonova.clients.http import ServiceError, ServiceUnavailable
from kilonova.clients.placement import client as placement_client
from kilonova.contract import context

CTXT = context.RequestContext(user_id="user", project_id="project", auth_token="t")
QUERY = [("resources", "VCPU:1,MEMORY_MB:512"), ("limit", "1000")]


@pytest.fixture
def cloud() -> fakes.Cloud:
    return fakes.Cloud()


@pytest.fixture
def placement(cloud):
    return cloud.clients.placement


def candidate(placement):
    requests, _ = placement.allocation_candidates(CTXT, QUERY)
    return requests[0]


def test_candidates_and_claim(cloud, placement):
    host = cloud.placement.host("h1")
    requests, summaries = placement.allocation_candidates(CTXT, QUERY)
    assert requests[0]["allocations"] == {host: {"resources": {"VCPU": 1, "MEMORY_MB": 512}}}
    assert summaries[host]["root_provider_uuid"] == host
    assert placement.claim(CTXT, "c1", requests[0], "p", "u") is True
    assert cloud.placement.held("c1") == {host: {"VCPU": 1, "MEMORY_MB": 512}}
    assert placement.usages(CTXT, "p") == {"VCPU": 1, "MEMORY_MB": 512}


def test_service_credentials_are_used_even_for_a_user(cloud, placement):
    placement.allocation_candidates(CTXT, QUERY)
    assert cloud.placement.requests[-1].admin is True
    assert cloud.placement.requests[-1].microversion == "1.36"


def test_no_room_is_false_not_an_error(cloud, placement):
    cloud.placement.host("h1", memory_mb=1000)
    wanted = candidate(placement)
    assert placement.claim(CTXT, "c1", wanted, "p", "u") is True
    assert placement.claim(CTXT, "c2", wanted, "p", "u") is False
    assert cloud.placement.held("c2") == {}


def test_repeating_a_claim_is_harmless(cloud, placement):
    cloud.placement.host("h1")
    wanted = candidate(placement)
    assert placement.claim(CTXT, "c1", wanted, "p", "u") is True
    assert placement.claim(CTXT, "c1", wanted, "p", "u") is True
    assert len(cloud.placement.consumers) == 1


def test_claim_whose_answer_was_lost(cloud, placement):
    cloud.placement.host("h1")
    cloud.placement.unreachable("PUT", "/allocations/", after=True)
    assert placement.claim(CTXT, "c1", candidate(placement), "p", "u") is True


def test_claim_of_a_consumer_that_holds_something_else(cloud, placement):
    cloud.placement.host("h1")
    other = cloud.placement.host("h2")
    wanted = candidate(placement)
    placement.allocations_put(CTXT, "c1", {other: {"resources": {"VCPU": 2}}}, "p", "u", None)
    with pytest.raises(placement_client.AllocationConflict):
        placement.claim(CTXT, "c1", wanted, "p", "u")


def test_provider_race_is_waited_out(cloud, placement):
    cloud.placement.host("h1")
    wanted = candidate(placement)
    race = {"errors": [{"code": "placement.concurrent_update", "detail": "resource provider generation conflict"}]}
    cloud.placement.fail("PUT", "/allocations/", status=409, body=race, times=3)
    assert placement.claim(CTXT, "c1", wanted, "p", "u") is True


def test_delete_respects_and_force_does_not(cloud, placement):
    host = cloud.placement.host("h1")
    placement.allocations_put(CTXT, "c1", {host: {"resources": {"VCPU": 1}}}, "p", "u", None)
    assert placement.allocations_delete(CTXT, "c1") is True
    assert placement.allocations_delete(CTXT, "c1") is False
    placement.allocations_put(CTXT, "c1", {host: {"resources": {"VCPU": 1}}}, "p", "u", None)
    assert placement.allocations_delete(CTXT, "c1", force=True) is True
    assert placement.allocations_delete(CTXT, "c1", force=True) is False
    assert cloud.placement.consumers == {}


def test_old_consumer_generation_is_a_conflict(cloud, placement):
    host = cloud.placement.host("h1")
    wanted = {host: {"resources": {"VCPU": 1}}}
    placement.allocations_put(CTXT, "c1", wanted, "p", "u", None)
    with pytest.raises(placement_client.AllocationConflict):
        placement.allocations_put(CTXT, "c1", wanted, "p", "u", 7)
    held = placement.allocations_get(CTXT, "c1")
    assert held.resources() == {host: {"VCPU": 1}}
    assert placement.allocations_put(CTXT, "c1", {host: {"resources": {"VCPU": 3}}}, "p", "u", held.generation)


def test_move_is_one_transaction(cloud, placement):
    a, b = cloud.placement.host("a"), cloud.placement.host("b", vcpu=0)
    placement.allocations_put(CTXT, "c1", {a: {"resources": {"VCPU": 1}}}, "p", "u", None)
    generation = placement.allocations_get(CTXT, "c1").generation
    body = placement_client.allocation_body
    moved = {
        "m1": body({a: {"resources": {"VCPU": 1}}}, "p", "u", None),
        "c1": body({b: {"resources": {"VCPU": 1}}}, "p", "u", generation),
    }
    assert placement.allocations_move(CTXT, moved) is False
    assert cloud.placement.held("c1") == {a: {"VCPU": 1}}
    assert cloud.placement.held("m1") == {}


def test_provider_life(cloud, placement):
    made = placement.provider_ensure(CTXT, "u1", "h1")
    assert placement.provider_ensure(CTXT, "u1", "h1") == made
    generation = placement.inventory_set(CTXT, "u1", {"VCPU": {"total": 4}}, made.generation)
    generation = placement.traits_set(CTXT, "u1", ["CUSTOM_NEW", "HW_CPU_X86_AVX"], generation)
    generation = placement.aggregates_set(CTXT, "u1", ["agg"], generation)
    assert placement.traits_get(CTXT, "u1") == ({"CUSTOM_NEW", "HW_CPU_X86_AVX"}, generation)
    assert placement.aggregates_get(CTXT, "u1") == ({"agg"}, generation)
    assert placement.provider_by_name(CTXT, "h1").uuid == "u1"
    with pytest.raises(placement_client.GenerationConflict):
        placement.inventory_set(CTXT, "u1", {}, 0)
    with pytest.raises(placement_client.GenerationConflict):
        placement.traits_set(CTXT, "u1", ["COMPUTE_NODE"], 0)
    with pytest.raises(placement_client.GenerationConflict):
        placement.aggregates_set(CTXT, "u1", ["agg"], 0)
    placement.allocations_put(CTXT, "c1", {"u1": {"resources": {"VCPU": 1}}}, "p", "u", None)
    generation = placement.provider_get(CTXT, "u1").generation
    with pytest.raises(placement_client.InventoryInUse):
        placement.inventory_set(CTXT, "u1", {}, generation)
    assert placement.allocations_by_provider(CTXT, "u1") == {"c1": {"VCPU": 1}}
    placement.allocations_delete(CTXT, "c1")
    assert placement.provider_delete(CTXT, "u1") is True
    assert placement.provider_delete(CTXT, "u1") is False
    with pytest.raises(placement_client.ProviderMissing):
        placement.inventory_get(CTXT, "u1")


def test_another_host_of_the_same_name_is_an_error(cloud, placement):
    placement.provider_ensure(CTXT, "u1", "h1")
    with pytest.raises(ServiceError, match="h1"):
        placement.provider_ensure(CTXT, "u2", "h1")


def test_busy_service_is_asked_again_then_given_up(cloud, placement):
    cloud.placement.host("h1")
    cloud.placement.fail("GET", "/allocation_candidates", status=503, times=2)
    assert candidate(placement)
    cloud.placement.fail("GET", "/allocation_candidates", status=503, times=99)
    with pytest.raises(ServiceUnavailable):
        candidate(placement)


def test_post_is_not_repeated_once_it_was_sent(cloud, placement):
    cloud.placement.unreachable("POST", "/resource_providers", after=True, times=5)
    with pytest.raises(ServiceUnavailable):
        placement.provider_ensure(CTXT, "u1", "h1")
    assert cloud.placement.calls.count(("POST", "/resource_providers")) == 1


def test_granular_groups_and_isolation(cloud, placement):
    root = cloud.placement.host("h1")
    for n in (1, 2):
        placement.provider_ensure(CTXT, f"child{n}", f"h1_gpu{n}", parent=root)
        placement.inventory_set(CTXT, f"child{n}", {"VGPU": {"total": 2}}, 0)
    query = [("resources", "VCPU:1"), ("resources_A", "VGPU:1"), ("resources_B", "VGPU:1"), ("group_policy", "isolate")]
    requests, _ = placement.allocation_candidates(CTXT, query)
    assert len(requests) == 2
    assert all(each["mappings"]["_A"] != each["mappings"]["_B"] for each in requests)
