"""Limits, and what is counted against them.

Counting asks every cell, so these functions are given all databases instead of one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from oslo_config import cfg

from kilonova.contract import exceptions, objects
from kilonova.db import query, quota_usage
from kilonova.db.api import instance_groups, key_pairs, quotas
from kilonova.db.api.tables import INSTANCE_MAPPINGS, PROJECT_USER_QUOTAS, QUOTAS
from kilonova.db.cells import Cells
from kilonova.db.engine import Tx
from kilonova.db.outcomes import DuplicateError

Values = Mapping[str, int]
Counts = dict[str, dict[str, int]]
"""Numbers by resource, for `project`, for `user`, or for both."""

OF_THE_PROJECT = ("fixed_ips", "floating_ips", "networks")
"""Resources of which a user has no limit of its own."""


class Databases(msgspec.Struct, frozen=True):
    cells: Cells
    conf: cfg.ConfigOpts


# ---------------------------------------------------------------- what is left of reservations


def reserve(
    tx: Tx,
    ctxt: Any,
    limits: objects.Quotas,
    expire: Any = None,
    project_id: str | None = None,
    user_id: str | None = None,
    **deltas: int,
) -> None:
    """Nothing is reserved any more; the object says so."""
    limits.reservations, limits.project_id, limits.user_id = None, project_id, user_id
    limits.obj_reset_changes()


def nothing_to_end(tx: Tx, ctxt: Any, limits: objects.Quotas) -> None:
    """There is no reservation to commit or to roll back."""


# ---------------------------------------------------------------- counting


def _servers(databases: Databases, project_id: str, user_id: str | None = None) -> Counts:
    return quota_usage.usage(databases.cells, project_id, user_id)


def _key_pairs(databases: Databases, user_id: str) -> Counts:
    return {"user": {"key_pairs": databases.cells.api.query(key_pairs.key_pair_count, user_id)}}


def _server_groups(databases: Databases, project_id: str, user_id: str | None = None) -> Counts:
    counted = databases.cells.api.query(instance_groups.instance_group_count, project_id, user_id)
    return {scope: {"server_groups": number} for scope, number in counted.items()}


def _members(databases: Databases, group: objects.InstanceGroup, user_id: str) -> Counts:
    mapping = INSTANCE_MAPPINGS.c
    statement = sa.select(sa.func.count()).where(
        mapping.instance_uuid.in_(list(group.members or ())),
        mapping.user_id == user_id,
        mapping.queued_for_delete.is_(False),
    )
    return {"user": {"server_group_members": databases.cells.api.query(query.values, statement)[0]}}


COUNTED: Mapping[str, Callable[..., Counts]] = {
    "instances": _servers,
    "cores": _servers,
    "ram": _servers,
    "key_pairs": _key_pairs,
    "server_groups": _server_groups,
    "server_group_members": _members,
}


def count_as_dict(databases: Databases, ctxt: Any, resource: str, *args: Any, **kwargs: Any) -> Counts:
    """Numbers of a resource, and of those that are counted along with it. Raises QuotaResourceUnknown.

    Servers and server groups take `project_id, user_id=None`; key pairs `user_id`; members `group, user_id`.
    """
    if resource not in COUNTED:
        raise exceptions.QuotaResourceUnknown(unknown=[resource])
    return COUNTED[resource](databases, *args, **kwargs)


def count(databases: Databases, ctxt: Any, resource: str, *args: Any, **kwargs: Any) -> int:
    """The user's number if one is counted, else the project's. Raises QuotaResourceUnknown."""
    counted = count_as_dict(databases, ctxt, resource, *args, **kwargs)
    return counted["user" if "user" in counted else "project"][resource]


# ---------------------------------------------------------------- checking


class Limits(msgspec.Struct, frozen=True):
    """What applies to a project, to a user in it, and what of it was set for the project."""

    project: Values
    user: Values
    own: Values


def _limits(databases: Databases, ctxt: Any, project_id: str | None, user_id: str | None) -> Limits:
    project = project_id or ctxt.project_id or ""
    user = user_id or ctxt.user_id or ""

    def bounds(tx: Tx) -> Limits:
        common = quota_usage.defaults(databases.conf, quotas.quota_class_get(tx))
        if project == ctxt.project_id and ctxt.quota_class:
            common |= quotas.quota_class_get(tx, ctxt.quota_class)
        own = quotas.quota_get(tx, project)
        of_project = common | own
        return Limits(of_project, of_project | quotas.quota_get_for_user(tx, project, user), own)

    return databases.cells.api.query(bounds)


def _refuse_bad(*asked: Values) -> None:
    known = set(quota_usage.RESOURCES) | set(quota_usage.NETWORKS)
    for name in (name for values in asked for name in values):
        if name not in known:
            raise exceptions.InvalidQuotaMethodUsage(method="check", res=name)
    for values in asked:
        if under := sorted(name for name, value in values.items() if value < 0):
            raise exceptions.InvalidQuotaValue(unders=under)


def _over(limit: int, value: int) -> bool:
    return 0 <= limit < value


def limit_check(
    databases: Databases, ctxt: Any, project_id: str | None = None, user_id: str | None = None, **values: int
) -> None:
    """Raises OverQuota, InvalidQuotaValue (below 0), InvalidQuotaMethodUsage (no such resource)."""
    _refuse_bad(values)
    limits = _limits(databases, ctxt, project_id, user_id)
    over = [name for name, value in values.items() if _over(limits.project[name], value)]
    over += [name for name, value in values.items() if name not in over and _over(limits.user[name], value)]
    if over:
        room = {name: min(limits.project[name], limits.own.get(name, limits.project[name])) for name in over}
        _refuse(over, {name: limits.project[name] for name in values}, room)


def _refuse(over: Iterable[str], limits: Values, headroom: Values, **more: str) -> None:
    raise exceptions.OverQuota(overs=sorted(over), quotas=dict(limits), usages={}, headroom=dict(headroom), **more)


def limit_check_project_and_user(
    databases: Databases,
    ctxt: Any,
    project_values: Values | None = None,
    user_values: Values | None = None,
    project_id: str | None = None,
    user_id: str | None = None,
) -> None:
    """What is counted for both must fit both limits, each its own; what is counted once must fit the smaller.

    Raises OverQuota (with the `scope` in the first case), Invalid (nothing is asked), InvalidQuotaValue,
    InvalidQuotaMethodUsage.
    """
    of_project, of_user = dict(project_values or {}), dict(user_values or {})
    _refuse_bad(of_project, of_user)
    if not of_project and not of_user:
        raise exceptions.Invalid("A limit check needs values of the project or of the user.")
    limits = _limits(databases, ctxt, project_id, user_id)
    names = of_project.keys() | of_user.keys()
    once = {name: of_project.get(name, 0) or of_user.get(name, 0) for name in of_project.keys() ^ of_user.keys()}
    smaller = {name: min(limits.project[name], limits.user[name]) for name in names}
    if over := [name for name, value in once.items() if _over(smaller[name], value)]:
        _refuse(over, smaller, {name: smaller[name] for name in over})
    both = of_project.keys() & of_user.keys()
    over_project = [name for name in both if _over(limits.project[name], of_project[name])]
    over_user = [name for name in both - set(over_project) if _over(limits.user[name], of_user[name])]
    if over := over_project + over_user:
        exceeded = limits.user if over_user else limits.project
        scope = "user" if over_user else "project"
        _refuse(over, {n: exceeded[n] for n in names}, {n: exceeded[n] for n in over}, scope=scope)


def check_deltas(databases: Databases, ctxt: Any, deltas: Values, *count_args: Any, **count_kwargs: Any) -> None:
    """Whether so much more may be: counts, then checks the sums. Raises OverQuota with the `usages`.

    `check_project_id` and `check_user_id` name whose limits apply; the other arguments go to the counting.
    """
    project_id = count_kwargs.pop("check_project_id", None)
    user_id = count_kwargs.pop("check_user_id", None)
    sums: Counts = {"project": {}, "user": {}}
    counted: Counts = {}
    for resource in deltas:
        if any(resource in summed for summed in sums.values()):
            continue
        counted = count_as_dict(databases, ctxt, resource, *count_args, **count_kwargs)
        for scope, numbers in counted.items():
            sums[scope] |= {name: number + deltas[name] for name, number in numbers.items() if name in deltas}
    try:
        limit_check_project_and_user(databases, ctxt, sums["project"], sums["user"], project_id, user_id)
    except exceptions.OverQuota as exc:
        scope = exc.kwargs.get("scope") or ("user" if "user" in counted else "project")
        raise exceptions.OverQuota(**{**exc.kwargs, "usages": counted[scope]}) from exc


# ---------------------------------------------------------------- setting


def _place(project_id: str, resource: str, user_id: str | None) -> tuple[sa.Table, dict[str, str]]:
    if user_id and resource not in OF_THE_PROJECT:
        return PROJECT_USER_QUOTAS, {"project_id": project_id, "user_id": user_id, "resource": resource}
    return QUOTAS, {"project_id": project_id, "resource": resource}


def create_limit(tx: Tx, ctxt: Any, project_id: str, resource: str, limit: int, user_id: str | None = None) -> None:
    """A limit of a project, or of a user in it. Raises QuotaExists."""
    table, key = _place(project_id, resource, user_id)
    try:
        with query.unique(table.name):
            tx.execute(sa.insert(table).values(**key, hard_limit=limit))
    except DuplicateError as exc:
        raise exceptions.QuotaExists(project_id=project_id, resource=resource) from exc


def update_limit(tx: Tx, ctxt: Any, project_id: str, resource: str, limit: int, user_id: str | None = None) -> None:
    """Raises ProjectQuotaNotFound, ProjectUserQuotaNotFound."""
    table, key = _place(project_id, resource, user_id)
    where = [table.c[name] == value for name, value in key.items()]
    if tx.execute(sa.update(table).where(*where).values(hard_limit=limit)).rowcount:
        return
    if table is PROJECT_USER_QUOTAS:
        raise exceptions.ProjectUserQuotaNotFound(project_id=project_id, user_id=user_id)
    raise exceptions.ProjectQuotaNotFound(project_id=project_id)
