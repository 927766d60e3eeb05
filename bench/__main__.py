"""`./run python -m bench`: the peer and kilonova on the same services, one after the other, and the ratios.

--out FOLDER     where bench.json and bench.png go (default bench/out)
--servers N      servers built at once (default 100)
--peer FOLDER    an environment with Nova 34.0.0; made in the cache when none is given
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from bench import measure, report, start, work
from bench.side import Side
from kilonova.cloud import library, site

PEER = ("nova==34.0.0", "pymysql", "pymemcache", "python-memcached", "uwsgi")
FLAVOR = "1"


def peer_environment(given: pathlib.Path | None) -> pathlib.Path:
    """The peer's environment, made once from the package index."""
    folder = given or site.cache_root() / "peer"
    if not (folder / "bin" / "nova-compute").exists():
        uv = os.environ.get("KILONOVA_UV", "uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
        python = folder / "bin" / "python"
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *PEER], check=True)
    return folder


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bench/out"))
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--peer", type=pathlib.Path)
    parser.add_argument("--port-offset", type=int, default=10000)
    options = parser.parse_args()
    peer = peer_environment(options.peer)
    figures: dict[str, report.Figures] = {}
    per_build: dict[str, report.Figures] = {}
    with tempfile.TemporaryDirectory(prefix="kilonova-bench-") as folder:
        root = pathlib.Path(folder) / "state"
        place = {"profile": "full", "computes": 2, "port_offset": options.port_offset, "access_logs": True}
        with library.surroundings(root, **place) as lab:
            for name, environment in (("peer", peer), ("kilonova", None)):
                with lab.compute(peer=environment) as running:
                    started_in = start.seconds(running)
                    running = lab.described(running.site, running.service)
                    figures[name], per_build[name] = measure.run(
                        _side(name, running, started_in),
                        _sources(lab, running),
                        lab.rest("demo", "demo").token,
                        _request(lab),
                        count=options.servers,
                    )
    report.show(figures["kilonova"], figures["peer"])
    report.show_work(per_build["kilonova"], per_build["peer"])
    report.write(options.out, figures, per_build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
