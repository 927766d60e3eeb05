"""Builds, one way each; every trouble at every stage is in test_every_trouble.py."""

from __future__ import annotations

import time
import types
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.unit.conductor.stage import CELL1_UUID, PROJECT, SEAL, Stage
from tests.unit.db.losses import lose_next_commit

from kilonova.base import clock
from kilonova.conductor.building import elsewhere, placing, resources
from kilonova.conductor.failures import describe
from kilonova.conductor.ops import build
from kilonova.conductor.service import FLOWS
from kilonova.contract import exceptions, objects
from kilonova.db import flows
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.flow_tables import KN_FLOW
from kilonova.db.objects import action, bdm, tag
from kilonova.flow import offers
from kilonova.flow.engine import Engine
from kilonova.flow.run import Lease
from kilonova.flow.store import LIVE, NewFlow
from kilonova.flow.testkit import Killed


def turn(stage: Stage) -> int:
    """Every live flow once, as if all waits were over; returns how many there were."""
    engine = Engine(FLOWS, stage.world, SEAL, "me", describe_failure=describe, rng=lambda: 0.0)
    rows = []
    for store in (stage.api_store, stage.cell_store):
        with store.database.read() as tx:
            rows += [(store, row) for row in flows.by_state(tx, LIVE)]
    for store, row in rows:
        taken = store.take(row.id, "me", 60_000)
        assert taken is not None
        engine.run(Lease(store, taken, clock.monotonic() + 60))
    return len(rows)


def run(stage: Stage, most: int = 60) -> None:
    """Flows and hosts in turns, until no flow is left."""
    for _ in range(most):
        if not turn(stage):
            return
        stage.compute.work()
        time.sleep(0.01)
    raise AssertionError("flows did not come to an end")


def begin(stage: Stage, new: NewFlow) -> str:
    assert stage.api_store.offer(new)
    return new.subject_id


def test_a_server_is_built(stage: Stage) -> None:
    server = begin(stage, stage.post())
    run(stage)
    built = stage.server(server)
    assert (built.vm_state, built.task_state, built.host) == ("active", None, "h1")
    assert built.availability_zone == "nova"
    assert stage.mapping(server)["cell_uuid"] == CELL1_UUID
    assert stage.api.query(build.build_requests.build_request_get, server) is None
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h1"]]
    with stage.cell.read() as tx:
        (swap,) = bdm.get_by_instance_uuid(tx, None, server).objects
        assert swap.volume_size == 0
        assert [each.tag for each in tag.read(tx, [server])[server]] == ["blue"]
        assert [each.action for each in action.get_by_instance_uuid(tx, None, server).objects] == ["create"]
    assert stage.compute.casts == [("build", "h1")]


def test_what_the_host_is_told(stage: Stage) -> None:
    begin(stage, stage.post())
    turn(stage)
    turn(stage)
    ((_, told),) = stage.compute.mail
    assert told["admin_password"] == "s3cret"
    assert told["filter_properties"]["retry"] == {"num_attempts": 1, "hosts": [["h1", "h1"]]}
    assert [each.service_host for each in told["host_list"]] == ["h2"]
    assert told["node"] == "h1"
    assert told["instance"].flavor.memory_mb == 192
    assert told["ctxt"].auth_token == "token"
    assert told["request_spec"].instance_uuid == told["instance"].uuid


def test_several_servers_are_chosen_for_in_one_step(stage: Stage) -> None:
    new = stage.post(3)
    begin(stage, new)
    run(stage)
    assert stage.scheduler.calls == 1
    servers = [spec["nova_object.data"]["instance_uuid"] for spec in new.frame["request_specs"]]
    assert {stage.server(each).vm_state for each in servers} == {"active"}


def test_no_host_buries_the_server_with_its_explanation(stage: Stage) -> None:
    stage.hosts.clear()
    server = begin(stage, stage.post())
    run(stage)
    buried = stage.buried(server)
    assert (buried.vm_state, buried.task_state) == ("error", None)
    assert buried.fault.code == 500
    assert buried.fault.message == "No valid host was found. There are not enough hosts available."
    assert [each.tag for each in buried.tags.objects] == ["blue"]
    assert stage.mapping(server)["cell_uuid"] == stage.cells.cell0.uuid
    with stage.cell0.read() as tx:
        (create,) = action.get_by_instance_uuid(tx, None, server).objects
        (event,) = action.events_get_by_action(tx, None, create.id).objects
        assert (create.action, create.message) == ("create", "Error")
        assert (event.event, event.result) == ("conductor_schedule_and_build_instances", "Error")
        assert "No valid host" in event.details


