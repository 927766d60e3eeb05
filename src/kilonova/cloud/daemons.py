"""Daemons in process groups of their own, known by pid files.

A pid file holds the pid and the start time of the process (field 22 of `/proc/PID/stat`), so that a recycled pid is
never taken for one of ours.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from kilonova.cloud.commands import PRIVATE, environment
from kilonova.cloud.errors import CloudError
from kilonova.cloud.site import Site, open_private


def at_once() -> bool:
    """Ready as soon as the process is there."""
    return True


@dataclasses.dataclass(frozen=True)
class Daemon:
    """A process that runs in the foreground. At its start `ready` is asked until it says that the process answers."""

    name: str
    argv: Sequence[object]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ready: Callable[[], bool] = at_once
    asked: Callable[[], bool] | None = None
    """What `status` asks of one that runs, where that is another question than `ready`."""
    ready_within: float = 120
    stop_within: float = 20
    stop_signal: signal.Signals = signal.SIGTERM

    @property
    def question(self) -> Callable[[], bool] | None:
        """Whether it answers now; None for one that cannot be asked."""
        return self.asked or (None if self.ready is at_once else self.ready)


@dataclasses.dataclass(frozen=True)
class Memory:
    """MiB of a process group."""

    processes: int
    rss: int
    pss: int


class Supervisor:
    """Starts and stops the daemons of one cloud, by pid file and nothing else."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.started_in: dict[str, float] = {}
        """Seconds that a daemon took until it answered, of those started here."""

    def pid_file(self, name: str) -> Path:
        return self.site.run / f"{name}.pid"

    def output(self, name: str) -> Path:
        return self.site.log / f"{name}.out"

    def pid(self, name: str) -> int | None:
        """The pid, while the process that we started under this name lives."""
        try:
            pid, ticks = self.pid_file(name).read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if start_ticks(int(pid)) == ticks else None

    def names(self) -> list[str]:
        """Every daemon that has a pid file, in the order in which they were started."""
        files = sorted(self.site.run.glob("*.pid"), key=lambda file: file.stat().st_mtime_ns)
        return [file.stem for file in files]

    def running(self) -> list[str]:
        return [name for name in self.names() if self.pid(name)]

    def start(self, *daemons: Daemon) -> None:
        """Start those that do not run, all at once, and wait until each answers."""
        begin = time.monotonic()
        fresh = {daemon.name for daemon in daemons if self.pid(daemon.name) is None}
        for daemon in daemons:
            if daemon.name in fresh:
                self.spawn(daemon)
        for daemon in daemons:
            self.await_ready(daemon, begin + daemon.ready_within)
            if daemon.name in fresh:
                self.started_in[daemon.name] = time.monotonic() - begin

    def await_ready(self, daemon: Daemon, end: float) -> None:
        while not daemon.ready():
            log = self.best_log(daemon.name)
            if self.pid(daemon.name) is None:
                raise CloudError(f"{daemon.name} ended at its start{self.tail(daemon.name)}", log)
            if time.monotonic() > end:
                raise CloudError(f"{daemon.name} did not answer within {daemon.ready_within:.0f} s", log)
            time.sleep(0.1)

    def spawn(self, daemon: Daemon) -> None:
        self.site.run.mkdir(parents=True, exist_ok=True)
        self.site.log.mkdir(parents=True, exist_ok=True)
        with open_private(self.output(daemon.name)) as out:
            try:
                process = subprocess.Popen(
                    [str(word) for word in daemon.argv],
                    env=environment(daemon.env),
                    cwd=self.site.root,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    umask=PRIVATE,
                )
            except FileNotFoundError as error:
                raise CloudError(f"{daemon.argv[0]} is not installed") from error
        self.pid_file(daemon.name).write_text(f"{process.pid} {start_ticks(process.pid)}\n")

    def stop(self, name: str, within: float = 20, how: signal.Signals = signal.SIGTERM) -> bool:
        """Ask the process group to end, then end it. True when there was something to stop."""
        pid = self.pid(name)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, how)
            wait_until(lambda: reaped(pid), within)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            wait_until(lambda: reaped(pid), 5)
        self.pid_file(name).unlink(missing_ok=True)
        return bool(pid)

    def best_log(self, name: str) -> Path:
        """The service's own log where it has written one, else what it printed."""
        own = self.site.log / f"{name}.log"
        return own if own.exists() and own.stat().st_size else self.output(name)

    def tail(self, name: str, lines: int = 5) -> str:
        try:
            text = self.output(name).read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            return ""
        return ":\n" + "\n".join(text) if text else ""

    def memory(self, name: str) -> Memory | None:
        """RSS and PSS of the process and all its descendants."""
        pid = self.pid(name)
        if pid is None:
            return None
        family = descendants(pid)
        sizes = [size for member in family if (size := process_memory(member)) is not None]
        return Memory(len(sizes), sum(rss for rss, _ in sizes) // 1024, sum(pss for _, pss in sizes) // 1024)


def stat_fields(pid: int) -> list[str] | None:
    """What `/proc/PID/stat` says after the program's name; None for a dead process or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields


def start_ticks(pid: int) -> str | None:
    """Start time of a live process in clock ticks since boot; None for a dead one or a zombie."""
    fields = stat_fields(pid)
    return fields[19] if fields else None


def held(pid: int) -> bool:
    """Whether a signal (SIGSTOP) or a debugger holds the process."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] in ("T", "t")


def reaped(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return start_ticks(pid) is None


def wait_until(true: Callable[[], bool], within: float, pause: float = 0.05) -> bool:
    end = time.monotonic() + within
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    family, queue = [], [pid]
    while queue:
        member = queue.pop()
        family.append(member)
        queue += children.get(member, [])
    return family


def process_memory(pid: int) -> tuple[int, int] | None:
    """(RSS, PSS) in KiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return sizes.get("Rss", 0), sizes.get("Pss", 0)


def stop_all(supervisor: Supervisor, names: Iterable[str], within: float = 20) -> list[str]:
    return [name for name in names if supervisor.stop(name, within)]
