"""The filters and the order that a request for a list of servers asks for."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final

from kilonova.api.servers.creation.devices import truth
from kilonova.api.services import Services
from kilonova.base import clock
from kilonova.contract.nouns import servers as contract
from kilonova.contract.nouns.server_tags import MOST as MOST_TAGS
from kilonova.contract.states import DEFAULT_STATUS, VM, states_of_status
from kilonova.db.api import flavors
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import bad_request, forbidden

_PAGING: Final = frozenset({"sort_key", "sort_dir", "limit", "marker"})
# What everyone may filter by, and since when; whoever passes the policy may use the rest too.
_OPEN: Final[Mapping[str, int]] = {
    **dict.fromkeys(("reservation_id", "name", "status", "image", "flavor", "ip", "changes-since", "all_tenants"), 0),
    "ip6": 5,
    **dict.fromkeys(contract.TAG_FILTERS, 26),
    "changes-before": 66,
    "locked": 73,
    **dict.fromkeys(
        (
            "availability_zone",
            "config_drive",
            "key_name",
            "created_at",
            "launched_at",
            "terminated_at",
            "power_state",
            "task_state",
            "vm_state",
            "progress",
            "user_id",
        ),
        83,
    ),
    "hostname": 90,
}
_JOINED: Final = frozenset(
    {"block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups", "pci_devices"}
)
_COLUMN_OF: Final = {"image": "image_ref", "name": "display_name", "tenant_id": "project_id"}
_TIMES: Final = ("changes-since", "changes-before")
_IGNORED_SORT_KEYS: Final = frozenset(
    {"architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted"}
    | {"deleted_at", "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id", "key_data", "launched_on"}
    | {"memory_mb", "os_type", "reservation_id", "root_gb", "shutdown_terminate", "user_data", "vcpus", "vm_mode"}
)
_ADMIN_SORT_KEYS: Final = frozenset({"host", "node"})


class NothingMatches(Exception):
    """The filters cannot match any server, so the list is empty."""


def options(call: Call[Services]) -> dict[str, Any]:
    """The parameters that filter, without those that the caller may not use."""
    given = {name: values[-1] for name, values in call.query.items() if name not in _PAGING}
    if not call.allows(contract.ALL_FILTERS):
        given = {name: value for name, value in given.items() if _OPEN.get(name, call.version + 1) <= call.version}
    for name in given:
        if name in _JOINED or name.startswith("_"):
            raise bad_request(f"Invalid filter field: {name}.")
    return given


def filters(call: Call[Services], given: Mapping[str, Any], all_tenants_rule: str) -> dict[str, Any]:
    """The filters as the databases take them. Raises `Fault` 400 or 403, `NothingMatches`."""
    found = dict(given)
    found.pop("status", None)
    _status(call, found)
    _times(found)
    _deleted(call, found)
    if call.version >= 26:
        for name in contract.TAG_FILTERS:
            if name in found:
                found[name] = _tags(name, found[name])
    if "locked" in found:
        found["locked"] = _boolean("locked", found["locked"])
    _owner(call, found, all_tenants_rule)
    flavor_id = found.pop("flavor", None)
    found = {_COLUMN_OF.get(name, name): value for name, value in found.items()}
    if "description" in found:
        found["display_description"] = found.pop("description")
    if flavor_id is not None:
        found["instance_type_id"] = _flavor_key(call, flavor_id)
    return found


def _tags(name: str, text: str) -> list[str]:
    """Each costs a part of the query, while no server has more than `MOST_TAGS`. Raises `Fault` 400."""
    tags = list(dict.fromkeys(text.split(",")))
    if len(tags) > MOST_TAGS:
        raise bad_request(f"Invalid input for query parameters {name}. More than {MOST_TAGS} tags are given.")
    return tags


def _status(call: Call[Services], found: dict[str, Any]) -> None:
    wanted = call.query.get("status")
    if not wanted or "status" not in call.query:
        return
    vm_states: set[str] = set()
    task_states: set[str] = set()
    for status in wanted:
        vm, task = states_of_status(status)
        vm_states |= vm
        task_states |= task
    if not vm_states:
        if call.version >= 38:
            raise bad_request("Invalid status value")
        raise NothingMatches
    found["vm_state"] = sorted(vm_states)
    if DEFAULT_STATUS not in task_states:
        found["task_state"] = sorted(task_states)


def _times(found: dict[str, Any]) -> None:
    for name in _TIMES:
        if name in found:
            found[name] = _time(name, found[name])
    since, before = found.get("changes-since"), found.get("changes-before")
    if since and before and before < since:
        raise bad_request("The value of changes-since must be less than or equal to changes-before.")


def _time(name: str, text: str) -> datetime.datetime:
    try:
        # In a URL a plus sign that is not escaped arrives as a space.
        when = clock.naive(clock.parse(text.replace(" ", "+") if text.count(":") > 2 else text))
    except ValueError:
        raise bad_request(f"Invalid filter field: {name}.") from None
    assert when is not None
    return when


def _deleted(call: Call[Services], found: dict[str, Any]) -> None:
    if "deleted" in found:
        found["deleted"] = truth(found["deleted"])
    elif not any(name in found for name in _TIMES):
        found["deleted"] = False
    if found.get("vm_state") == [VM.DELETED]:
        if not call.context.is_admin:
            raise forbidden("Only administrators may list deleted instances")
        found["deleted"] = True
    if "soft_deleted" in found:
        found["soft_deleted"] = truth(found["soft_deleted"])


def _owner(call: Call[Services], found: dict[str, Any], all_tenants_rule: str) -> None:
    """Whose servers: those of the caller's project unless all are asked for, which takes a policy."""
    if _boolean("all_tenants", found.pop("all_tenants", None), said_by_name=True):
        call.authorize(all_tenants_rule)
        return
    found.pop("tenant_id", None)
    if call.context.project_id:
        found["project_id"] = call.context.project_id
    else:
        found["user_id"] = call.context.user_id


