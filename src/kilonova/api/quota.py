"""Limits of projects and users, and what counts against them (the quota driver that counts in the databases).

What is checked is recorded in turns (db/turns.py): of requests that come at once, those whose records are first live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.db import turns
from kilonova.db.api import instance_groups, instance_mappings, key_pairs, quotas
from kilonova.db.cells import Cells
from kilonova.db.engine import Tx
from kilonova.db.quota_usage import NETWORKS, OF_SERVERS, RESOURCES, UNLIMITED, defaults, limits, usage
from kilonova.db.turns import Taken

__all__ = [
    "NETWORKS",
    "OF_SERVERS",
    "RESOURCES",
    "UNLIMITED",
    "Counted",
    "Headroom",
    "OvertakenError",
    "check_group_members",
    "check_key_pairs",
    "check_server_groups",
    "count_servers",
    "defaults",
    "exceeds",
    "limit_of",
    "limits",
    "recheck_servers",
    "server_headrooms",
    "servers_allowed",
    "take_servers",
    "usage",
]


def limit_of(cells: Cells, conf: cfg.ConfigOpts, project_id: str, resource: str) -> int:
    """One limit of a project."""
    return cells.api.query(limits, conf, project_id)[resource]


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


def server_headrooms(
    cells: Cells, conf: cfg.ConfigOpts, context: RequestContext, *, but: Sequence[str] = ()
) -> list[Headroom]:
    """What bounds new servers of the caller: the project's limits, and the user's in it if there are such.

    ``but``: servers that do not count.
    """
    project_id = context.project_id or ""

    def bounds(tx: Tx) -> tuple[dict[str, int], dict[str, int]]:
        return limits(tx, conf, project_id), quotas.quota_get_for_user(tx, project_id, context.user_id or "")

    of_project, of_user = cells.api.query(bounds)
    by_user = {name: of_user[name] for name in OF_SERVERS if name in of_user}
    user_id = context.user_id if by_user else None
    used = usage(cells, project_id, user_id, but=but)
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


@dataclass(frozen=True, slots=True)
class Counted:
    """What was left when it was counted, and what had ever been taken right before that."""

    rooms: Sequence[Headroom]
    taken: Taken


class OvertakenError(Exception):
    """Others took so much since it was counted that it must be counted again."""


def count_servers(cells: Cells, conf: cfg.ConfigOpts, context: RequestContext) -> Counted:
    """What the caller may still have of servers."""
    taken = turns.turn_look(cells.api, turns.of_project(context.project_id or ""))
    return Counted(server_headrooms(cells, conf, context), taken)


def take_servers(tx: Tx, context: RequestContext, counted: Counted, wanted: Taken) -> None:
    """Take what was counted as left, at the head of the transaction that records it.

    Nobody else of the project takes anything until it ends. Raises OvertakenError unless it is sure that all that was
    taken since it was counted, and this, fit.
    """
    try:
        before = turns.turn_take(tx, turns.of_project(context.project_id or ""), wanted)
    except turns.NoTurnError as error:
        raise OvertakenError from error
    between = before - counted.taken
    asked = {name: getattr(between, name) + getattr(wanted, name) for name in OF_SERVERS if getattr(wanted, name)}
    if any(room.over(asked) for room in counted.rooms):
        raise OvertakenError


def recheck_servers(
    cells: Cells, conf: cfg.ConfigOpts, context: RequestContext, uuids: Sequence[str], each: Mapping[str, int]
) -> None:
    """Raises TooManyInstances when these servers, which are on record, are over a limit with all that came before them.

    What our API accepts is never over. Nova's counts, then records, so of its requests that come at once some are:
    those whose records are later, and only those, are refused. The order is that of the instance mappings.
    """
    if _fits(server_headrooms(cells, conf, context), each):
        return
    later = cells.api.query(instance_mappings.instance_mapping_later_uuids, context.project_id or "", uuids)
    servers_allowed(server_headrooms(cells, conf, context, but=later), each, 0, 0)


def _fits(rooms: Sequence[Headroom], each: Mapping[str, int]) -> bool:
    try:
        servers_allowed(rooms, each, 0, 0)
    except exceptions.TooManyInstances:
        return False
    return True


def check_group_members(tx: Tx, conf: cfg.ConfigOpts, context: RequestContext, group_id: int, delta: int) -> None:
    """Raises OverQuota when ``delta`` more members of the caller are too many for a server group."""
    project_id, user_id = context.project_id or "", context.user_id or ""
    limit = limits(tx, conf, project_id)["server_group_members"]
    own = quotas.quota_get_for_user(tx, project_id, user_id).get("server_group_members", limit)
    counted = instance_groups.instance_group_member_count(tx, group_id, user_id)
    if exceeds(limit, counted + delta) or exceeds(own, counted + delta):
        raise exceptions.OverQuota("Quota exceeded, too many servers in group")


def check_server_groups(tx: Tx, conf: cfg.ConfigOpts, context: RequestContext) -> None:
    """Raises ServerGroupLimitExceeded when one more group is too much for the project or the user in it.

    At the head of the transaction that makes the group.
    """
    project_id, user_id = context.project_id or "", context.user_id or ""
    turns.turn_take(tx, turns.of_project(project_id))
    of_project = limits(tx, conf, project_id)["server_groups"]
    of_user = quotas.quota_get_for_user(tx, project_id, user_id).get("server_groups", UNLIMITED)
    counted = instance_groups.instance_group_count(tx, project_id, user_id)
    if exceeds(of_project, counted["project"] + 1) or exceeds(of_user, counted["user"] + 1):
        raise exceptions.ServerGroupLimitExceeded()


def check_key_pairs(tx: Tx, conf: cfg.ConfigOpts, context: RequestContext, user_id: str) -> None:
    """Raises KeypairLimitExceeded when one more key pair of the user is too much.

    At the head of the transaction that makes the key pair.
    """
    turns.turn_take(tx, turns.of_user(user_id))
    project_id = context.project_id or ""
    limit = limits(tx, conf, project_id)["key_pairs"]
    own = quotas.quota_get_for_user(tx, project_id, user_id)
    if exceeds(own.get("key_pairs", limit), key_pairs.key_pair_count(tx, user_id) + 1):
        raise exceptions.KeypairLimitExceeded()
