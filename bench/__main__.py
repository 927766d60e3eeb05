"""`./run python -m bench`: the peer and kilonova on the same services, one after the other, and the ratios.

--out FOLDER     where bench.json and bench.png go (default bench/out)
--servers N      servers built at once (default 100)
--peer FOLDER    an environment with Nova 34.0.0; made in the cache when none is given
--only start     only start-up, each service alone, and the memory of services that wait for work; writes nothing
--rounds N       starts of each service, of which the median counts (default 5 with --only start, else 1)
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from bench import measure, report, start, work
from bench.saying import say
from bench.side import Side, memory_mib
from kilonova.cloud import library

ROOT = pathlib.Path(__file__).parents[1]
FLAVOR = "1"
START_ROUNDS = 5


def peer_environment(given: pathlib.Path | None) -> pathlib.Path:
    """The peer's environment, which `./run peer` makes or completes."""
    chosen = {"PEER": str(given)} if given else {}
    command = [ROOT / "run", "peer"]
    made = subprocess.run(command, env=os.environ | chosen, check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(made.stdout.strip())


def _side(name: str, running: library.Running, started_in: Mapping[str, float]) -> Side:
    return Side(
        name=name,
        compute_url=running.compute_url,
        api_database=running.api_database,
        cell_database=running.cell_database,
        pids=running.pids,
        started_in=started_in,
    )


def _sources(lab: library.Surroundings, running: library.Running) -> work.Sources:
    logs = {name: lab.site.access_log(name) for name in work.REQUESTED}
    return work.Sources(logs, lab.pids(), running.api_database)


def _request(lab: library.Surroundings) -> measure.Request:
    demo = lab.rest("demo", "demo")
    images = demo.get(lab.site.url("glance", "/v2/images"))["images"]
    networks = demo.get(lab.site.url("neutron", "/v2.0/networks"))["networks"]
    private = next(n["id"] for n in networks if n["name"] == "private")
    return measure.Request(FLAVOR, images[0]["id"], private)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bench/out"))
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--peer", type=pathlib.Path)
    parser.add_argument("--only", choices=["start"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--port-offset", type=int, default=10000)
    return parser.parse_args()


def _sides(lab: library.Surroundings, peer: pathlib.Path) -> Iterator[tuple[str, library.Running]]:
    for name, environment in (("peer", peer), ("kilonova", None)):
        say(f"{name}: starting its services")
        with lab.compute(peer=environment) as running:
            yield name, running


def only_start(lab: library.Surroundings, peer: pathlib.Path, rounds: int) -> dict[str, report.Figures]:
    """Seconds until each service is of use, and MiB that it takes while it waits for work."""
    figures: dict[str, report.Figures] = {}
    for name, running in _sides(lab, peer):
        say(f"{name}: starting each of them {rounds} times")
        seconds = start.seconds(running, rounds)
        pids = lab.described(running.site, running.service).pids
        started = {f"start_s.{one}": value for one, value in seconds.items()}
        figures[name] = started | {f"pss_mib.{one}": memory_mib(pid) for one, pid in pids.items()}
    return figures


def everything(
    lab: library.Surroundings, peer: pathlib.Path, options: argparse.Namespace
) -> tuple[dict[str, report.Figures], dict[str, report.Figures]]:
    """All figures of both sides, and the work per build."""
    figures: dict[str, report.Figures] = {}
    per_build: dict[str, report.Figures] = {}
    for name, running in _sides(lab, peer):
        say(f"{name}: starting each of them again")
        started_in = start.seconds(running, options.rounds or 1)
        running = lab.described(running.site, running.service)
        figures[name], per_build[name] = measure.run(
            _side(name, running, started_in),
            _sources(lab, running),
            lab.rest("demo", "demo").token,
            _request(lab),
            count=options.servers,
        )
    return figures, per_build


def main() -> int:
    options = _options()
    if sys.executable.startswith("/tmp"):
        say("below /tmp stevedore keeps no cache: our services start 0.2 s later than elsewhere")
    say("the peer's environment")
    peer = peer_environment(options.peer)
    place = {"profile": "full", "computes": 2, "port_offset": options.port_offset, "access_logs": True}
    say("databases, bus, Keystone, Placement, Glance, Neutron, Cinder: a few minutes the first time")
    with (
        tempfile.TemporaryDirectory(prefix="kilonova-bench-") as folder,
        library.surroundings(pathlib.Path(folder) / "state", **place) as lab,
    ):
        if options.only:
            figures = only_start(lab, peer, options.rounds or START_ROUNDS)
            report.show(figures["kilonova"], figures["peer"])
            return 0
        figures, per_build = everything(lab, peer, options)
    report.show(figures["kilonova"], figures["peer"])
    report.show_work(per_build["kilonova"], per_build["peer"])
    report.write(options.out, figures, per_build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
