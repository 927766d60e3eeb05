"""Build and delete: fail at every stage, repeat every stage and undo, kill the worker between every two stages.

Whatever happens, the record and the world agree at the end.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from tests.unit.conductor.stage import PROJECT, SEAL, Stage

from kilonova.base import clock
from kilonova.conductor.building import elsewhere
from kilonova.conductor.failures import describe
from kilonova.conductor.ops import build, delete
from kilonova.db import flows
from kilonova.flow import offers, testkit
from kilonova.flow.engine import Engine
from kilonova.flow.plan import Flow
from kilonova.flow.run import Lease
from kilonova.flow.store import FlowRow, NewFlow, State
from kilonova.flow.testkit import Case


class Play:
    """One run on a fresh stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.store: Any = stage.api_store
        self.world = stage.world
        self.server = ""

    def meanwhile(self) -> None:
        self.stage.compute.work()

    def sent(self) -> int:
        cloud = self.stage.cloud
        services = (cloud.placement, cloud.neutron, cloud.cinder, cloud.glance)
        changes = [call for service in services for call in service.calls if call[0] != "GET"]
        return len(changes) + len(self.stage.compute.casts) + self.stage.scheduler.calls

    def agree(self) -> None:
        """An ACTIVE server holds one claim and one port, any other nothing; there is one record of it at most."""
        server, buried = self.stage.server(self.server), self.stage.buried(self.server)
        assert server is None or buried is None
        held = self.stage.leftovers(self.server)
        if server is not None and server.vm_state == "active":
            assert list(held["allocations"]) == [self.stage.providers[server.host]]
            assert len(held["ports"]) == 1
        else:
            assert held == {"allocations": {}, "ports": []}
        found = server or buried
        if found is not None and found.vm_state == "error":
            assert found.fault is not None
            assert found.task_state is None


class Batch(Play):
    def offer(self) -> NewFlow:
        new = self.stage.post()
        self.server = new.subject_id
        return new

    def check(self, row: FlowRow, case: Case) -> None:
        if row.state is State.UNWOUND:
            assert self.stage.buried(self.server).vm_state == "error"
            assert case.fails
            assert self.store.active(self.server, offers.BUILD) == []
            self.agree()
            return
        assert row.state is State.DONE
        assert not case.fails
        (child,) = self.store.active(self.server, offers.BUILD)
        assert child.parent_id == row.id
        assert self.stage.buried(self.server) is None
        assert list(self.stage.leftovers(self.server)["allocations"]) == [self.stage.providers["h1"]]


class One(Play):
    """A server for which hosts were chosen."""

    def offer(self) -> NewFlow:
        batch = self.stage.post()
        self.server = batch.subject_id
        ctxt = self.stage.ctxt()
        spec = batch.frame["request_specs"][0]
        (chosen,) = self.stage.scheduler.select_destinations(
            ctxt, spec_obj=build.unpack(spec), instance_uuids=[self.server], return_objects=True, return_alternates=True
        )
        names = ("context", "image", "requested_networks", "block_device_mapping", "tags")
        frame = {name: batch.frame[name] for name in names} | {
            "request_spec": spec,
            "hosts": build.pack(chosen),
            "deadline_at": build.watching.deadline_at(600),
        }
        return NewFlow(offers.BUILD, self.server, frame, request_id="req-1", sealed=batch.sealed)

    def check(self, row: FlowRow, case: Case) -> None:
        assert row.state in (State.DONE, State.UNWOUND)
        found = self.stage.server(self.server) or self.stage.buried(self.server)
        assert found is not None
        assert found.vm_state == ("active" if row.state is State.DONE else "error") or found.vm_state == "active"
        if not case.fails:
            assert (row.state, found.vm_state) == (State.DONE, "active")
        self.agree()


class Delete(Play):
    """A server that its user deletes; `host`: None for one without host."""

    with_host = True

    def offer(self) -> NewFlow:
        one = One(self.stage)
        testkit.play(one, build.FLOW, Case(), describe_failure=describe)
        self.server = one.server
        self.store = self.stage.cell_store
        server = self.stage.server(self.server)
        server.task_state = "deleting"
        if not self.with_host:
            server.host, server.node, server.compute_id = None, None, None
        self.stage.save(server)
        return offers.delete_offer(SEAL, self.stage.ctxt(), instance_uuid=self.server, cast=False, grace=0.0)

    def check(self, row: FlowRow, case: Case) -> None:
        server = self.stage.server(self.server)
        if server is None:
            self.agree()
            return
        assert case.fails
        assert row.state is State.UNWOUND
        assert (server.vm_state, server.task_state) == ("error", None)
        assert server.fault is not None


