"""A build that a conductor of Nova's may have is left alone while anything moves; what it built is never harmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.conductor.stage import CELL1_UUID, PROJECT, SEAL, Stage

from kilonova.base import clock
from kilonova.conductor.building import yielding
from kilonova.conductor.failures import describe
from kilonova.conductor.service import FLOWS
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.flow_tables import KN_FLOW
from kilonova.flow.engine import Engine
from kilonova.flow.run import Lease
from kilonova.flow.store import NewFlow, Scope, State


class Near:
    """What the conductor believes of its peers."""

    def __init__(self) -> None:
        self.answer = True

    def near(self, since: float) -> bool:
        return self.answer


@pytest.fixture
def peers(stage: Stage) -> Near:
    made = stage.world.peers = Near()  # type: ignore[assignment]
    return made


def look(stage: Stage, new: NewFlow) -> Any:
    """A conductor finds the flow due, and drives it as far as it goes; the row."""
    with stage.api.write() as tx:
        tx.execute(KN_FLOW.update().where(KN_FLOW.c.id == new.id, KN_FLOW.c.wake_at > 0).values(wake_at=1))
    engine = Engine(FLOWS, stage.world, SEAL, "me", describe_failure=describe, rng=lambda: 0.0)
    for row in stage.api_store.take_due("me", 60_000, 1, [Scope("build_batch")]):
        engine.run(Lease(stage.api_store, row, clock.monotonic() + 60))
    return stage.api_store.get(new.id)


def offered(stage: Stage, count: int = 1) -> tuple[NewFlow, list[str]]:
    new = stage.post(count, cast=True)
    assert stage.api_store.offer(new)
    return new, [spec["nova_object.data"]["instance_uuid"] for spec in new.frame["request_specs"]]


def claim(stage: Stage, server: str, host: str = "h1") -> None:
    """As a scheduler does for a peer's conductor."""
    resources = {"VCPU": 1, "MEMORY_MB": 192}
    wanted = {"allocations": {stage.providers[host]: {"resources": resources}}, "mappings": {}}
    assert stage.clients.placement.claim(stage.ctxt(), server, wanted, PROJECT, "user")


def settle(stage: Stage, server: str) -> None:
    """The peer's commit point."""
    with stage.api.write() as tx:
        instance_mappings.instance_mapping_set_cell(tx, server, CELL1_UUID)
        assert build_requests.build_request_delete(tx, server)


def test_it_is_left_alone_and_ends_when_the_peer_has_built_it(stage: Stage, peers: Near) -> None:
    new, (server,) = offered(stage)
    for _ in range(3):
        assert look(stage, new).state is State.OFFERED
    claim(stage, server)
    settle(stage, server)
    assert look(stage, new).state is State.DONE
    assert stage.scheduler.calls == 0
    assert stage.leftovers(server)["allocations"]
    assert stage.mapping(server) is not None


def test_it_goes_on_when_the_peers_are_gone(stage: Stage, peers: Near) -> None:
    new, (server,) = offered(stage)
    look(stage, new)
    claim(stage, server, "h2")
    peers.answer = False
    assert look(stage, new).state is State.DONE
    assert stage.scheduler.calls == 1
    assert list(stage.leftovers(server)["allocations"]) == [stage.providers["h1"]]


def test_every_progress_is_waited_for_and_a_standstill_not_for_ever(
    stage: Stage, peers: Near, forward: Callable[[float], None]
) -> None:
    new, servers = offered(stage, 3)
    seen = []

    def moves(act: Any, *args: Any) -> None:
        forward(yielding.PATIENCE + 1)
        act(stage, *args)
        row = look(stage, new)
        assert row.state is State.OFFERED
        seen.append(row.frame["left"]["seen"])

    look(stage, new)
    for server in servers:
        moves(claim, server)
    moves(settle, servers[0])
    assert seen == [[3, 1], [3, 2], [3, 3], [2, 2]]
    forward(yielding.PATIENCE + 1)
    assert look(stage, new).state is State.DONE
    assert stage.scheduler.calls == 1
    children = [row.subject_id for each in servers for row in stage.api_store.active(each, "build")]
    assert children == servers[1:]
    assert len(stage.leftovers(servers[0])["allocations"]) == 1


def test_a_placement_that_is_away_is_no_reason_to_give_up(stage: Stage, peers: Near) -> None:
    new, _ = offered(stage)
    stage.cloud.placement.fail("GET", "/allocations", times=20)
    assert look(stage, new).state is State.OFFERED


def test_a_flow_that_the_conductor_made_itself_waits_for_nobody(stage: Stage, peers: Near) -> None:
    new = stage.post()
    stage.api_store.offer(new)
    assert look(stage, new).state is State.DONE
    assert stage.scheduler.calls == 1


def test_an_earlier_worker_is_cleaned_up_after_and_what_a_peer_built_is_not_touched(stage: Stage) -> None:
    new, (built, left, unwanted) = offered(stage, 3)
    assert stage.api_store.take(new.id, "dead", -1) is not None
    for server in (built, left, unwanted):
        claim(stage, server, "h2")
    settle(stage, built)
    stage.user_deletes(unwanted)
    assert look(stage, new).state is State.DONE
    assert list(stage.leftovers(built)["allocations"]) == [stage.providers["h2"]]
    assert list(stage.leftovers(left)["allocations"]) == [stage.providers["h1"]]
    assert stage.leftovers(unwanted)["allocations"] == {}


def test_what_a_peer_built_survives_a_batch_that_fails(stage: Stage, peers: Near) -> None:
    new, (built, left) = offered(stage, 2)
    claim(stage, built, "h2")
    settle(stage, built)
    stage.hosts.clear()
    peers.answer = False
    assert look(stage, new).state is State.UNWOUND
    assert len(stage.leftovers(built)["allocations"]) == 1
    assert stage.buried(left) is not None
    assert stage.buried(built) is None
