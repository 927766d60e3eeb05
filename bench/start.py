"""How long a service takes until it is of use, seen from outside and alike on both sides.

Each daemon is ended and started again by itself, while all others run. An API is of use when it answers HTTP; a
conductor, scheduler or compute host when it answers `ping` (interface `baseapi`, which both sides serve) under its own
server name on its bus. Both sides begin to serve the bus only when they can take orders: a compute host then has read
its record and reported its node. That a process runs, or has written a heartbeat, would say less.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping

from kilonova import conf
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.library import Running
from kilonova.cloud.probes import http_answers
from kilonova.contract import context
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import BaseClient

PATIENCE = 120.0
"""Seconds."""

Answer = Callable[[], object]


def seconds(running: Running, rounds: int = 1) -> dict[str, float]:
    """Seconds from the start of each daemon's process until it is of use, by its name; medians of so many rounds."""
    bus = Bus(conf.load(["--config-file", os.devnull]), running.site.transport("nova"))
    try:
        probes = _probes(running, bus)
        daemons = [daemon for daemon in running.service.daemons() if daemon.name in probes]
        taken = [
            {daemon.name: _restart(running, daemon, probes[daemon.name]) for daemon in daemons} for _ in range(rounds)
        ]
    finally:
        bus.close()
    return {daemon.name: statistics.median(one[daemon.name] for one in taken) for daemon in daemons}


def _restart(running: Running, daemon: Daemon, answer: Answer) -> float:
    supervisor = running.service.supervisor
    supervisor.stop(daemon.name)
    began = time.monotonic()
    supervisor.spawn(daemon)
    answer()
    return time.monotonic() - began


def _probes(running: Running, bus: Bus) -> Mapping[str, Answer]:
    """What returns as soon as the daemon of that name answers."""
    service, site = running.service, running.site
    probes: dict[str, Answer] = {
        "nova-api": _http(site.url("compute", "/")),
        "nova-metadata": _http(site.url("metadata", "/")),
    }
    return probes | {
        name: _ping(bus.at(site.transport(vhost)), topic, server)
        for name, (vhost, topic, server) in service.on_the_bus().items()
    }


def _ping(bus: Bus, topic: str, server: str) -> Answer:
    """One call; its message waits in the server's queue, which outlives the process."""
    return lambda: BaseClient(bus, topic).ping(context.admin(), "", timeout=PATIENCE, host=server)


def _http(url: str) -> Answer:
    answers = http_answers(url)

    def wait() -> None:
        ends = time.monotonic() + PATIENCE
        while not answers():
            if time.monotonic() > ends:
                raise RuntimeError(f"{url} did not answer within {PATIENCE:.0f} s")
            time.sleep(0.02)

    return wait
