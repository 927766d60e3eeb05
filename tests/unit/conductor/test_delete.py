"""Deletions: by the host, without it, and racing with a build at every stage."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from tests.unit.conductor.stage import PROJECT, SEAL, Stage
from tests.unit.conductor.test_build import FLOWS, begin, run, turn

from kilonova.base import clock
from kilonova.conductor import records
from kilonova.conductor.failures import describe
from kilonova.conductor.ops import build
from kilonova.contract import objects
from kilonova.db import flows
from kilonova.db.api import instance_mappings
from kilonova.db.cell.migrations import migration_uuids_waiting
from kilonova.db.objects import migration as migrations
from kilonova.flow import offers
from kilonova.flow.engine import Engine
from kilonova.flow.run import Lease, Run


def built(stage: Stage) -> str:
    server = begin(stage, stage.post())
    run(stage)
    assert stage.server(server).vm_state == "active"
    stage.compute.casts.clear()
    return server


def test_the_host_deletes(stage: Stage) -> None:
    server = built(stage)
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.compute.casts == [("terminate", "h1")]
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def mapped_as_deleted(stage: Stage, server: str) -> bool:
    return bool(stage.api.query(instance_mappings.instance_mapping_get, server)["queued_for_delete"])


@pytest.mark.parametrize("host_is_there", [True, False])
def test_an_api_that_died_before_it_changed_the_mapping_leaves_nobody_who_counts(
    stage: Stage, host_is_there: bool
) -> None:
    """It records the deletion in the cell first; groups and their quotas count by the mapping."""
    server = built(stage)
    if not host_is_there:
        stage.silence("h1")
    stage.user_deletes(server)
    assert not mapped_as_deleted(stage, server)
    run(stage)
    assert stage.server(server) is None
    assert mapped_as_deleted(stage, server)


def test_a_server_that_could_not_be_deleted_counts_again(stage: Stage) -> None:
    server = built(stage)
    stage.user_deletes(server)
    stage.api.run(instance_mappings.instance_mapping_update, server, {"queued_for_delete": True})
    left = stage.server(server)
    left.vm_state, left.task_state = "error", None
    stage.save(left)
    run(stage)
    assert stage.server(server) is not None
    assert not mapped_as_deleted(stage, server)


def test_a_lost_cast_is_sent_again(stage: Stage) -> None:
    server = built(stage)
    stage.compute.drop = 1
    stage.user_deletes(server)
    run(stage, 100)
    assert stage.server(server) is None
    assert stage.compute.casts == [("terminate", "h1")] * 2


def test_a_host_that_is_down_is_not_waited_for(stage: Stage) -> None:
    server = built(stage)
    stage.silence("h1")
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.compute.casts == []
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_a_host_that_was_asked_and_then_went_down_has_its_time(stage: Stage, forward: Callable[[float], None]) -> None:
    server = built(stage)
    stage.compute.drop = 1
    stage.user_deletes(server)
    stage.cell.run(_beat, "h1")
    turn(stage)
    assert stage.compute.casts == [("terminate", "h1")]
    stage.silence("h1")
    turn(stage)
    assert stage.server(server) is not None
    forward(61)
    run(stage)
    assert stage.server(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def _beat(tx: object, host: str) -> None:
    from kilonova.db.heartbeat import service_beat

    service_beat(tx, host, "nova-compute")


@pytest.mark.parametrize("up", [True, False])
def test_what_a_resize_held_that_waited_for_its_word_goes_too(stage: Stage, up: bool) -> None:
    server = built(stage)
    move = objects.Migration(instance_uuid=server, migration_type="resize", status="finished", source_compute="h2")
    stage.cell.run(migrations.create, stage.ctxt(), move)
    wanted = {"allocations": {stage.providers["h2"]: {"resources": {"VCPU": 1}}}}
    assert stage.clients.placement.claim(stage.ctxt(), move.uuid, wanted, PROJECT, "user")
    assert stage.cell.query(migration_uuids_waiting, server) == [move.uuid]
    if not up:
        stage.silence("h1")
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.cloud.placement.held(move.uuid) == {}
    assert stage.cell.query(migration_uuids_waiting, server) == []


@pytest.mark.parametrize("there", [True, False])
def test_the_image_of_a_shelved_server_goes_with_it(stage: Stage, there: bool) -> None:
    server, image = built(stage), stage.cloud.glance.image(project=PROJECT)
    found = stage.server(server)
    found.vm_state, found.host, found.node, found.compute_id = "shelved_offloaded", None, None, None
    found.system_metadata = {"shelved_image_id": image if there else str(uuid.uuid4())}
    stage.save(found)
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert (image in stage.cloud.glance.images) is not there


def test_ports_that_the_user_brought_stay(stage: Stage) -> None:
    server = built(stage)
    (port,) = stage.cloud.neutron.ports_of(server)
    port["created_at"] = "2020-01-01T00:00:00Z"
    stage.silence("h1")
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.cloud.neutron.ports[port["id"]]["device_id"] == ""


def test_a_host_that_cannot_delete_leaves_error(stage: Stage) -> None:
    server = built(stage)
    stage.user_deletes(server)
    turn(stage)
    stage.compute.mail.clear()
    failed = stage.server(server)
    failed.vm_state, failed.task_state = "error", None
    stage.save(failed)
    run(stage)
    assert stage.server(server).vm_state == "error"
    assert [row.state for row in stage.cell.query(flows.history, server)] == ["unwound"], "that is no success"
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None


def says_deleted(stage: Stage, server: str) -> None:
    """What a host does of a deletion before it removes the record; it holds the claim of a peer's host to the end."""
    gone = stage.server(server)
    stage.compute.mail.clear()
    stage.clients.neutron.deallocate(stage.ctxt().elevated(), gone)
    gone.vm_state, gone.task_state = "deleted", None
    stage.save(gone)


