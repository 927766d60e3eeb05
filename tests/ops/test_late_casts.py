"""A cast that is consumed late, or twice: hosts are chosen once."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest
from tests.ops.control_plane import ControlPlane
from tests.ops.test_beside_peers import batches, choices

from kilonova.conductor import records
from kilonova.wire.rpc.clients import ComputeTaskClient

__all__ = ["choices"]


@pytest.fixture
def casts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """Casts to conductors, held back."""
    kept: list[tuple[Any, dict[str, Any]]] = []

    def keep(self: ComputeTaskClient, ctxt: Any, **args: Any) -> None:
        kept.append((ctxt, args))

    monkeypatch.setattr(ComputeTaskClient, "schedule_and_build_instances", keep, raising=False)
    return kept


def deliver(cloud: ControlPlane, cast: tuple[Any, dict[str, Any]]) -> None:
    ctxt, args = cast
    cloud._services[0].tasks.schedule_and_build_instances(ctxt, **args)


def agree(cloud: ControlPlane, server: str) -> None:
    """The guest and the only claim are on one host."""
    host = cloud.guests()[server]
    (provider,) = cloud.cloud.placement.held(server)
    assert cloud.cloud.placement.providers[provider].name == host


def test_d6_a_cast_that_is_consumed_when_its_batch_has_ended_chooses_nothing(
    cloud: ControlPlane,
    casts: list[tuple[Any, dict[str, Any]]],
    choices: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = cloud.hold(monkeypatch, records, "create")
    server = cloud.create("one")["id"]
    cloud.until("the batch has ended", lambda: batches(cloud, server)[0].state == "done")
    for _ in range(3):
        deliver(cloud, casts[0])
    held.set()
    cloud.until_status(server, "ACTIVE")
    assert choices == [[server]]
    assert [row.state for row in batches(cloud, server)] == ["done"]
    agree(cloud, server)
    deliver(cloud, casts[0])
    cloud.delete(server)
    cloud.until_gone(server)
    deliver(cloud, casts[0])
    assert len(batches(cloud, server)) == 1
    cloud.assert_clean()


def test_d6_the_same_cast_many_times_at_once(
    cloud: ControlPlane, casts: list[tuple[Any, dict[str, Any]]], choices: list[list[str]]
) -> None:
    first = cloud.create("many", min_count=2, max_count=2)["id"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: deliver(cloud, casts[0]), range(16)))
    servers = [one["id"] for one in cloud.request("GET", "/servers", status=200)["servers"]]
    assert first in servers
    for server in servers:
        cloud.until_status(server, "ACTIVE")
        agree(cloud, server)
    assert len(choices) == 1
