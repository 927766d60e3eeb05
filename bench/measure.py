"""The measurements: what a user waits for, and what an operator pays for."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import seed, work
from bench.saying import say
from bench.side import Compute, Side, memory_mib

BUILD_DEADLINE = 600
"""Seconds after which servers that are still building count as a failure of the run."""

SINGLE_BUILDS = 7
"""Builds one after the other; their median counts, since one alone says what the machine did beside it."""

MODELS = 6
"""Servers that are built until one is in the cell that the bench looks at."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What to boot: ids that both sides know alike."""

    flavor: str
    image: str
    network: str

    def body(self, name: str) -> Mapping[str, Any]:
        return {
            "server": {
                "name": name,
                "flavorRef": self.flavor,
                "imageRef": self.image,
                "networks": [{"uuid": self.network}],
            }
        }


def median_ms(call: Callable[[], object], times: int, warm: int = 3) -> float:
    for _ in range(warm):
        call()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def _status(compute: Compute, server: str) -> str:
    return str(compute.get(f"/servers/{server}")["server"]["status"])


def wait_built(compute: Compute, servers: list[str]) -> None:
    """Raises RuntimeError for a server in ERROR or a build that takes too long."""
    waiting, ends = set(servers), time.monotonic() + BUILD_DEADLINE
    while waiting:
        if time.monotonic() > ends:
            raise RuntimeError(f"{compute.side.name}: {len(waiting)} servers are not built after {BUILD_DEADLINE} s")
        page = compute.get("/servers/detail?limit=1000")["servers"]
        states = {s["id"]: s["status"] for s in page if s["id"] in waiting}
        if broken := [s for s in page if s["id"] in waiting and s["status"] == "ERROR"]:
            why = broken[0].get("fault", {}).get("message")
            raise RuntimeError(f"{compute.side.name}: {len(broken)} servers in ERROR, e.g. {broken[0]['id']}: {why}")
        waiting -= {s for s, status in states.items() if status == "ACTIVE"}
        time.sleep(0.2)


def wait_gone(compute: Compute, servers: list[str]) -> None:
    gone, ends = set(servers), time.monotonic() + BUILD_DEADLINE
    while gone & {s["id"] for s in compute.get("/servers?limit=1000")["servers"]}:
        if time.monotonic() > ends:
            raise RuntimeError(f"{compute.side.name}: servers are not deleted after {BUILD_DEADLINE} s")
        time.sleep(0.5)


@dataclasses.dataclass(frozen=True)
class Built:
    """`accept_ms`: median until a POST is accepted; `seconds`: from the first POST to all ACTIVE; `work`: per build."""

    accept_ms: float
    seconds: float
    work: Mapping[str, float]


def builds(compute: Compute, sources: work.Sources, request: Request, count: int, parallel: int = 8) -> Built:
    """Build `count` servers, and delete them."""

    def create(n: int) -> tuple[str, float]:
        began = time.perf_counter()
        server = compute.post("/servers", request.body(f"bench-{n}"))["server"]["id"]
        return server, (time.perf_counter() - began) * 1000

    before = work.read(sources)
    began = time.perf_counter()
    with ThreadPoolExecutor(parallel) as pool:
        made = list(pool.map(create, range(count)))
    servers = [server for server, _ in made]
    wait_built(compute, servers)
    took = time.perf_counter() - began
    done = work.since(sources, before, count)
    for server in servers:
        compute.delete(f"/servers/{server}")
    wait_gone(compute, servers)
    return Built(statistics.median(ms for _, ms in made), took, done)


def _model(compute: Compute, request: Request) -> str:
    """A server in the cell that is filled with its copies; schedulers put every second one into another."""
    built: list[str] = []
    while not built or not seed.holds(compute.side.cell_database, built[-1]):
        if len(built) == MODELS:
            raise RuntimeError(f"{compute.side.name}: of {MODELS} servers none came to the cell that is looked at")
        built.append(compute.post("/servers", request.body("model"))["server"]["id"])
        wait_built(compute, built[-1:])
    strays = built[:-1]
    for server in strays:
        compute.delete(f"/servers/{server}")
    wait_gone(compute, strays)
    return built[-1]


def run(
    side: Side, sources: work.Sources, token: str, request: Request, *, page: int = 1000, count: int = 100
) -> tuple[dict[str, float], Mapping[str, float]]:
    """All figures of one side, by name, and the work per build (see `work.since`) of the biggest build.

    Times in ms or s as the name says, memory in MiB.
    """
    compute = Compute(side, token)
    say(f"{side.name}: a server to read and to copy")
    figures = {f"start_s.{name}": seconds for name, seconds in side.started_in.items()}
    model = _model(compute, request)

    accepted: list[str] = []

    def accept() -> None:
        accepted.append(compute.post("/servers", request.body("accept"))["server"]["id"])

    say(f"{side.name}: GET and POST of one server")
    figures["get_server_ms"] = median_ms(lambda: compute.get(f"/servers/{model}"), 30)
    figures["post_server_ms"] = median_ms(accept, 8, warm=1)
    wait_built(compute, accepted)
    for server in accepted:
        compute.delete(f"/servers/{server}")
    wait_gone(compute, accepted)

    say(f"{side.name}: a page of {page} servers")
    copies = seed.clone_server(side.api_database, side.cell_database, model, page - 1)
    shown = len(compute.get(f"/servers/detail?limit={page}")["servers"])
    if shown != page:
        raise RuntimeError(f"{side.name}: the detail page shows {shown} servers, not {page}")
    figures["detail_page_ms"] = median_ms(lambda: compute.get(f"/servers/detail?limit={page}"), 3, warm=1)
    seed.remove(side.api_database, side.cell_database, copies)

    # The quota of servers is as large as the biggest build.
    compute.delete(f"/servers/{model}")
    wait_gone(compute, [model])
    say(f"{side.name}: {SINGLE_BUILDS} builds, one after the other")
    one = statistics.median(builds(compute, sources, request, 1).seconds for _ in range(SINGLE_BUILDS))
    say(f"{side.name}: {count} builds at once")
    many = builds(compute, sources, request, count)
    figures |= {"build_1_s": one, f"build_{count}_s": many.seconds, f"post_under_{count}_ms": many.accept_ms}
    memory = {f"pss_mib.{name}": memory_mib(pid) for name, pid in side.pids.items()}
    return figures | memory | {"pss_mib.total": sum(memory.values())}, many.work
