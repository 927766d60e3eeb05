"""What each daemon of a cloud says when it is asked."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from kilonova.cloud import probes
from kilonova.cloud.daemons import Daemon, Supervisor, held
from kilonova.cloud.site import LOOPBACK, PORTS

State = Literal["answers", "runs", "silent", "stopped", "down"]
MEANING: Mapping[State, str] = {
    "answers": "it was asked and has answered",
    "runs": "it runs; there is no way to ask it",
    "silent": "it runs and does not answer",
    "stopped": "a signal holds it",
    "down": "it does not run",
}
GOOD: frozenset[State] = frozenset({"answers", "runs"})
APIS = ("keystone", "placement", "glance", "neutron", "cinder", "compute", "metadata")
ASK_SECONDS = 8.0
"""For all daemons together, which are asked at once."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """How a daemon is. Memory is in MiB."""

    name: str
    pid: int | None
    state: State
    rss: int | None
    pss: int | None
    log: str

    @property
    def good(self) -> bool:
        return self.state in GOOD


def standings(supervisor: Supervisor, daemons: Sequence[Daemon], within: float = ASK_SECONDS) -> list[Standing]:
    """How each of the daemons is, after at most so many seconds."""
    pids = {daemon.name: supervisor.pid(daemon.name) for daemon in daemons}
    questions = {
        daemon.name: daemon.question
        for daemon in daemons
        if daemon.question and (pid := pids[daemon.name]) and not held(pid)
    }
    answers = ask_all(questions, within)
    return [standing(supervisor, daemon, pids[daemon.name], answers.get(daemon.name)) for daemon in daemons]


def standing(supervisor: Supervisor, daemon: Daemon, pid: int | None, answer: bool | None) -> Standing:
    size = supervisor.memory(daemon.name)
    return Standing(
        name=daemon.name,
        pid=pid,
        state=state_of(daemon, pid, answer),
        rss=size.rss if size else None,
        pss=size.pss if size else None,
        log=str(supervisor.best_log(daemon.name)),
    )


def state_of(daemon: Daemon, pid: int | None, answer: bool | None) -> State:
    if not pid:
        return "down"
    if held(pid):
        return "stopped"
    if daemon.question is None:
        return "runs"
    return "answers" if answer else "silent"


def ask_all(questions: Mapping[str, Callable[[], bool]], within: float) -> dict[str, bool]:
    """The answers that come in time. A question that hangs holds nobody: its thread is left behind."""
    # A bus that is away is told to the log by its library; here the table says it.
    logging.getLogger("oslo").addHandler(logging.NullHandler())
    logging.getLogger("oslo").propagate = False
    answers: dict[str, bool] = {}

    def ask(name: str, question: Callable[[], bool]) -> None:
        answers[name] = question()

    threads = [
        threading.Thread(target=ask, args=each, name=f"ask {each[0]}", daemon=True) for each in questions.items()
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + within
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(answers)


@dataclasses.dataclass(frozen=True)
class Api:
    """An API as anybody on the machine finds it."""

    name: str
    url: str
    state: State


def usual_apis(within: float = ASK_SECONDS) -> list[Api]:
    """Which APIs answer at their usual ports: all that can be told without the cloud's files."""
    urls = {name: f"http://{LOOPBACK}:{PORTS[name]}/" for name in APIS}
    answers = ask_all({name: probes.http_answers(url, within) for name, url in urls.items()}, within)
    return [Api(name, url, "answers" if answers.get(name) else "silent") for name, url in urls.items()]