def test_an_answer_of_the_scheduler_that_is_lost_leaves_no_claim(stage: Stage) -> None:
    stage.scheduler.lose = 2
    server = begin(stage, stage.post())
    run(stage)
    assert stage.server(server).vm_state == "active"
    assert stage.scheduler.calls == 3
    assert len(stage.leftovers(server)["allocations"]) == 1


def test_a_lost_cast_is_sent_again(stage: Stage) -> None:
    stage.compute.drop = 1
    server = begin(stage, stage.post())
    run(stage)
    assert stage.server(server).vm_state == "active"
    assert stage.compute.casts == [("build", "h1"), ("build", "h1")]


def test_a_host_that_fails_for_good_leaves_error(stage: Stage) -> None:
    stage.compute.broken.add("h1")
    server = begin(stage, stage.post())
    run(stage)
    assert stage.server(server).vm_state == "error"
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_a_host_that_vanished_before_it_took_the_server_is_replaced_by_an_alternate(stage: Stage) -> None:
    stage.silence("h1")
    server = begin(stage, stage.post())
    run(stage, 200)
    built = stage.server(server)
    assert (built.vm_state, built.host) == ("active", "h2")
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h2"]]


def test_no_alternate_is_left(stage: Stage) -> None:
    stage.silence("h1")
    stage.silence("h2")
    server = begin(stage, stage.post())
    run(stage, 400)
    failed = stage.server(server)
    assert failed.vm_state == "error"
    assert "Exhausted all hosts" in failed.fault.message
    assert "Last exception: host h2" in failed.fault.message
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_a_host_that_dies_while_it_builds_leaves_error_with_a_fault_and_nothing_else(
    stage: Stage, forward: Callable[[float], None]
) -> None:
    server = begin(stage, stage.post())
    turn(stage)
    turn(stage)
    taken = stage.server(server)
    taken.host, taken.node, taken.compute_id, taken.task_state = "h1", "h1", 1, "spawning"
    stage.save(taken)
    stage.clients.neutron.allocate(stage.ctxt(), taken, None, None, "h1")
    assert stage.leftovers(server)["ports"]
    stage.silence("h1")
    turn(stage)
    assert stage.server(server).vm_state == "building"
    forward(61)
    run(stage)
    dead = stage.server(server)
    assert (dead.vm_state, dead.task_state) == ("error", None)
    assert "h1 stopped reporting" in dead.fault.message
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_a_build_that_takes_too_long_is_given_up(stage: Stage, forward: Callable[[float], None]) -> None:
    stage.conf.set_override("build_deadline", 30.0, group="kilonova")
    server = begin(stage, stage.post())
    turn(stage)
    turn(stage)
    stage.compute.mail.clear()
    forward(31)
    run(stage)
    assert stage.server(server).vm_state == "error"
    assert "did not come to an end in time" in stage.server(server).fault.message
    assert stage.leftovers(server)["allocations"] == {}


def test_deleted_before_a_host_was_chosen(stage: Stage) -> None:
    server = begin(stage, stage.post())
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.buried(server) is None
    assert stage.mapping(server) is None
    assert stage.leftovers(server)["allocations"] == {}


def test_deleted_while_a_host_was_chosen(stage: Stage) -> None:
    server = begin(stage, stage.post())
    turn(stage)
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.mapping(server) is None
    assert stage.leftovers(server)["allocations"] == {}


