"""Limits of quota classes in REST: those of the class `default` hold for every project without its own."""

from typing import Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import TEXT, Field, Object, query
from kilonova.contract.microversions import Versions, since, until
from kilonova.contract.nouns.quota_sets import GIVEN, LIMIT, RESOURCES

_POLICY: Final = "os_compute_api:os-quota-class-sets:"
SHOW_POLICY: Final = _POLICY + "show"
UPDATE_POLICY: Final = _POLICY + "update"

_PATH: Final = "/os-quota-class-sets/{id}"
_WITH_NETWORKS: Final = until(49)
_NETWORKS: Final = ("fixed_ips", "floating_ips", "security_group_rules", "security_groups")
_GROUPS: Final = ("server_groups", "server_group_members")


def _versions(name: str) -> Versions:
    """Later than in quota sets do the networks' limits go."""
    return _WITH_NETWORKS if name in _NETWORKS else RESOURCES[name]


def _shown(*more: Field) -> Object:
    members = [
        Field(name, LIMIT, since(50) if name in _GROUPS else _versions(name), required=True) for name in RESOURCES
    ]
    return Object(Field("quota_class_set", Object(*members, *more), required=True))


SHOW: Final = Route(
    method="GET",
    path=_PATH,
    policies=(SHOW_POLICY,),
    query=query(lenient=until(101)),
    response=_shown(Field("id", TEXT, required=True)),
)
UPDATE: Final = Route(
    method="PUT",
    path=_PATH,
    makes=True,
    errors=(400,),
    policies=(UPDATE_POLICY,),
    body=Object(
        Field("quota_class_set", Object(*(Field(name, GIVEN, _versions(name)) for name in RESOURCES)), required=True)
    ),
    response=_shown(),
)
