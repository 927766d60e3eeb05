"""Quota sets and limits: what a project or user may have, and what of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kilonova.api import quota
from kilonova.api.projects import check_exists
from kilonova.api.services import Services
from kilonova.contract.nouns import quota_sets as contract
from kilonova.db.api import instance_groups, quotas
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request

FORCED: Final = frozenset({"1", "true", "t", "yes", "y", "on"})


def _limits(call: Call[Services], project_id: str, user_id: str | None) -> dict[str, int]:
    conf = call.services.conf

    def bounds(tx: Tx) -> tuple[dict[str, int], dict[str, int]]:
        own = quotas.quota_get_for_user(tx, project_id, user_id) if user_id else {}
        return quota.limits(tx, conf, project_id), own

    found, own = call.services.cells.api.query(bounds)
    return found | {name: limit for name, limit in own.items() if name in found}


def show(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SHOW_POLICY, {"project_id": id})
    check_exists(call, id)
    return {"quota_set": {"id": id, **_limits(call, id, call.first("user_id"))}}


def defaults(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.DEFAULTS_POLICY, {"project_id": id})
    found = quota.defaults(call.services.conf, call.services.cells.api.query(quotas.quota_class_get))
    return {"quota_set": {"id": id, **found}}


def detail(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.DETAIL_POLICY, {"project_id": id})
    check_exists(call, id)
    user_id = call.first("user_id")
    limits, used = _limits(call, id, user_id), _used(call, id, user_id)
    shown = {name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in limits.items()}
    return {"quota_set": {"id": id, **shown}}


def _used(call: Call[Services], project_id: str, user_id: str | None) -> dict[str, int]:
    scope = "user" if user_id else "project"
    used = dict(quota.usage(call.services.cells, project_id, user_id)[scope])
    groups = call.services.cells.api.query(instance_groups.instance_group_count, project_id, user_id)
    used["server_groups"] = groups[scope]
    # Keypairs belong to no project: they are shown as none, and limit no quota, as in Nova.
    return used


def update(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_POLICY, {"project_id": id})
    check_exists(call, id)
    user_id = call.first("user_id")
    given = call.body["quota_set"]
    force = str(given.get("force", False)).lower() in FORCED
    wanted = known(given)
    if not force:
        _check_given(call, id, user_id, wanted)
        _check_used(call, id, user_id, wanted)
    call.services.cells.api.run(_set, id, user_id, wanted)
    return {"quota_set": _limits(call, id, user_id)}


def known(given: Mapping[str, Any]) -> dict[str, int]:
    """The limits among what was given: on the legacy endpoint there may be anything beside them."""
    return {name: int(limit) for name, limit in given.items() if name in contract.RESOURCES}


def _check_given(call: Call[Services], project_id: str, user_id: str | None, wanted: Mapping[str, int]) -> None:
    """A project's limits are shared out among the users who have their own. Raises `Fault` 400."""
    whole = _limits(call, project_id, None)
    of_users = call.services.cells.api.query(quotas.quota_list_by_user, project_id)
    others = [own for user, own in of_users.items() if user != user_id]
    for name, limit in wanted.items():
        given = sum(max(own.get(name, 0), 0) for own in others)
        if whole[name] == quota.UNLIMITED:
            continue
        if user_id is None and limit != quota.UNLIMITED and limit < given:
            raise bad_request(f"Quota limit {limit} for {name} must not be below what users were given, {given}.")
        left = whole[name] - given
        if user_id is not None and (limit > left or limit == quota.UNLIMITED):
            raise bad_request(f"Quota limit {limit} for {name} must be less than or equal to {left}.")


def _check_used(call: Call[Services], project_id: str, user_id: str | None, wanted: Mapping[str, int]) -> None:
    used = _used(call, project_id, user_id)
    for name, limit in wanted.items():
        if limit != quota.UNLIMITED and limit < used.get(name, 0):
            raise bad_request(
                f"Quota limit {limit} for {name} must be greater than or equal to already used and reserved "
                f"{used[name]}."
            )


def _set(tx: Tx, project_id: str, user_id: str | None, wanted: Mapping[str, int]) -> None:
    for name, limit in wanted.items():
        quotas.quota_set(tx, project_id, name, limit, user_id)


def delete(call: Call[Services], id: str) -> None:
    call.authorize(contract.DELETE_POLICY, {"project_id": id})
    call.services.cells.api.run(quotas.quota_delete, id, call.first("user_id"))


def limits(call: Call[Services]) -> dict[str, Any]:
    project_id = call.context.project_id or ""
    other = call.first("tenant_id")
    call.authorize(contract.LIMITS_POLICY)
    if other:
        call.authorize(contract.OTHER_LIMITS_POLICY, {"project_id": other})
        project_id = other
    most, used = _limits(call, project_id, None), _used(call, project_id, None)
    absolute = {
        "maxImageMeta": most["metadata_items"],
        "maxPersonality": most["injected_files"],
        "maxPersonalitySize": most["injected_file_content_bytes"],
        "maxSecurityGroupRules": quota.UNLIMITED,
        "maxSecurityGroups": quota.UNLIMITED,
        "maxServerGroupMembers": most["server_group_members"],
        "maxServerGroups": most["server_groups"],
        "maxServerMeta": most["metadata_items"],
        "maxTotalCores": most["cores"],
        "maxTotalFloatingIps": quota.UNLIMITED,
        "maxTotalInstances": most["instances"],
        "maxTotalKeypairs": most["key_pairs"],
        "maxTotalRAMSize": most["ram"],
        "totalCoresUsed": used["cores"],
        "totalFloatingIpsUsed": 0,
        "totalInstancesUsed": used["instances"],
        "totalRAMUsed": used["ram"],
        "totalSecurityGroupsUsed": 0,
        "totalServerGroupsUsed": used["server_groups"],
    }
    return {"limits": {"absolute": absolute, "rate": []}}


ROUTES = [
    Binding(contract.SHOW, show),
    Binding(contract.DEFAULTS, defaults),
    Binding(contract.DETAIL, detail),
    Binding(contract.UPDATE, update),
    Binding(contract.DELETE, delete),
    Binding(contract.LIMITS, limits),
]
