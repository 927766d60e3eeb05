"""Many builds, then many deletes, at once, on a cell with a bus of its own, while the conductors stand still in turn:
every server comes to its end, and all records agree."""

from __future__ import annotations

import collections
import concurrent.futures
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from tests.needs import needs
from tests.real import broker, chaos
from tests.real.processes import HOSTS, PROJECT, Cloud, databases, running

pytestmark = [
    pytest.mark.real,
    pytest.mark.chaos,
    pytest.mark.timeout(900),
    needs("rabbitmq", "mariadb"),
]

SERVERS = int(os.environ.get("CHAOS_SERVERS", "200"))
AT_ONCE = 16
STILL = 10.0
"""Seconds for which a conductor stands still: its leases and its calls may outlast that, or not."""
CONDUCTORS = ("conductor", "conductor-cell1")


class SplitCloud(Cloud):
    """The cell's conductor and hosts are on the cell's bus, the others are not. `knows_api`: whether the file of the
    cell's conductor has [api_database]."""

    def __init__(self, *where: Any, knows_api: bool) -> None:
        self.knows_api = knows_api
        super().__init__(*where)

    def configure(self) -> None:
        upper = self.sections()
        upper["database"] = {"connection": self.urls["cell0"]}
        self.write("nova", upper)
        cell = self.sections()
        cell["DEFAULT"] |= {"transport_url": self.cell_bus, "host": "control-cell1"}
        if not self.knows_api:
            del cell["api_database"]
        self.write("cell1", cell)
        for host in HOSTS:
            own = {name: options for name, options in cell.items() if not name.endswith("database")}
            self.write(host, own | {"DEFAULT": {**cell["DEFAULT"], "host": host, "state_path": self.folder / host}})

    def commands(self) -> dict[str, list[str]]:
        own = {host: self.command("compute", host) for host in HOSTS}
        return super().commands() | own | {"conductor-cell1": self.command("conductor", "cell1")}

    def limit(self, servers: int) -> None:
        """The project's quota."""
        body = {"quota_set": {"instances": servers}}
        status, answer = self.request("PUT", f"/os-quota-sets/{PROJECT}", body)
        assert status == 200, answer

    def used(self) -> dict[str, int]:
        """What counts against the project's quota."""
        status, answer = self.request("GET", f"/os-quota-sets/{PROJECT}/detail")
        assert status == 200, answer
        return {name: answer["quota_set"][name]["in_use"] for name in ("instances", "cores", "ram")}


@pytest.fixture(scope="module", params=[False, True], ids=["cell-file-without-api", "cell-file-with-api"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SplitCloud]:
    folder = tmp_path_factory.mktemp("burst")
    (folder / "run").mkdir()
    with (
        databases(folder / "db") as database,
        broker.rabbitmq(folder / "bus") as bus,
        broker.rabbitmq(folder / "cell-bus") as cell_bus,
    ):
        made = SplitCloud(folder / "run", database, bus, cell_bus, knows_api=request.param)
        with running(made):
            yield made


@pytest.mark.parametrize("limit", [SERVERS * 5 // 4, SERVERS * 3 // 4], ids=["quota-above", "quota-below"])
def test_a_burst_of_builds_then_of_deletes(cloud: SplitCloud, limit: int) -> None:
    chaos.clear(cloud)
    cloud.limit(limit)
    answers = burst(cloud, lambda number: cloud.request("POST", "/servers", wish(cloud, number)), range(SERVERS))
    live = min(limit, SERVERS)
    counted = collections.Counter(status for status, _ in answers)
    assert counted == collections.Counter({202: live, 403: SERVERS - live}), counted
    assert all("Quota exceeded for instances" in str(answer) for status, answer in answers if status == 403)

    cloud.until("builds", cloud.settled, chaos.SECONDS)
    shown = cloud.servers()
    assert {*shown} == {answer["server"]["id"] for status, answer in answers if status == 202}
    assert not {uuid: one.get("fault") for uuid, one in shown.items() if one["status"] != "ACTIVE"}
    agreed(cloud, live)

    gone = burst(cloud, lambda server: cloud.request("DELETE", f"/servers/{server}"), shown)
    assert {status for status, _ in gone} == {204}, gone
    cloud.until("deletions", lambda: not cloud.servers(), chaos.SECONDS)
    agreed(cloud, 0)


def wish(cloud: SplitCloud, number: int) -> dict[str, Any]:
    return {"server": {"name": f"n{number}", **cloud.wish()}}


def burst(cloud: SplitCloud, ask: Callable[[Any], tuple[int, Any]], things: Iterable[Any]) -> list[tuple[int, Any]]:
    """All answers. Once a few are there, one conductor after the other stands still for a while."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(ask, thing) for thing in things]
        concurrent.futures.wait(asked[: len(asked) // 8])
        for conductor in CONDUCTORS:
            cloud.processes.stand_still(conductor, STILL)
        return [each.result() for each in asked]


def agreed(cloud: SplitCloud, live: int) -> None:
    cloud.until("agreement", lambda: not cloud.disagreements(), chaos.SECONDS)
    cloud.until("the end of all flows", lambda: not cloud.flows(), chaos.SECONDS)
    assert cloud.used() == {"instances": live, "cores": live, "ram": 64 * live}