@pytest.mark.parametrize("comes_back", [True, False])
def test_d7_a_host_that_dies_before_it_removes_the_record(
    stage: Stage, comes_back: bool, forward: Callable[[float], None]
) -> None:
    server = built(stage)
    stage.user_deletes(server)
    turn(stage)
    says_deleted(stage, server)
    if not comes_back:
        stage.silence("h1")
    turn(stage)
    assert stage.server(server) is not None, "the host has its time"
    assert stage.cell_store.active(server), "and somebody looks after it"
    forward(61)
    if comes_back:
        stage.cell.run(_beat, "h1")
    run(stage)
    assert stage.server(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}
    assert [row.state for row in stage.cell.query(flows.history, server)] == ["done"]


def test_d7_a_host_of_a_peers_that_dies_before_it_ends_its_claim(stage: Stage) -> None:
    server = built(stage)
    launched = stage.server(server)
    launched.launched_at = clock.now()
    stage.save(launched)
    stage.user_deletes(server)
    turn(stage)
    says_deleted(stage, server)
    stage.cell.run(records.erase, stage.ctxt(), server)
    run(stage)
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_neutron_is_away_for_a_while(stage: Stage) -> None:
    server = built(stage)
    stage.silence("h1")
    stage.cloud.neutron.fail("GET", "/v2.0/ports", status=503, times=12)
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


@pytest.mark.parametrize("host_is_quick", [True, False])
@pytest.mark.parametrize("moment", range(9))
def test_deleted_at_every_moment_of_a_build(stage: Stage, moment: int, host_is_quick: bool) -> None:
    """B130: whatever the moment, the server ends deleted and nothing of it is left."""
    new = stage.post()
    server = begin(stage, new)
    passed = 0

    def between(run: Run) -> None:
        nonlocal passed
        if host_is_quick:
            stage.compute.work()
        if passed == moment:
            stage.user_deletes(server)
        passed += 1

    engine = Engine(FLOWS, stage.world, SEAL, "me", describe_failure=describe, rng=lambda: 0.0, between=between)
    for op in (offers.BUILD_BATCH, offers.BUILD):
        for row in stage.api_store.active(server, op):
            taken = stage.api_store.take(row.id, "me", 60_000)
            engine.run(Lease(stage.api_store, taken, clock.monotonic() + 60))
    if passed <= moment:
        stage.user_deletes(server)
    run(stage, 100)
    assert stage.server(server) is None
    assert stage.buried(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}
    assert stage.api.query(build.build_requests.build_request_get, server) is None


def test_two_deletions_make_one_flow(stage: Stage) -> None:
    server = built(stage)
    stage.user_deletes(server)
    with stage.cell.write() as tx:
        again = offers.delete_offer(SEAL, stage.ctxt(), instance_uuid=server, cast=False, grace=0.0)
        assert not flows.offer(tx, again)
    run(stage)
    assert stage.server(server) is None


def test_a_record_without_host_that_a_host_takes_meanwhile_is_not_erased(stage: Stage) -> None:
    server = built(stage)
    from kilonova.conductor.ops import delete

    assert not stage.cell.run(delete._erase_as_seen, stage.ctxt(), server, None)
    assert stage.server(server) is not None
    assert stage.cell.run(delete._erase_as_seen, stage.ctxt(), server, "h1")
    assert stage.cell.query(records.look, server) is None
