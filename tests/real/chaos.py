"""Servers are built and deleted while processes are killed; afterwards every server has come to an end, in time."""

from __future__ import annotations

import abc
import os
import random
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from kilonova.db.api.tables import BUILD_REQUESTS, INSTANCE_MAPPINGS
from kilonova.db.flow_tables import KN_FLOW

SERVERS = int(os.environ.get("CHAOS_SERVERS", "50"))
SECONDS = 120.0
"""From the last restart until everything has come to an end and all records agree."""

LEASES: Mapping[str, Any] = {"flow_lease": 15, "reconcile_interval": 10, "reconcile_grace": 10}
"""Options of [kilonova]: the times for which the promise holds."""
BEATS: Mapping[str, Any] = {"rpc_response_timeout": 20, "service_down_time": 30}
"""Options of [DEFAULT], likewise."""
FAKE: Mapping[str, Any] = {
    "fake_latency": "spawn:1.0,destroy:0.3",
    "fake_vcpus": 200,
    "fake_memory_mb": 65536,
    "fake_local_gb": 1000,
}
"""Hosts with room for all, on which a build takes its time."""


def dice() -> random.Random:
    """Random numbers; CHAOS_SEED repeats those of an earlier run."""
    seed = os.environ.get("CHAOS_SEED") or secrets.token_hex(4)
    print(f"CHAOS_SEED={seed}")
    return random.Random(seed)


