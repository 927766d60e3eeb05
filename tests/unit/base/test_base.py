"""Clock, ids, retry, pools, timers and shutdown do what their callers rely on."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from kilonova.base import clock, ids, periodic, pools, retry, shutdown


def test_times_keep_their_instant_between_sql_and_wire() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    when = datetime.datetime(2026, 1, 1, 2, 0, 0, tzinfo=zone)
    assert clock.naive(when) == datetime.datetime(2026, 1, 1)
    assert clock.aware(datetime.datetime(2026, 1, 1)) == when
    assert clock.iso(when) == "2026-01-01T00:00:00Z"
    assert clock.parse("2026-01-01T00:00:00Z") == when
    assert clock.aware(None) is clock.naive(None) is None


def test_time_passes_at_a_word_for_every_reading(forward: Callable[[float], None]) -> None:
    before = clock.now(), clock.seconds(), clock.milliseconds(), clock.monotonic()
    forward(3600)
    later = clock.now(), clock.seconds(), clock.milliseconds(), clock.monotonic()
    assert 3600 <= (later[0] - before[0]).total_seconds() < 3630
    assert 3600 <= later[1] - before[1] < 3630
    assert 3_600_000 <= later[2] - before[2] < 3_630_000
    assert 3600 <= later[3] - before[3] < 3630
    assert abs(clock.seconds() - clock.now().timestamp()) < 30


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d", True),
        ("5F2B1D7E1F4E4A3C8A570D3F1F1B2C3D", True),
        ("1234", False),
        (None, False),
    ],
)
def test_uuid_forms(text: object, right: bool) -> None:
    assert ids.is_uuid(text) is right


def test_retry_repeats_only_what_it_is_told_to() -> None:
    waits: list[float] = []
    outcomes = iter([KeyError("a"), KeyError("b"), None])

    def flaky() -> str:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return "done"

    assert retry.call(flaky, on=(KeyError,), backoff=retry.Backoff(attempts=3), sleep=waits.append) == "done"
    assert len(waits) == 2
    with pytest.raises(ValueError, match="no"):
        retry.call(lambda: (_ for _ in ()).throw(ValueError("no")), on=(KeyError,), sleep=waits.append)
    assert len(waits) == 2


def test_retry_gives_the_last_error_after_its_attempts() -> None:
    calls: list[int] = []

    def fails() -> None:
        calls.append(1)
        raise KeyError(len(calls))

    with pytest.raises(KeyError, match="3"):
        retry.call(fails, on=(KeyError,), backoff=retry.Backoff(attempts=3), sleep=lambda _: None)
    assert len(calls) == 3


def test_backoff_stays_between_floor_and_cap() -> None:
    backoff = retry.Backoff(attempts=6, base=1, cap=4, floor=0.5)
    assert list(backoff.waits(lambda: 0.0)) == [0.5] * 5
    assert list(backoff.waits(lambda: 1.0)) == [1, 2, 4, 4, 4]


def test_waits_have_a_cap_however_often_something_is_tried() -> None:
    assert max(retry.Backoff(attempts=3000, cap=4).waits(lambda: 1.0)) == 4
    assert retry.grown(20.0, 2.0, 3, 300.0) == 160.0
    assert retry.grown(20.0, 2.0, 100_000, 300.0) == 300.0


def test_full_pool_refuses_and_recovers() -> None:
    gate = threading.Event()
    pool = pools.ThreadPool("p", workers=1, backlog=1)
    first, second = pool.submit(gate.wait, 5), pool.submit(lambda: "second")
    with pytest.raises(pools.Full):
        pool.offer(lambda: None)
    gate.set()
    assert first.result(5)
    assert second.result(5) == "second"
    assert pool.offer(lambda: "third").result(5) == "third"
    assert pool.stop(5)
    assert pool.inside == 0
    with pytest.raises(pools.Closed):
        pool.submit(lambda: None)


def test_timer_goes_on_after_a_failure_and_never_overlaps() -> None:
    inside, most, runs = 0, 0, threading.Semaphore(0)

    def task() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.02)
        inside -= 1
        runs.release()
        raise KeyError("once more")

    timers = periodic.Periodic(workers=3)
    timer = timers.every(0.005, task, jitter=0)
    timers.start()
    for _ in range(4):
        timers.trigger(timer)
        assert runs.acquire(timeout=5)
    timers.stop()
    assert most == 1
    assert timer.failures >= 3
    assert timer.last_error == "KeyError: 'once more'"


def test_trigger_does_not_multiply_the_schedule() -> None:
    timers = periodic.Periodic()
    ran = threading.Semaphore(0)
    timer = timers.every(60, ran.release, initial_delay=60)
    timers.start()
    timers.trigger(timer)
    assert ran.acquire(timeout=5)
    timers.trigger(timer)
    assert ran.acquire(timeout=5)
    assert not ran.acquire(timeout=0.1)
    timers.stop()
    assert timer.runs == 2


def test_timers_that_hang_keep_no_other_one_waiting() -> None:
    timers, hold, ran = periodic.Periodic(), threading.Event(), threading.Event()
    for number in range(4):
        timers.every(60, lambda: hold.wait(20), name=f"hangs {number}", initial_delay=0)
    timers.every(60, ran.set, name="free", initial_delay=0)
    timers.start()
    try:
        assert ran.wait(10)
    finally:
        hold.set()
        timers.stop()


def test_a_new_spacing_counts_at_once() -> None:
    timers = periodic.Periodic()
    ran = threading.Semaphore(0)
    timer = timers.every(60, ran.release, initial_delay=60)
    timers.start()
    timers.respace(timer, 0.01)
    assert ran.acquire(timeout=5)
    assert ran.acquire(timeout=5)
    timers.respace(timer, 60)
    while ran.acquire(timeout=0.2):
        pass
    before = timer.entry
    timers.respace(timer, 60)
    assert timer.entry == before
    timers.stop()


def test_shutdown_runs_phases_in_order_whatever_fails() -> None:
    ran: list[str] = []
    end = shutdown.Shutdown(timeout=5)
    end.on(shutdown.Phase.CLOSE, "close", lambda left: ran.append("close"))
    end.on(shutdown.Phase.REFUSE, "broken", lambda left: 1 / 0)
    end.on(shutdown.Phase.REFUSE, "refuse", lambda left: ran.append("refuse"))
    assert not end.wait(0)
    end.request()
    assert end.wait(1)
    end.run()
    end.run()
    assert ran == ["refuse", "close"]


def test_eventlet_cannot_be_imported() -> None:
    code = (
        "import kilonova, oslo_messaging, sys\n"
        "from oslo_service import backend\n"
        "assert sys.modules['eventlet'] is None\n"
        "assert not [m for m in sys.modules if m.startswith('eventlet.')]\n"
        "assert backend.get_backend_type() is backend.BackendType.THREADING\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