class DeleteWithoutHost(Delete):
    with_host = False


def _hasty(flow: Flow) -> Flow:
    """Without second tries: an injected failure is then a failure."""

    from kilonova.flow.plan import NO_RETRY

    return msgspec.structs.replace(
        flow, stages=tuple(msgspec.structs.replace(each, retry=NO_RETRY) for each in flow.stages)
    )


def cases(flow: Flow) -> list[Any]:
    return [pytest.param(case, id=str(case)) for case in testkit.every_case(flow)]


@pytest.mark.parametrize("case", cases(build.BATCH))
def test_batch(stage: Stage, case: Case) -> None:
    testkit.play(Batch(stage), _hasty(build.BATCH), case, describe_failure=describe)


@pytest.mark.parametrize("case", cases(build.FLOW))
def test_build(stage: Stage, case: Case) -> None:
    testkit.play(One(stage), _hasty(build.FLOW), case, describe_failure=describe)


@pytest.mark.parametrize("case", cases(delete.FLOW))
def test_delete(stage: Stage, case: Case) -> None:
    testkit.play(Delete(stage), _hasty(delete.FLOW), case, describe_failure=describe)


@pytest.mark.parametrize("case", cases(delete.FLOW))
def test_delete_without_host(stage: Stage, case: Case) -> None:
    testkit.play(DeleteWithoutHost(stage), _hasty(delete.FLOW), case, describe_failure=describe)


class OnAHost(One):
    """A server whose build was sent to its host."""

    def first_try(self, new: NewFlow) -> None:
        """Drive its build until it rests."""
        engine = Engine({build.FLOW.op: build.FLOW}, self.world, SEAL, "first")
        taken = self.stage.api_store.take(new.id, "first", 60_000)
        assert engine.run(Lease(self.stage.api_store, taken, clock.monotonic() + 60)) is State.RESTING


class Watched(OnAHost):
    """A build that nobody drives: its flow was abandoned, or a peer's conductor sent it and is gone."""

    def offer(self) -> NewFlow:
        new = super().offer()
        self.stage.api_store.offer(new)
        self.first_try(new)
        assert self.stage.api.run(flows.abandon, new.id, who="operator", why="test")
        self.store = self.stage.cell_store
        return offers.watch_offer(
            self.stage.ctxt(), instance_uuid=self.server, project_id=PROJECT, host="h1", deadline_at=time.time() + 600
        )


class WatchedHostLost(Watched):
    """Its host never took it and is gone: nobody else is asked, for nobody knows what to ask for."""

    looks = 0

    def offer(self) -> NewFlow:
        new = super().offer()
        self.stage.conf.set_override("flow_resend", 600.0, group="kilonova")
        self.stage.silence("h1")
        return new

    def meanwhile(self) -> None:
        # Only later is it long enough that the host has not answered.
        self.looks += 1
        if self.looks == 4:
            self.stage.conf.set_override("flow_resend", 0.1, group="kilonova")

    def check(self, row: FlowRow, case: Case) -> None:
        assert row.state is State.UNWOUND
        assert self.stage.server(self.server).vm_state == "error"
        self.agree()


@pytest.mark.parametrize("case", cases(elsewhere.WATCH))
def test_watch(stage: Stage, case: Case) -> None:
    testkit.play(Watched(stage), _hasty(elsewhere.WATCH), case, describe_failure=describe)


@pytest.mark.parametrize("case", cases(elsewhere.WATCH))
def test_watch_of_a_lost_host(stage: Stage, case: Case) -> None:
    testkit.play(WatchedHostLost(stage), _hasty(elsewhere.WATCH), case, describe_failure=describe)


class Elsewhere(OnAHost):
    """A server that its first host gave back."""

    def offer(self) -> NewFlow:
        self.stage.compute.refusing.add("h1")
        new = super().offer()
        self.stage.api_store.offer(new)
        self.store = self.stage.cell_store
        self.first_try(new)
        self.stage.compute.work()
        (given,) = self.stage.compute.given_back
        shared = {name: new.frame.get(name) for name in ("context", "request_spec", "image", "requested_networks")}
        shared |= {"security_groups": None, "deadline_at": new.frame["deadline_at"]}
        return elsewhere.new_try(self.server, given["host_lists"][0], given["filter_properties"], shared, new.sealed)


@pytest.mark.parametrize("case", cases(elsewhere.FLOW))
def test_elsewhere(stage: Stage, case: Case) -> None:
    testkit.play(Elsewhere(stage), _hasty(elsewhere.FLOW), case, describe_failure=describe)
