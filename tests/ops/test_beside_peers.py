"""A conductor of Nova's takes from the same queue: nothing is built twice, and what is lost is made up for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.ops.control_plane import ControlPlane
from tests.ops.peer_conductor import PeerConductor

from kilonova.conductor import peers
from kilonova.conductor.building import yielding
from kilonova.db import flows
from kilonova.flow import offers
from kilonova.scheduler.destinations import Chooser
from kilonova.wire.rpc.clients import ComputeTaskClient


@pytest.fixture
def peer(cloud: ControlPlane) -> Iterator[PeerConductor]:
    made = PeerConductor(cloud)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SHORTEST", 0.2), ("LONGEST", 0.2)):
        monkeypatch.setattr(yielding, name, value)
    for name, value in (("REMEMBER", 0.2), ("PING_TIMEOUT", 0.5)):
        monkeypatch.setattr(peers, name, value)


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The servers of every question to the scheduler."""
    asked: list[list[str]] = []
    original = Chooser.select

    def select(self: Chooser, ctxt: Any, spec: Any, uuids: list[str], **more: Any) -> Any:
        asked.append(list(uuids))
        return original(self, ctxt, spec, uuids, **more)

    monkeypatch.setattr(Chooser, "select", select)
    return asked


def batches(cloud: ControlPlane, server: str) -> list[Any]:
    found = cloud.parts.cells.api.query(flows.history, server)
    return [row for row in found if row.op == offers.BUILD_BATCH]


def looked_at(cloud: ControlPlane, server: str, times: int = 3) -> None:
    """Our conductor looks at the batch so many times more."""
    before = batches(cloud, server)[0].lease_epoch
    cloud.until("looked at", lambda: batches(cloud, server)[0].lease_epoch >= before + times)


def test_what_a_peer_took_is_left_to_it(
    cloud: ControlPlane, peer: PeerConductor, quick: None, choices: list[list[str]]
) -> None:
    server = peer.alone(lambda: cloud.create("one"))["id"]
    cloud.until("claimed by the peer", lambda: peer.claimed)
    looked_at(cloud, server, 5)
    (batch,) = batches(cloud, server)
    assert (batch.state, batch.reason) == ("offered", None)
    peer.held.set()
    cloud.until_status(server, "ACTIVE")
    cloud.until("the flow has ended", lambda: batches(cloud, server)[0].state == "done")
    assert choices == [[server]]
    assert len(cloud.cloud.placement.held(server)) == 1
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()


def test_a_lost_cast_waits_for_the_peer_not_for_ever(
    cloud: ControlPlane,
    peer: PeerConductor,
    quick: None,
    choices: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    forward: Callable[[float], None],
) -> None:
    monkeypatch.setattr(yielding, "PATIENCE", 30.0)
    monkeypatch.setattr(ComputeTaskClient, "schedule_and_build_instances", lambda *a, **k: None, raising=False)
    server = cloud.create("one")["id"]
    looked_at(cloud, server, 5)
    assert choices == []
    forward(30)
    cloud.until_status(server, "ACTIVE")
    assert choices == [[server]]


def test_what_a_peer_claimed_before_it_died_is_given_back(
    cloud: ControlPlane, peer: PeerConductor, quick: None, choices: list[list[str]]
) -> None:
    listed = peer.alone(lambda: cloud.create("many", min_count=2, max_count=2) and cloud.request("GET", "/servers"))
    servers = [one["id"] for one in listed.json["servers"]]
    cloud.until("claimed by the peer", lambda: peer.claimed)
    (first,) = [server for server in servers if batches(cloud, server)]
    looked_at(cloud, first)
    peer.stop()
    looked_at(cloud, first)
    assert len(choices) == 1
    peer.forget()
    for server in servers:
        cloud.until_status(server, "ACTIVE")
        assert [held["VCPU"] for held in cloud.cloud.placement.held(server).values()] == [1]
    assert len(choices) == 2


def test_a_cast_that_reaches_ours_late_is_obeyed_at_once(
    cloud: ControlPlane, peer: PeerConductor, choices: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    casts: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(
        ComputeTaskClient,
        "schedule_and_build_instances",
        lambda self, ctxt, **args: casts.append((ctxt, args)),
        raising=False,
    )
    server = cloud.create("one")["id"]
    cloud.until(
        "looked at", lambda: batches(cloud, server)[0].lease_epoch and not batches(cloud, server)[0].lease_owner
    )
    (ctxt, args) = casts[0]
    cloud._services[0].tasks.schedule_and_build_instances(ctxt, **args)
    cloud.until_status(server, "ACTIVE", 8)
    assert choices == [[server]]
