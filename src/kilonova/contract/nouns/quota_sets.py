"""Quotas and limits in REST."""

from collections.abc import Callable
from typing import Any, Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import BOOLEAN, NOTHING, TEXT, Field, Object, array, query
from kilonova.contract.microversions import ALL, Versions, until

_POLICY: Final = "os_compute_api:os-quota-sets:"
SHOW_POLICY: Final = _POLICY + "show"
DEFAULTS_POLICY: Final = _POLICY + "defaults"
DETAIL_POLICY: Final = _POLICY + "detail"
UPDATE_POLICY: Final = _POLICY + "update"
DELETE_POLICY: Final = _POLICY + "delete"
LIMITS_POLICY: Final = "os_compute_api:limits"
OTHER_LIMITS_POLICY: Final = "os_compute_api:limits:other_project"

WITH_NETWORKS: Final = until(35)
WITH_FILES: Final = until(56)
RESOURCES: Final[dict[str, Versions]] = {
    "cores": ALL,
    "fixed_ips": WITH_NETWORKS,
    "floating_ips": WITH_NETWORKS,
    "injected_file_content_bytes": WITH_FILES,
    "injected_file_path_bytes": WITH_FILES,
    "injected_files": WITH_FILES,
    "instances": ALL,
    "key_pairs": ALL,
    "metadata_items": ALL,
    "ram": ALL,
    "security_group_rules": WITH_NETWORKS,
    "security_groups": WITH_NETWORKS,
    "server_group_members": ALL,
    "server_groups": ALL,
}
"""Resource -> microversions that have it."""

LIMIT: Final = {"type": "integer", "minimum": -1}
GIVEN: Final = {"type": ["integer", "string"], "pattern": "^-?[0-9]+$", "minimum": -1, "maximum": 0x7FFFFFFF}
_USE: Final = Object(*(Field(name, LIMIT, required=True) for name in ("in_use", "limit", "reserved")))
_QUERY: Final = query(Field("user_id", TEXT), lenient=until(74))


def _set(kind: Any, *more: Field, required: bool = True) -> Object:
    members = [Field(name, kind, versions, required=required) for name, versions in RESOURCES.items()]
    return Object(Field("quota_set", Object(*members, *more), required=True))


_SHOWN: Final = _set(LIMIT, Field("id", TEXT, required=True))
_route: Callable[..., Route] = lambda method, path, policy, **more: Route(  # noqa: E731
    method=method, path=f"/os-quota-sets/{{id}}{path}", errors=(400,), policies=(policy,), **more
)

SHOW: Final = _route("GET", "", SHOW_POLICY, query=_QUERY, response=_SHOWN)
DEFAULTS: Final = _route("GET", "/defaults", DEFAULTS_POLICY, query=query(lenient=ALL), response=_SHOWN)
DETAIL: Final = _route(
    "GET", "/detail", DETAIL_POLICY, query=_QUERY, response=_set(_USE, Field("id", TEXT, required=True))
)
UPDATE: Final = _route(
    "PUT",
    "",
    UPDATE_POLICY,
    query=_QUERY,
    body=_set(GIVEN, Field("force", BOOLEAN), required=False),
    response=_set(LIMIT),
)
DELETE: Final = Route(
    method="DELETE",
    path="/os-quota-sets/{id}",
    success=202,
    policies=(DELETE_POLICY,),
    query=_QUERY,
    response=NOTHING,
)

_ABSOLUTE: Final[dict[str, Versions]] = {
    "maxImageMeta": until(38),
    "maxPersonality": WITH_FILES,
    "maxPersonalitySize": WITH_FILES,
    "maxSecurityGroupRules": WITH_NETWORKS,
    "maxSecurityGroups": WITH_NETWORKS,
    "maxServerGroupMembers": ALL,
    "maxServerGroups": ALL,
    "maxServerMeta": ALL,
    "maxTotalCores": ALL,
    "maxTotalFloatingIps": WITH_NETWORKS,
    "maxTotalInstances": ALL,
    "maxTotalKeypairs": ALL,
    "maxTotalRAMSize": ALL,
    "totalCoresUsed": ALL,
    "totalFloatingIpsUsed": WITH_NETWORKS,
    "totalInstancesUsed": ALL,
    "totalRAMUsed": ALL,
    "totalSecurityGroupsUsed": WITH_NETWORKS,
    "totalServerGroupsUsed": ALL,
}
LIMITS: Final = Route(
    method="GET",
    path="/limits",
    policies=(LIMITS_POLICY, OTHER_LIMITS_POLICY),
    query=query(Field("tenant_id", TEXT), lenient=until(74)),
    response=Object(
        Field(
            "limits",
            Object(
                Field(
                    "absolute",
                    Object(*(Field(name, LIMIT, versions, required=True) for name, versions in _ABSOLUTE.items())),
                    required=True,
                ),
                Field("rate", array({}, maxItems=0), required=True),
            ),
            required=True,
        )
    ),
)
