import os
import signal
import sys
import time
from pathlib import Path

import pytest

from kilonova.cloud import daemons
from kilonova.cloud.commands import run
from kilonova.cloud.daemons import Daemon, Supervisor
from kilonova.cloud.errors import CloudError

SLEEP = ["sleep", "60"]


def test_started_known_and_stopped_by_pid_file(supervisor: Supervisor) -> None:
    supervisor.start(Daemon("one", SLEEP))
    pid = supervisor.pid("one")
    assert pid is not None
    assert os.getpgid(pid) == pid
    assert supervisor.running() == ["one"]
    assert supervisor.stop("one")
    assert daemons.start_ticks(pid) is None
    assert supervisor.names() == []


def test_starting_twice_keeps_the_process(supervisor: Supervisor) -> None:
    supervisor.start(Daemon("one", SLEEP))
    pid = supervisor.pid("one")
    supervisor.start(Daemon("one", SLEEP))
    assert supervisor.pid("one") == pid


def test_a_recycled_pid_is_not_ours(supervisor: Supervisor) -> None:
    supervisor.pid_file("one").write_text(f"{os.getpid()} 1\n")
    assert supervisor.pid("one") is None
    assert not supervisor.stop("one")
    assert daemons.start_ticks(os.getpid()) is not None


def test_one_that_ends_at_its_start_is_told_with_its_last_words(supervisor: Supervisor) -> None:
    argv = ["sh", "-c", "echo cannot open the door; exit 3"]
    with pytest.raises(CloudError, match="cannot open the door") as caught:
        supervisor.start(Daemon("one", argv, ready=lambda: False))
    assert caught.value.log == supervisor.output("one")


def test_one_that_never_answers_is_told(supervisor: Supervisor) -> None:
    with pytest.raises(CloudError, match="did not answer"):
        supervisor.start(Daemon("one", SLEEP, ready=lambda: False, ready_within=0.3))


def test_a_missing_program_is_told(supervisor: Supervisor) -> None:
    with pytest.raises(CloudError, match="is not installed"):
        supervisor.start(Daemon("one", ["/nowhere/program"]))


def test_stop_ends_children_and_the_stubborn(supervisor: Supervisor, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"trap '' TERM; sleep 60 & echo $! > {child}; while :; do sleep 1; done"
    supervisor.start(Daemon("one", ["sh", "-c", script], ready=child.exists))
    time.sleep(0.1)
    begin = time.monotonic()
    assert supervisor.stop("one", within=0.5)
    assert time.monotonic() - begin < 10
    assert daemons.wait_until(lambda: daemons.start_ticks(int(child.read_text())) is None, 5)


def test_credentials_of_the_caller_do_not_leak(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_PASSWORD", "mine")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    supervisor.start(Daemon("one", ["sh", "-c", "env; sleep 60"], {"GIVEN": "yes"}))
    assert daemons.wait_until(lambda: "GIVEN=yes" in supervisor.output("one").read_text(), 5)
    assert "mine" not in supervisor.output("one").read_text()


def test_memory_counts_the_whole_family(supervisor: Supervisor) -> None:
    supervisor.start(Daemon("one", ["sh", "-c", f"{sys.executable} -c 'import time; time.sleep(60)' & sleep 60"]))
    # A process has next to no memory until its program is loaded.
    grown = lambda: (size := supervisor.memory("one")) is not None and size.processes == 3 and size.pss > 0  # noqa: E731
    assert daemons.wait_until(grown, 10)
    size = supervisor.memory("one")
    assert size is not None
    assert size.rss >= size.pss


def test_the_services_own_log_is_the_better_one(supervisor: Supervisor) -> None:
    own = supervisor.site.log / "one.log"
    own.write_text("")
    assert supervisor.best_log("one") == supervisor.output("one")
    own.write_text("words")
    assert supervisor.best_log("one") == own


def test_what_a_daemon_writes_is_its_owners_alone(supervisor: Supervisor, tmp_path: Path) -> None:
    made = tmp_path / "made"
    supervisor.start(Daemon("one", ["sh", "-c", f"touch {made}; sleep 60"], ready=made.exists))
    assert made.stat().st_mode & 0o077 == 0
    assert supervisor.output("one").stat().st_mode & 0o077 == 0
    run(["touch", tmp_path / "more"], tmp_path / "log")
    assert (tmp_path / "more").stat().st_mode & 0o077 == 0
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_what_is_said_to_a_command_is_not_logged(tmp_path: Path) -> None:
    assert run(["wc", "-c"], tmp_path / "log", said="sesame").strip() == "6"
    assert "sesame" not in (tmp_path / "log").read_text()


def test_signal_of_choice(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"trap 'touch {mark}; exit' USR1; echo ready; while :; do sleep 0.1; done"
    supervisor.start(
        Daemon("one", ["bash", "-c", script], ready=lambda: "ready" in supervisor.output("one").read_text())
    )
    supervisor.stop("one", how=signal.SIGUSR1)
    assert mark.exists()


def test_several_start_at_once_and_each_is_waited_for(supervisor: Supervisor, tmp_path: Path) -> None:
    """One is ready when the other runs: one after the other they would never be."""
    first, second = tmp_path / "first", tmp_path / "second"
    script = "touch {own}; while [ ! -e {other} ]; do sleep 0.05; done; touch {own}.ready; sleep 60"
    daemons_ = [
        Daemon(
            own.name,
            ["sh", "-c", script.format(own=own, other=other)],
            ready=Path(f"{own}.ready").exists,
            ready_within=20,
        )
        for own, other in ((first, second), (second, first))
    ]
    supervisor.start(*daemons_)
    assert set(supervisor.running()) == {"first", "second"}
    assert set(supervisor.started_in) == {"first", "second"}


def test_services_keep_what_python_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "imported.py").write_text("")
    run([sys.executable, "-c", "import imported"], cwd=tmp_path)
    assert list((tmp_path / "kilonova" / "bytecode").rglob("imported.*.pyc"))