def _boolean(name: str, text: str | None, *, said_by_name: bool = False) -> bool:
    """A truth value; ``said_by_name``: an empty one says yes, since the parameter stands there."""
    if text is None or (said_by_name and not text):
        return text is not None
    word = text.strip().lower()
    if word in ("1", "t", "true", "on", "y", "yes"):
        return True
    if word in ("0", "f", "false", "off", "n", "no"):
        return False
    raise bad_request(f"Invalid value '{text}' for the query parameter {name}.")


def _flavor_key(call: Call[Services], flavor_id: str) -> int:
    row = call.services.cells.api.query(
        flavors.flavor_get, flavor_id, project_id=None if call.context.is_admin else call.context.project_id
    )
    if row is None:
        raise NothingMatches
    return int(row["id"])


def sort(call: Call[Services]) -> list[tuple[str, str]]:
    """Sort keys and directions; behind them the uuid, which is unique in all cells. Raises `Fault` 400 or 403."""
    keys = call.query.get("sort_key", [])
    directions = call.query.get("sort_dir", [])
    if any(direction not in ("asc", "desc") for direction in directions):
        raise bad_request("Unknown sort direction, must be 'asc' or 'desc'")
    if len(directions) > max(len(keys), 1):
        raise bad_request("Sort direction size exceeds sort key size")
    default = directions[0] if directions else "desc"
    pairs = [(key, directions[i] if i < len(directions) else default) for i, key in enumerate(keys)]
    ignored = _IGNORED_SORT_KEYS | (frozenset() if call.version >= 73 else {"locked"})
    # What was sorted by before does not change the order any more.
    first: dict[str, str] = {}
    for key, direction in pairs:
        first.setdefault(key, direction)
    pairs = [(key, direction) for key, direction in first.items() if key not in ignored]
    for key, _ in pairs:
        if key in _ADMIN_SORT_KEYS and not call.context.is_admin:
            raise forbidden(f"Only administrators can sort servers by {key}")
        if key not in contract.SORT_KEYS:
            raise bad_request(f"Sort key {key} is unknown.")
    if not pairs:
        # Where only keys were given that are passed over, Nova's own order holds.
        pairs = [("created_at", "desc"), ("id", "desc")] if keys else [("created_at", default)]
    return pairs if any(key == "uuid" for key, _ in pairs) else [*pairs, ("uuid", "asc")]
