"""Why a host was chosen, or none: kept as data for users (counts), admins (host by host), logs and tests."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import threading
from typing import Any

from kilonova.base import clock
from kilonova.scheduler.snapshot.host import Host

MOST_HOSTS = 50
"""Hosts named per reason in what travels; counts are always complete."""

MOST_REASONS = 30
"""Reasons told of one filter, the most frequent ones: some name a time or an address and differ from host to host."""

TOP = 10
"""Weighed hosts whose shares are kept."""


@dataclasses.dataclass
class Step:
    """One filter: hosts before and after it, and why each of the others went."""

    name: str
    before: int
    after: int
    reasons: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """{reason: hosts}"""

    def object(self, reason: str, host: str) -> None:
        self.reasons.setdefault(reason, []).append(host)

    def told(self) -> tuple[list[tuple[str, list[str]]], str | None]:
        """The reasons with their hosts, and what is to be said of those left out."""
        frequent = sorted(self.reasons.items(), key=lambda each: len(each[1]), reverse=True)
        left_out = frequent[MOST_REASONS:]
        hosts = sum(len(each) for _, each in left_out)
        return frequent[:MOST_REASONS], f"{len(left_out)} more reasons for {hosts} hosts" if left_out else None


@dataclasses.dataclass(frozen=True)
class Weight:
    """A host's sum, and each weigher's share (multiplier times normalized weight; zero shares left out)."""

    host: str
    node: str
    total: float
    shares: dict[str, float]


@dataclasses.dataclass
class Decision:
    """One server's way through the scheduler."""

    instance_uuid: str
    request_id: str | None = None
    when: datetime.datetime = dataclasses.field(default_factory=clock.naive_now)
    candidates: int = 0
    """Hosts that Placement offered."""
    query: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    steps: list[Step] = dataclasses.field(default_factory=list)
    weights: list[Weight] = dataclasses.field(default_factory=list)
    claims: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """(host, outcome)"""
    chosen: str | None = None

    def summary(self) -> str:
        """For the user: counts, no names."""
        if not self.candidates:
            return "no host offers the requested resources and traits"
        parts = [f"{self.candidates} {_hosts(self.candidates)} had room"]
        parts += [f"{step.name} left {step.after} of {step.before}" for step in self.steps if step.after < step.before]
        refused = sum(1 for _, outcome in self.claims if outcome != CLAIMED)
        if refused:
            parts.append(f"{refused} {_hosts(refused)} filled up meanwhile")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """For admins and logs: plain data, long lists of hosts cut."""
        return {
            "instance_uuid": self.instance_uuid,
            "request_id": self.request_id,
            "when": self.when.isoformat(),
            "candidates": self.candidates,
            "query": [list(pair) for pair in self.query],
            "filters": [
                {
                    "name": step.name,
                    "before": step.before,
                    "after": step.after,
                    "reasons": [
                        {"reason": reason, "count": len(hosts), "hosts": sorted(hosts)[:MOST_HOSTS]}
                        for reason, hosts in step.told()[0]
                    ],
                    "left_out": step.told()[1],
                }
                for step in self.steps
            ],
            "weights": [dataclasses.asdict(weight) for weight in self.weights],
            "claims": [{"host": host, "outcome": outcome} for host, outcome in self.claims],
            "chosen": self.chosen,
            "text": self.details(),
        }

    def details(self) -> str:
        """For the fault's details: one line per filter and reason."""
        lines = [f"Placement offered {self.candidates} {_hosts(self.candidates)} for {dict(self.query)}"]
        for step in self.steps:
            lines.append(f"{step.name}: {step.after} of {step.before} left")
            told, left_out = step.told()
            for reason, hosts in told:
                named = ", ".join(sorted(hosts)[:MOST_HOSTS])
                more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
                lines.append(f"  {reason}: {named}{more}")
            if left_out:
                lines.append(f"  and {left_out}")
        lines.extend(f"claim on {host}: {outcome}" for host, outcome in self.claims)
        return "\n".join(lines)


CLAIMED = "claimed"
FULL = "no room any more"


def _hosts(count: int) -> str:
    return "host" if count == 1 else "hosts"


class Record:
    """The last decisions, newest first."""

    def __init__(self, size: int = 200) -> None:
        self._lock = threading.Lock()
        self._decisions: collections.deque[Decision] = collections.deque(maxlen=size)

    def add(self, decision: Decision) -> None:
        with self._lock:
            self._decisions.appendleft(decision)

    def last(self, instance_uuid: str | None = None) -> list[Decision]:
        """All that are kept, or those about one server."""
        with self._lock:
            return [each for each in self._decisions if instance_uuid in (None, each.instance_uuid)]


def label(host: Host) -> str:
    return host.host if host.host == host.nodename else f"{host.host}/{host.nodename}"
