"""Random misfortunes, many seeds: whatever happens to workers, hosts, messages and users, all agree at the end."""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import Any

import pytest
from tests.unit.conductor.stage import SEAL, Stage

from kilonova.base import clock
from kilonova.conductor.compute_task import ComputeTasks
from kilonova.conductor.failures import describe
from kilonova.conductor.service import FLOWS
from kilonova.db import flows
from kilonova.flow.engine import Engine, StoreFailed
from kilonova.flow.run import Lease, Run
from kilonova.flow.store import LIVE, LeaseLost, NewFlow
from kilonova.flow.testkit import Killed


class Taker:
    """A dispatcher that only puts flows down."""

    def take(self, store: Any, new: NewFlow, unless: Any = None) -> bool:
        return bool(store.offer(new, unless))


class Life:
    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.rng = random.Random(seed)
        self.tasks = ComputeTasks(stage.world, Taker(), SEAL)  # type: ignore[arg-type]
        self.servers: list[str] = []
        self.wanted: set[str] = set()
        self.calm = False

    def chance(self, share: float) -> bool:
        return not self.calm and self.rng.random() < share

    def between(self, run: Run) -> None:
        if self.chance(0.12):
            self.stage.compute.work()
        if self.chance(0.05) and self.servers:
            self.user_deletes()
        if self.chance(0.12):
            raise Killed

    def user_deletes(self) -> None:
        victim = self.rng.choice(self.servers)
        self.stage.user_deletes(victim)
        self.wanted.discard(victim)

    def turn(self) -> int:
        """All live flows, each by a worker that may die."""
        rows = []
        for store in (self.stage.api_store, self.stage.cell_store):
            rows += [(store, row) for row in store.database.query(flows.by_state, LIVE)]
        self.rng.shuffle(rows)
        for store, row in rows:
            engine = Engine(
                FLOWS, self.stage.world, SEAL, "w", describe_failure=describe, rng=lambda: 0.0, between=self.between
            )
            taken = store.take(row.id, "w", 1)
            if taken is None:
                continue
            with contextlib.suppress(Killed, LeaseLost, StoreFailed):
                engine.run(Lease(store, taken, clock.monotonic() + 60))
        return len(rows)

    def world_goes_on(self) -> None:
        compute = self.stage.compute
        if not self.chance(0.3):
            compute.work()
        given, compute.given_back = compute.given_back, []
        for each in given:
            if self.chance(0.3):
                continue
            kwargs = {k: v for k, v in each.items() if k not in ("node", "limits", "accel_uuids")}
            self.tasks.build_instances(self.stage.ctxt(), **kwargs)
        if self.chance(0.1):
            compute.drop = 1
        if self.chance(0.1):
            self.stage.scheduler.lose = 1
        if self.chance(0.1):
            self.stage.cloud.placement.fail("DELETE", "/allocations/", status=503, times=5)
        if self.chance(0.1):
            self.stage.cloud.neutron.fail("GET", "/v2.0/ports", status=503, times=5)
        compute.refusing = {"h1"} if self.chance(0.2) else set()
        compute.broken = {"h2"} if self.chance(0.1) else set()

    def run(self) -> None:
        for _ in range(4):
            new = self.stage.post(self.rng.choice([1, 1, 2]))
            made = [spec["nova_object.data"]["instance_uuid"] for spec in new.frame["request_specs"]]
            self.servers += made
            self.wanted |= set(made)
            self.stage.api_store.offer(new)
            self.turn()
            self.world_goes_on()
        for _ in range(10):
            self.turn()
            self.world_goes_on()
        self.settle()

    def settle(self) -> None:
        """No more misfortunes: everything comes to its end."""
        self.calm = True
        for _ in range(150):
            left = self.turn()
            self.world_goes_on()
            if not left:
                return
            time.sleep(0.01)
        raise AssertionError(f"flows without end: {self._live()}")

    def _live(self) -> list[Any]:
        found = []
        for store in (self.stage.api_store, self.stage.cell_store):
            found += [
                (r.op, r.state, r.position, r.tries, r.reason) for r in store.database.query(flows.by_state, LIVE)
            ]
        return found

    def check(self) -> None:
        held = self.stage.cloud.placement.held
        for uuid in self.servers:
            server, buried = self.stage.server(uuid), self.stage.buried(uuid)
            assert server is None or buried is None
            found = server or buried
            assert (found is not None) == (uuid in self.wanted), (uuid, found)
            ports = self.stage.cloud.neutron.ports_of(uuid)
            if found is not None and found.vm_state == "active":
                assert list(held(uuid)) == [self.stage.providers[found.host]]
                assert len(ports) == 1
            else:
                assert not held(uuid)
                assert not ports
            if found is not None:
                assert found.task_state is None
                assert found.vm_state in ("active", "error")
                assert found.vm_state == "active" or found.host is None


@pytest.mark.parametrize("seed", range(int(os.environ.get("LIVES", "12"))))
def test_life(stage: Stage, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds, real=time.sleep: real(min(seconds, 0.01)))
    life = Life(stage, seed)
    life.run()
    life.check()
