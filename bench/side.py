"""One of the two compute services under measurement."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import requests


@dataclasses.dataclass(frozen=True)
class Side:
    """Where a running compute service is reached.

    `pids` maps a service's name to the pid of its first process; children count with it.
    """

    name: str
    compute_url: str
    """Base of the API with the version, e.g. http://127.0.0.1:8774/v2.1"""
    api_database: str
    cell_database: str
    pids: Mapping[str, int]
    started_in: Mapping[str, float]
    """Seconds from the start of a service's process until it was ready."""


class Compute:
    """A thin client that adds nothing to the time measured: one kept connection, JSON in and out."""

    def __init__(self, side: Side, token: str, microversion: str = "2.96") -> None:
        self.side = side
        self.http = requests.Session()
        self.http.headers.update(
            {
                "X-Auth-Token": token,
                "OpenStack-API-Version": f"compute {microversion}",
                "Accept": "application/json",
            }
        )

    def get(self, path: str) -> Any:
        answer = self.http.get(self.side.compute_url + path, timeout=300)
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self.http.post(self.side.compute_url + path, json=body, timeout=300)
        if answer.status_code >= 400:
            raise RuntimeError(f"{self.side.name}: POST {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()

    def delete(self, path: str) -> None:
        answer = self.http.delete(self.side.compute_url + path, timeout=300)
        if answer.status_code not in (204, 404):
            raise RuntimeError(f"{self.side.name}: DELETE {path}: {answer.status_code} {answer.text[:500]}")


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    return found


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    children = _children()
    pids, queue = [], [pid]
    while queue:
        one = queue.pop()
        pids.append(one)
        queue += children.get(one, [])
    return pids


def memory_mib(pid: int) -> float:
    """Proportional set size of a process and all its children, in MiB."""
    total = 0
    for one in tree(pid):
        try:
            rollup = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024
