"""Limits of projects and users, and what counts against them (the quota driver that counts in the databases)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.db.api import key_pairs, quotas
from kilonova.db.cells import Cells
from kilonova.db.engine import Tx
from kilonova.db.quota_usage import NETWORKS, OF_SERVERS, RESOURCES, UNLIMITED, defaults, limits, usage

__all__ = [
    "NETWORKS",
    "OF_SERVERS",
    "RESOURCES",
    "UNLIMITED",
    "Headroom",
    "check_key_pairs",
    "defaults",
    "exceeds",
    "limit_of",
    "limits",
    "server_headrooms",
    "servers_allowed",
    "usage",
]


def limit_of(cells: Cells, conf: cfg.ConfigOpts, project_id: str, resource: str) -> int:
    """One limit of a project."""
    with cells.api.read() as tx:
        return limits(tx, conf, project_id)[resource]


def exceeds(limit: int, wanted: int) -> bool:
    return limit != UNLIMITED and wanted > limit


@dataclass(frozen=True, slots=True)
class Headroom:
    """What a project (or a user in it) may still have: limits and use by resource."""

    limits: Mapping[str, int]
    used: Mapping[str, int]

    def left(self, resource: str) -> float:
        limit = self.limits[resource]
        return float("inf") if limit == UNLIMITED else limit - self.used[resource]

    def over(self, wanted: Mapping[str, int]) -> list[str]:
        """The resources of which more is wanted than is left."""
        return [name for name, amount in wanted.items() if amount > self.left(name)]


def server_headrooms(cells: Cells, conf: cfg.ConfigOpts, context: RequestContext) -> list[Headroom]:
    """What bounds new servers of the caller: the project's limits, and the user's in it if there are such."""
    project_id = context.project_id or ""
    with cells.api.read() as tx:
        of_project = limits(tx, conf, project_id)
        of_user = quotas.quota_get_for_user(tx, project_id, context.user_id or "")
    by_user = {name: of_user[name] for name in OF_SERVERS if name in of_user}
    user_id = context.user_id if by_user else None
    used = usage(cells, project_id, user_id)
    rooms = [Headroom({name: of_project[name] for name in OF_SERVERS}, used["project"])]
    if by_user:
        rooms.append(Headroom({name: by_user.get(name, UNLIMITED) for name in OF_SERVERS}, used["user"]))
    return rooms


def servers_allowed(rooms: Iterable[Headroom], each: Mapping[str, int], low: int, high: int) -> int:
    """How many servers of that size (``cores``, ``ram``) may be made, between ``low`` and ``high``.

    Raises TooManyInstances when not even ``low`` may.
    """
    wanted = {"instances": 1, **each}
    allowed = high
    for room in rooms:
        for name, amount in wanted.items():
            if amount and room.left(name) != float("inf"):
                allowed = min(allowed, int(room.left(name) // amount))
        if allowed < low:
            raise _too_many(room, wanted, low, high)
    return allowed


def _too_many(room: Headroom, each: Mapping[str, int], low: int, high: int) -> exceptions.TooManyInstances:
    asked = {name: amount * high for name, amount in each.items()}
    over = room.over(asked)
    requested = [f"{low}-{high}" if name == "instances" and low != high else str(asked[name]) for name in over]
    return exceptions.TooManyInstances(
        overs=", ".join(over),
        req=", ".join(requested),
        used=", ".join(str(room.used[name]) for name in over),
        allowed=", ".join(str(room.limits[name]) for name in over),
    )


def check_key_pairs(tx: Tx, conf: cfg.ConfigOpts, context: RequestContext, user_id: str, delta: int) -> None:
    """Raises KeypairLimitExceeded when ``delta`` more key pairs of the user are too many."""
    project_id = context.project_id or ""
    limit = limits(tx, conf, project_id)["key_pairs"]
    own = quotas.quota_get_for_user(tx, project_id, user_id)
    if exceeds(own.get("key_pairs", limit), key_pairs.key_pair_count(tx, user_id) + delta):
        raise exceptions.KeypairLimitExceeded()