def test_deleted_after_the_cast(stage: Stage) -> None:
    server = begin(stage, stage.post())
    turn(stage)
    turn(stage)
    stage.user_deletes(server)
    run(stage)
    assert stage.server(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_a_host_that_comes_back_before_the_alternate_keeps_the_server_and_its_claim(stage: Stage) -> None:
    stage.silence("h1")
    server = begin(stage, stage.post())
    while len(stage.compute.casts) < 2:
        turn(stage)
        time.sleep(0.02)
    assert stage.compute.casts == [("build", "h1"), ("build", "h2")]
    stage.compute.down.clear()
    run(stage)
    assert stage.server(server).host == "h1"
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h1"]]


def test_volumes_of_a_server_without_a_host_are_free_again(stage: Stage) -> None:
    stage.hosts.clear()
    volume = stage.cloud.cinder.volume()
    attachment = stage.clients.cinder.attachment_create(stage.ctxt(), volume, "server")
    device = objects.BlockDeviceMapping(
        source_type="volume", destination_type="volume", volume_id=volume, boot_index=0, attachment_id=attachment["id"]
    )
    server = begin(stage, stage.post(block_device_mapping=objects.BlockDeviceMappingList(objects=[device])))
    run(stage)
    assert stage.buried(server).vm_state == "error"
    assert stage.cloud.cinder.attachments == {}


@pytest.mark.parametrize("what", ["builds it", "fails to build it", "is too late: its user deleted it"])
def test_a_host_comes_back_while_the_next_one_is_claimed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The claim on the other host was made already; it follows the server, or goes with it."""
    stage.silence("h1")
    placement = stage.world.clients.placement
    claim = placement.claim

    def slow(ctxt: Any, uuid: str, *wanted: Any) -> bool:
        stage.compute.down.clear()
        if "deleted" in what:
            stage.cell.run(elsewhere.records.erase, ctxt, uuid)
        stage.compute.work()
        return claim(ctxt, uuid, *wanted)

    if "fails" in what:
        stage.compute.broken.add("h1")

    monkeypatch.setattr(placement, "claim", slow)
    server = begin(stage, stage.post())
    run(stage, 200)
    built = stage.server(server)
    held = list(stage.leftovers(server)["allocations"])
    if what == "builds it":
        assert (built.vm_state, built.host, held) == ("active", "h1", [stage.providers["h1"]])
    else:
        assert built is None or (built.vm_state, built.host) == ("error", None)
        assert held == []


def test_an_attachment_made_anew_is_on_record_although_its_transaction_was_lost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = begin(stage, stage.post())
    run(stage)
    device = objects.BlockDeviceMapping(
        instance_uuid=server,
        source_type="volume",
        destination_type="volume",
        volume_id=stage.cloud.cinder.volume(),
        boot_index=0,
        attachment_id="11111111-2222-4333-8444-555555555555",
    )
    stage.cell.run(bdm.create, stage.ctxt(), device)
    place = stage.world.place(CELL1_UUID)
    lose_next_commit(place.database, monkeypatch)
    under_way: Any = types.SimpleNamespace(
        world=stage.world,
        subject_id=server,
        frame={"context": offers.context_part(stage.ctxt())},
        secrets={},
        guard=lambda: None,
    )
    elsewhere._reattach(under_way, place, device)
    kept = stage.cell.query(bdm.get_by_volume, stage.ctxt(), device.volume_id)
    assert list(stage.cloud.cinder.attachments) == [kept.attachment_id]


def test_a_conductor_that_just_began_does_not_believe_that_hosts_are_down(stage: Stage) -> None:
    stage.silence("h1")
    stage.world.began = clock.monotonic()
    server = begin(stage, stage.post())
    for _ in range(20):
        turn(stage)
        time.sleep(0.02)
    assert stage.compute.casts == [("build", "h1")]
    stage.world.began -= 3600
    run(stage, 200)
    assert stage.server(server).host == "h2"


def test_requests_that_raced_past_the_quota_are_taken_back(stage: Stage) -> None:
    def recheck(ctxt: object, spec: object, uuids: object) -> None:
        raise exceptions.TooManyInstances(overs="instances", req="1", used="10", allowed="10")

    stage.world.recheck = recheck
    server = begin(stage, stage.post())
    run(stage)
    assert "Quota exceeded" in stage.buried(server).fault.message
    assert stage.leftovers(server)["allocations"] == {}
    stage.conf.set_override("recheck_quota", False, group="quota")
    other = begin(stage, stage.post())
    run(stage)
    assert stage.server(other).vm_state == "active"


def test_a_server_that_a_peers_conductor_built_is_left_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took our API's cast and left no word; our conductor looks for the flow later."""
    released: list[Any] = []
    monkeypatch.setattr(resources, "release_attachments", lambda *args: released.append(args))
    server = begin(stage, stage.post())
    with stage.api.write() as tx:
        build_requests.build_request_delete(tx, server)
        instance_mappings.instance_mapping_set_cell(tx, server, CELL1_UUID)
    run(stage)
    assert released == []
    assert stage.world.scheduler.calls == 0
    assert stage.mapping(server)["cell_uuid"] == CELL1_UUID


def move_claim(stage: Stage, server: str, host: str) -> None:
    """Somebody who was believed dead claims late."""
    held = stage.cloud.placement.held(server)
    stage.clients.placement.allocations_delete(stage.ctxt(), server, force=True)
    wanted = {"allocations": {stage.providers[host]: {"resources": next(iter(held.values()))}}}
    assert stage.clients.placement.claim(stage.ctxt(), server, wanted, PROJECT, "user")


def test_the_claim_is_on_the_host_that_is_asked(stage: Stage) -> None:
    server = begin(stage, stage.post())
    turn(stage)
    move_claim(stage, server, "h2")
    run(stage)
    assert stage.server(server).host == "h1"
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h1"]]


@pytest.mark.parametrize("claim", ["is gone", "is elsewhere, and there is no room"])
def test_another_host_is_asked_where_the_claim(stage: Stage, claim: str) -> None:
    server = begin(stage, stage.post())
    turn(stage)
    if claim == "is gone":
        stage.clients.placement.allocations_delete(stage.ctxt(), server, force=True)
    else:
        move_claim(stage, server, "h2")
        for inventory in stage.cloud.placement.providers[stage.providers["h1"]].inventories.values():
            inventory["total"] = inventory["reserved"] = 1
    run(stage, 200)
    assert stage.compute.casts == [("build", "h2")]
    assert stage.server(server).host == "h2"
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h2"]]


def test_a_host_that_gave_the_server_back_is_not_asked_again_by_the_next_worker(stage: Stage) -> None:
    """The worker that asked it died before it could write so, and the word of the host was lost."""
    stage.compute.refusing.add("h1")
    server = begin(stage, stage.post())
    turn(stage)

    def die(ctxt: Any, **kwargs: Any) -> None:
        build_and_run(ctxt, **kwargs)
        raise Killed

    build_and_run = stage.compute.build_and_run_instance
    stage.compute.build_and_run_instance = die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        turn(stage)
    del stage.compute.build_and_run_instance
    with stage.api.write() as tx:
        tx.execute(KN_FLOW.update().values(lease_until=0))
    stage.compute.work()
    stage.compute.given_back.clear()
    run(stage, 200)
    assert stage.compute.casts == [("build", "h1"), ("build", "h2")]
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h2"]]


def test_a_claim_that_comes_while_the_host_builds_follows_it_in_the_end(stage: Stage) -> None:
    stage.scheduler.lose = 1
    server = begin(stage, stage.post())
    turn(stage)
    turn(stage)
    while not stage.compute.casts:
        turn(stage)
    move_claim(stage, server, "h2")
    run(stage)
    assert stage.server(server).host == "h1"
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h1"]]


def test_a_batch_leaves_alone_what_another_one_builds(stage: Stage) -> None:
    """As when an operator, or the repair, put a second one down."""
    new = stage.post()
    server = begin(stage, new)
    turn(stage)
    second = msgspec.structs.replace(new, id=str(uuid.uuid4()), frame=dict(new.frame))
    buried = offers.burial_offer(stage.ctxt(), instance_uuid=server, project_id=PROJECT, reason="nobody took it")
    for again in (second, buried):
        assert stage.api_store.offer(again)
        (row,) = stage.api_store.active(server, offers.BUILD_BATCH)
        engine = Engine(FLOWS, stage.world, SEAL, "me", describe_failure=describe, rng=lambda: 0.0)
        engine.run(Lease(stage.api_store, stage.api_store.take(row.id, "me", 60_000), clock.monotonic() + 60))
        assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h1"]]
    assert stage.scheduler.calls == 1
    run(stage)
    assert stage.server(server).vm_state == "active"
    assert stage.buried(server) is None


def test_d6_a_cast_for_one_of_several_servers_that_are_being_built_puts_nothing_down(stage: Stage) -> None:
    """Nor when no batch is on record under that server: flows tell it themselves."""
    new = stage.post(2)
    begin(stage, new)
    turn(stage)
    specs = list(new.frame["request_specs"])
    second = specs[1]["nova_object.data"]["instance_uuid"]
    late = msgspec.structs.replace(
        new, id=str(uuid.uuid4()), subject_id=second, frame={**new.frame, "request_specs": specs[::-1]}
    )
    assert not stage.api_store.offer(late, build.was_taken)
    assert stage.api_store.active(second, offers.BUILD_BATCH) == []


def test_the_reason_of_a_peers_host_is_told_without_its_paths() -> None:
    retry = {"num_attempts": 3, "hosts": [["h", "h"]], "exc_reason": "Could not open '/var/lib/nova/x': busy"}
    with pytest.raises(exceptions.MaxRetriesExceeded, match=r"Last exception: Could not open '\(.*\)': busy"):
        placing.count_try({"retry": retry}, "uuid", 3)