class Target(abc.ABC):
    """A cloud whose processes of ours can be killed and started by name."""

    url: str
    """Of the compute API, with the version."""

    @abc.abstractmethod
    def kill(self, name: str) -> None: ...

    @abc.abstractmethod
    def start(self, name: str) -> None:
        """Start it again; it need not be ready when this returns."""

    @abc.abstractmethod
    def headers(self) -> Mapping[str, str]:
        """Of an administrator's request."""

    @abc.abstractmethod
    def wish(self) -> Mapping[str, Any]:
        """What a new server is made of: flavor, image, networks."""

    @abc.abstractmethod
    def disagreements(self) -> list[str]:
        """What the records say differently from one another; empty is good."""

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, body); status 0 while the API is away."""
        headers = {"OpenStack-API-Version": "compute 2.96", **self.headers()}
        data = None if body is None else msgspec.json.encode(body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                text = answer.read()
                return answer.status, msgspec.json.decode(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, None

    def create(self, name: str) -> str | None:
        status, answer = self.request("POST", "/servers", {"server": {"name": name, **self.wish()}})
        assert status in (0, 202, 503), (status, answer)
        return answer["server"]["id"] if status == 202 else None

    def servers(self) -> dict[str, dict[str, Any]]:
        until = time.monotonic() + 60
        while True:
            status, answer = self.request("GET", "/servers/detail")
            if status == 200:
                return {server["id"]: server for server in answer["servers"]}
            assert time.monotonic() < until, (status, answer)
            time.sleep(0.5)

    def settled(self) -> bool:
        return all(
            one["OS-EXT-STS:task_state"] is None and one["status"] in ("ACTIVE", "ERROR")
            for one in self.servers().values()
        )

    def until(self, what: str, test: Callable[[], Any], seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not (found := test()):
            late = time.monotonic() > ends
            assert not late, f"{what}: not within {seconds:.0f} s: {self.unsettled()} {self.disagreements()}"
            time.sleep(1)
        assert found

    def unsettled(self) -> list[str]:
        """Servers on their way, for the message of a test that fails."""
        names = ("id", "status", "OS-EXT-STS:task_state", "OS-EXT-SRV-ATTR:host")
        shown = [{name: one[name] for name in names} for one in self.servers().values()]
        return [str(one) for one in shown if one["OS-EXT-STS:task_state"] or one["status"] not in ("ACTIVE", "ERROR")]


def clear(cloud: Target) -> None:
    """Nothing is left of what an earlier test made."""
    for server in cloud.servers():
        cloud.request("DELETE", f"/servers/{server}")
    cloud.until("nothing left of earlier tests", lambda: not (cloud.servers() or cloud.disagreements()), SECONDS)


def storm(cloud: Target, victims: Sequence[str], rng: random.Random, servers: int = SERVERS) -> None:
    """Build and delete so many servers while one of the victims dies now and then; what is promised holds.

    A server whose create got no answer may exist all the same, so there can be some more.
    """
    for number in range(servers):
        _perhaps_kill(cloud, victims, rng)
        while cloud.create(f"n{number}") is None:
            time.sleep(0.3)
    _comes_to_an_end(cloud, victims, rng, "builds", cloud.settled)
    shown = cloud.servers()
    states = [one["status"] for one in shown.values()]
    print(*victims, "builds:", {state: states.count(state) for state in sorted(set(states))}, "of", servers)
    assert all(one.get("fault") for one in shown.values() if one["status"] == "ERROR")
    assert states.count("ACTIVE") > len(states) // 2

    for server in shown:
        cloud.until("deletion", lambda server=server: _delete(cloud, server), 60)
        _perhaps_kill(cloud, victims, rng)
    _comes_to_an_end(cloud, victims, rng, "deletions", lambda: not cloud.servers())


def _comes_to_an_end(
    cloud: Target, victims: Sequence[str], rng: random.Random, what: str, ended: Callable[[], bool]
) -> None:
    _kill(cloud, victims, rng)
    restarted = time.monotonic()
    cloud.until(what, ended, SECONDS)
    left = max(1.0, restarted + SECONDS - time.monotonic())
    cloud.until(f"agreement after {what}", lambda: not cloud.disagreements(), left)
    print(*victims, what, f"came to an end {time.monotonic() - restarted:.0f} s after the last restart")


def _delete(cloud: Target, server: str) -> bool:
    status, answer = cloud.request("DELETE", f"/servers/{server}")
    assert status in (0, 204, 404, 503), (status, answer)
    return status in (204, 404)


def _perhaps_kill(cloud: Target, victims: Sequence[str], rng: random.Random) -> None:
    if rng.random() < 0.12:
        _kill(cloud, victims, rng)


def _kill(cloud: Target, victims: Sequence[str], rng: random.Random) -> None:
    victim = rng.choice(victims)
    time.sleep(rng.random())
    cloud.kill(victim)
    time.sleep(rng.random() * 2)
    cloud.start(victim)


def differences(
    records: Mapping[str, Any], allocations: Mapping[str, Collection[str]], ports: Sequence[str]
) -> list[str]:
    """Of the records of servers (`vm_state`, `host`), hosts of their allocations, and owners of ports."""
    active = {uuid for uuid, row in records.items() if row.vm_state == "active"}
    found = [
        f"allocation of {uuid}: record {records.get(uuid)}, placement {allocations.get(uuid)}"
        for uuid in active ^ set(allocations)
    ]
    found += [
        f"{uuid} is on {records[uuid].host}, its allocation on {allocations[uuid]}"
        for uuid in active & set(allocations)
        if list(allocations[uuid]) != [records[uuid].host]
    ]
    found += [f"port of {uuid}: record {records.get(uuid)}" for uuid in active ^ set(ports)]
    return found + [f"{uuid} has more than one port" for uuid in set(ports) if ports.count(uuid) > 1]


WISHES = sa.select(BUILD_REQUESTS.c.instance_uuid)
MAPPINGS = sa.select(INSTANCE_MAPPINGS.c.instance_uuid, INSTANCE_MAPPINGS.c.cell_id).where(
    sa.not_(INSTANCE_MAPPINGS.c.queued_for_delete)
)
LIVE_FLOWS = sa.select(KN_FLOW.c.op, KN_FLOW.c.subject_id, KN_FLOW.c.state).where(KN_FLOW.c.active_key.is_not(None))


def on_the_way(records: Mapping[str, Any], wishes: Iterable[Any], mappings: Iterable[Any]) -> list[str]:
    """What only a server that is being built or deleted may have: a task, a build request, no cell.

    Of the records of servers (`task_state`), and what WISHES and MAPPINGS find.
    """
    found = [f"{uuid} is still {row.task_state}" for uuid, row in records.items() if row.task_state]
    found += [f"build request of {row.instance_uuid}" for row in wishes]
    mapped = {row.instance_uuid: row.cell_id for row in mappings}
    found += [f"{uuid} is mapped, record {records.get(uuid)}" for uuid in {*mapped} ^ {*records}]
    return found + [f"{uuid} is mapped to no cell" for uuid, cell in mapped.items() if cell is None]


def live_flows(rows: Iterable[Any]) -> list[str]:
    """Of what LIVE_FLOWS finds."""
    return [f"flow {row.op} of {row.subject_id} is {row.state}" for row in rows]


def misplaced_guests(records: Mapping[str, Any], states: Mapping[str, Path]) -> list[str]:
    """Of the records (`vm_state`, `host`) and each host's folder, where the fake hypervisors keep guests in files."""
    here = {
        msgspec.json.decode(file.read_bytes())["uuid"]: host
        for host, folder in states.items()
        for file in (folder / "fake-guests").glob("*.json")
    }
    active = {uuid: row.host for uuid, row in records.items() if row.vm_state == "active"}
    return [
        f"guest of {uuid} is on {here.get(uuid)}, record {records.get(uuid)}"
        for uuid in {*here} | {*active}
        if here.get(uuid) != active.get(uuid)
    ]
