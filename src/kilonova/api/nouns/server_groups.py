"""Server groups."""

from __future__ import annotations

from typing import Any

from kilonova.api import numbers, paging, quota
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.nouns import server_groups as contract
from kilonova.db import turns
from kilonova.db.api import instance_groups, instance_mappings
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request, forbidden


def index(call: Call[Services]) -> dict[str, Any]:
    own = {"project_id": call.context.project_id}
    call.authorize(contract.INDEX_POLICY, own)
    project_id: str | None = call.context.project_id
    if "all_projects" in call.query and call.context.is_admin:
        call.authorize(contract.ALL_PROJECTS_POLICY, own)
        project_id = None
    limit = paging.page(call).limit or call.services.conf.api.max_limit
    offset = numbers.not_negative("offset", call.last("offset") or 0)

    def page(tx: Tx) -> tuple[list[dict[str, Any]], set[str]]:
        found = instance_groups.instance_group_list(tx, project_id, limit=limit, offset=offset)
        return found, _living(tx, found)

    rows, living = call.services.cells.api.query(page)
    return {"server_groups": [_view(row, living) for row in rows]}


def show(call: Call[Services], id: str) -> dict[str, Any]:

    def look(tx: Tx) -> tuple[dict[str, Any], set[str]]:
        found = _group(tx, call, id)
        return found, _living(tx, [found])

    row, living = call.services.cells.api.query(look)
    call.authorize(contract.SHOW_POLICY, {"project_id": row["project_id"]})
    return {"server_group": _view(row, living)}


def create(call: Call[Services]) -> dict[str, Any]:
    given = call.body["server_group"]
    call.authorize(contract.CREATE_POLICY, {"project_id": call.context.project_id})
    policy = given["policy"] if "policy" in given else given["policies"][0]
    rules = {name: numbers.whole(name, value) for name, value in (given.get("rules") or {}).items()}
    if rules and policy != "anti-affinity":
        raise bad_request("Only anti-affinity policy supports rules.")
    values = {"name": given["name"], "project_id": call.context.project_id, "user_id": call.context.user_id}
    scope = turns.of_project(call.context.project_id or "")
    try:
        row = turns.run_in_turn(call.services.cells.api, scope, _create, call, values, policy, rules)
    except exceptions.ServerGroupLimitExceeded:
        raise forbidden("Quota exceeded, too many server groups.") from None
    return {"server_group": _view(row, set())}


def _create(tx: Tx, call: Call[Services], values: dict[str, Any], policy: str, rules: dict[str, int]) -> dict[str, Any]:
    quota.check_server_groups(tx, call.services.conf, call.context)
    return instance_groups.instance_group_create(tx, values, policy, rules)


def delete(call: Call[Services], id: str) -> None:
    row = call.services.cells.api.query(_group, call, id)
    call.authorize(contract.DELETE_POLICY, {"project_id": row["project_id"]})
    if not call.services.cells.api.run(instance_groups.instance_group_delete, id):
        raise exceptions.InstanceGroupNotFound(group_uuid=id)


def _group(tx: Tx, call: Call[Services], uuid: str) -> dict[str, Any]:
    """The group that the caller may know of. Raises InstanceGroupNotFound."""
    row = instance_groups.instance_group_get(tx, uuid)
    if row is None or (not call.context.is_admin and row["project_id"] != call.context.project_id):
        raise exceptions.InstanceGroupNotFound(group_uuid=uuid)
    return row


def _living(tx: Tx, rows: list[dict[str, Any]]) -> set[str]:
    """Which members of these groups have not been deleted."""
    members = [uuid for row in rows for uuid in row["members"]]
    if not members:
        return set()
    mappings = instance_mappings.instance_mapping_list(tx, members)
    return {mapping["instance_uuid"] for mapping in mappings if not mapping["queued_for_delete"]}


def _view(row: dict[str, Any], living: set[str]) -> dict[str, Any]:
    policy = row["policy"]
    return {
        "id": row["uuid"],
        "name": row["name"] or "",
        "policies": [policy] if policy else [],
        "policy": policy,
        "rules": {name: int(value) for name, value in row["rules"].items()},
        "metadata": {},
        "members": [uuid for uuid in row["members"] if uuid in living],
        "project_id": row["project_id"],
        "user_id": row["user_id"],
    }


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.CREATE, create),
    Binding(contract.SHOW, show),
    Binding(contract.DELETE, delete),
]
