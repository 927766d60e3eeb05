"""A cell with a bus of its own, whose conductor has [api_database]: who chooses hosts follows from the bus."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.ops.control_plane import CELL, ControlPlane
from tests.ops.peer_conductor import PeerConductor

from kilonova.cmd import assembly
from kilonova.conductor import schedulers
from kilonova.conductor.service import Service as Conductor
from kilonova.conductor.world import API_STORE
from kilonova.db import flows
from kilonova.db.api import cell_mappings
from kilonova.flow.store import FlowRow, State
from kilonova.wire.rpc.bus import Bus


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOOK_EVERY", 0.2), ("PING_TIMEOUT", 0.3), ("BELIEVE", 1.0), ("REMEMBER", 0.0)):
        monkeypatch.setattr(schedulers, name, value)


class SplitBuses(ControlPlane):
    """The hosts and the cell's conductor are on the cell's bus; API, scheduler and the upper conductor are not."""

    def __init__(self, folder: pathlib.Path, templates: pathlib.Path) -> None:
        super().__init__(folder, templates, hosts=())
        self.below = assembly.Parts(self.conf)
        url = f"fake://{uuid.uuid4().hex}/"
        self.below.__dict__.update(bus=Bus(self.conf, url), clients=self.cloud.clients)
        with self.parts.cells.api.write() as tx:
            cell_mappings.cell_mapping_update(tx, CELL, {"transport_url": url})
        self.parts.cells.refresh()
        self.lower = Conductor(self.conf, self.below.cells, self.below.bus, self.cloud.clients, "lower")
        self.lower.start()
        self.upper, self.scheduler = self._services[0], self._services[-1]
        above, self.parts = self.parts, self.below
        for host in ("h1", "h2"):
            self.start_host(host)
        self.parts = above

    def close(self) -> None:
        self.lower.stop()
        super().close()
        self.below.close()

    def batch(self, server: str) -> FlowRow:
        (found,) = [row for row in self.parts.cells.api.query(flows.history, server) if row.op == "build_batch"]
        return found


@pytest.fixture
def split(tmp_path: pathlib.Path, templates: pathlib.Path) -> Iterator[SplitBuses]:
    made = SplitBuses(tmp_path, templates)
    yield made
    made.close()


def test_c1_a_conductor_without_a_scheduler_on_its_bus_leaves_batches_alone(
    split: SplitBuses, monkeypatch: pytest.MonkeyPatch, forward: Callable[[float], None]
) -> None:
    split.upper.stop()
    server = split.create()["id"]
    looks = split.watch_looks(monkeypatch)
    forward(3.0)
    before = looks(API_STORE)
    split.until("looked through", lambda: looks(API_STORE) >= before + 5)
    batch = split.batch(server)
    assert (batch.state, batch.lease_epoch, batch.tries) == (State.OFFERED, 0, 0)
    again: Any = Conductor(split.conf, split.parts.cells, split.parts.bus, split.cloud.clients, "upper")
    again.start()
    try:
        split.until_status(server, "ACTIVE")
        assert split.batch(server).state is State.DONE
    finally:
        again.stop()


def test_c1_many_builds_on_split_buses_all_live(split: SplitBuses) -> None:
    servers = [split.create(f"s{n}")["id"] for n in range(8)]
    for server in servers:
        split.until_status(server, "ACTIVE")
        batch = split.batch(server)
        assert (batch.state, batch.tries) == (State.DONE, 0)
    for server in servers:
        split.delete(server)
    for server in servers:
        split.until_gone(server)


def test_c1_what_is_past_its_deadline_is_ended_by_whoever_reaches_it(split: SplitBuses) -> None:
    split.upper.stop()
    split.conf.set_override("build_deadline", 2.0, group="kilonova")
    server = split.create()["id"]
    shown = split.until_status(server, "ERROR")
    assert "did not end in time" in shown["fault"]["message"]


def _without_scheduler(cloud: ControlPlane) -> Any:
    """Stop the scheduler and wait until the conductor knows."""
    scheduler = cloud._services.pop()
    scheduler.stop()
    cloud.until("known", lambda: not cloud._services[0].world.schedulers.there())
    return scheduler


def test_c1_a_cast_waits_for_a_scheduler_that_comes_later(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch, forward: Callable[[float], None]
) -> None:
    _without_scheduler(cloud)
    server = cloud.create()["id"]
    looks = cloud.watch_looks(monkeypatch)
    forward(2.0)
    before = looks(API_STORE)
    cloud.until("looked through", lambda: looks(API_STORE) >= before + 5)
    assert cloud.show(server)["status"] == "BUILD"
    (batch,) = cloud.parts.cells.api.query(flows.history, server)
    assert (batch.position, batch.tries, batch.lease_owner) == (None, 0, None)
    later = assembly.scheduler(cloud.parts)
    later.start()
    cloud._services.append(later)
    cloud.until_status(server, "ACTIVE")


def test_c1_a_peers_conductor_on_the_same_bus_is_no_scheduler(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_scheduler(cloud)
    client = cloud._services[0].world.schedulers._client
    asked: list[Any] = []
    ping = client.ping
    monkeypatch.setattr(client, "ping", lambda *words, **more: asked.append(words) or ping(*words, **more))
    peer = PeerConductor(cloud)
    peer.held.set()
    peer.start()
    try:
        before = len(asked)
        cloud.until("asked again and again", lambda: len(asked) >= before + 4)
        assert not cloud._services[0].world.schedulers.there()
    finally:
        peer.stop()
