"""Lanes and external events: order, limits, preemption, waiting."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from tests.unit.compute.world import wait_for

from kilonova.compute.events import ExternalEvents
from kilonova.compute.lanes import Lanes, Preempted, limits
from kilonova.contract import exceptions


def test_one_lane_is_serial_and_in_order() -> None:
    lanes, done = Lanes(8), []

    def job(n: int) -> Any:
        def run(turn: Any) -> int:
            done.append(("begin", n))
            time.sleep(0.01)
            done.append(("end", n))
            return n

        return run

    futures = [lanes.submit("a", job(n)) for n in range(5)]
    assert [future.result(5) for future in futures] == list(range(5))
    assert done == [(what, n) for n in range(5) for what in ("begin", "end")]
    assert wait_for(lambda: not lanes.busy("a"))


def test_lanes_are_parallel_and_bounded() -> None:
    lanes, inside, most = Lanes(3), [0], [0]
    lock = threading.Lock()

    def run(turn: Any) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        with lock:
            inside[0] -= 1

    for future in [lanes.submit(str(n), run) for n in range(9)]:
        future.result(5)
    assert most[0] == 3


def test_jobs_that_come_before_an_idle_thread_awakes_do_not_share_it() -> None:
    lanes, second = Lanes(2), threading.Event()
    lanes.submit("warm", lambda turn: None).result(5)
    assert wait_for(lambda: lanes._idle == 1)
    # Held, the thread that is told of the first job cannot take it before the second one is there.
    with lanes._changed:
        first = lanes.submit("a", lambda turn: second.wait(5))
        lanes.submit("b", lambda turn: second.set())
    assert first.result(10)


def test_work_that_waits_for_its_kind_holds_no_thread() -> None:
    lanes = Lanes(2, {"build": 1})
    hold = threading.Event()
    builds = [lanes.submit(str(n), lambda turn: hold.wait(5), kind="build") for n in range(4)]
    assert lanes.submit("other", lambda turn: "through").result(5) == "through"
    hold.set()
    assert all(build.result(5) for build in builds)


@pytest.mark.parametrize("workers", [2, 4, 48])
@pytest.mark.parametrize("waiting", [None, *limits(1, 0)])
def test_no_kind_of_work_keeps_another_one_from_its_threads(workers: int, waiting: str | None) -> None:
    """However much of one kind waits for something, and all other kinds but one with it."""
    lanes, hold = Lanes(workers, limits(workers, builds=0)), threading.Event()
    for other in {None, *limits(1, 0)} - {waiting}:
        held = [lanes.submit(f"{other}/{n}", lambda turn: hold.wait(20), kind=other) for n in range(2 * workers)]
        assert wait_for(lambda held=held: any(job.running() for job in held)), f"no {other} runs"
    assert lanes.submit("free", lambda turn: "through", kind=waiting).result(10) == "through"
    assert lanes._threads <= max(workers, len(limits(1, 0)) + 1)
    hold.set()
    assert lanes.stop(20)


def test_a_delete_goes_first_and_what_runs_gives_way() -> None:
    lanes, order = Lanes(4), []
    running = threading.Event()

    def build(turn: Any) -> None:
        running.set()
        assert wait_for(lambda: turn.preempted)
        order.append("build gives way")
        turn.check()

    first = lanes.submit("a", build, kind="build")
    waiting = lanes.submit("a", lambda turn: order.append("stop"))
    assert running.wait(5)
    lanes.submit("a", lambda turn: order.append("delete"), preempt=True).result(5)
    waiting.result(5)
    with pytest.raises(Preempted):
        first.result(5)
    assert order == ["build gives way", "delete", "stop"]


def test_a_delete_of_an_idle_instance_is_not_preempted_itself() -> None:
    lanes = Lanes(1)
    assert lanes.submit("a", lambda turn: turn.preempted, preempt=True).result(5) is False


def test_a_failing_job_does_not_hold_up_its_lane() -> None:
    lanes = Lanes(1)

    def fail(turn: Any) -> None:
        raise SystemExit(3)

    broken = lanes.submit("a", fail)
    assert lanes.submit("a", lambda turn: 1).result(5) == 1
    with pytest.raises(SystemExit):
        broken.result(5)


def test_the_end() -> None:
    lanes, hold = Lanes(1), threading.Event()
    running = lanes.submit("a", lambda turn: hold.wait(5))
    waiting = lanes.submit("a", lambda turn: None)
    assert wait_for(lambda: running.running())
    assert lanes.stop(0.05) is False
    assert waiting.cancelled()
    with pytest.raises(RuntimeError):
        lanes.submit("b", lambda turn: None)
    hold.set()
    assert lanes.stop(5)


# --- events ------------------------------------------------------------------------------------


def test_events_that_come_while_the_body_runs_count() -> None:
    events = ExternalEvents(cancelled=Preempted)
    with events.expect("i", [("network-vif-plugged", "p1"), ("network-vif-plugged", "p2")], 5):
        assert events.deliver("i", "network-vif-plugged", "p1", "completed")
        threading.Timer(0.05, events.deliver, ("i", "network-vif-plugged", "p2", "completed")).start()
    assert not events.deliver("i", "network-vif-plugged", "p1", "completed")
    assert not events.deliver("other", "network-vif-plugged", "p1", "completed")


@pytest.mark.parametrize("status", ["failed", None])
def test_a_failed_or_missing_event(status: str | None) -> None:
    events = ExternalEvents(cancelled=Preempted)
    why = "was reported as failed" if status else r"did not come within 0.05 s"
    with pytest.raises(exceptions.VirtualInterfaceCreateException, match=f"event network-vif-plugged of p1 {why}"):
        expect_but_deliver(events, status)


def expect_but_deliver(events: ExternalEvents, status: str | None) -> None:
    with events.expect("i", [("network-vif-plugged", "p1")], 0.05):
        if status:
            events.deliver("i", "network-vif-plugged", "p1", status)


def test_the_bodys_own_error_is_not_covered() -> None:
    events = ExternalEvents(cancelled=Preempted)
    with pytest.raises(ValueError, match="mine"), events.expect("i", [("a", "b")], 5):
        raise ValueError("mine")


def test_a_refused_instance_waits_for_nothing_until_it_is_allowed() -> None:
    events = ExternalEvents(cancelled=Preempted)
    threading.Timer(0.05, events.refuse, ("i",)).start()
    began = time.monotonic()
    with pytest.raises(Preempted), events.expect("i", [("a", "b")], 5):
        pass
    with pytest.raises(Preempted), events.expect("i", [("a", "b")], 5):
        raise AssertionError("the body must not run")
    assert time.monotonic() - began < 4
    events.allow("i")
    with events.expect("i", [("a", "b")], 5):
        events.deliver("i", "a", "b", "completed")
