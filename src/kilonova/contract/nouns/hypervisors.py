"""Hypervisors (the compute nodes) in REST."""

from typing import Any, Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import (
    BOOLEAN,
    INTEGER,
    LIMIT,
    NEXT_LINK,
    TEXT,
    UUID,
    ByVersion,
    Field,
    Object,
    array,
    nullable,
    query,
    single,
)
from kilonova.contract.microversions import ALL, between, since, until

_POLICY: Final = "os_compute_api:os-hypervisors:"
LIST_POLICY: Final = _POLICY + "list"
DETAIL_POLICY: Final = _POLICY + "list-detail"
STATISTICS_POLICY: Final = _POLICY + "statistics"
SHOW_POLICY: Final = _POLICY + "show"
UPTIME_POLICY: Final = _POLICY + "uptime"
SEARCH_POLICY: Final = _POLICY + "search"
SERVERS_POLICY: Final = _POLICY + "servers"

_ID: Final = ByVersion((until(52), INTEGER), (ALL, UUID))
_NUMBER: Final = nullable(INTEGER)
_OLD: Final = until(87)
_OLDER: Final = until(52)
_SERVERS: Final = array(Object(Field("name", TEXT, required=True), Field("uuid", UUID, required=True)))
_NAMED_SERVERS: Final = Field("servers", _SERVERS, since(53))
_SERVICE: Final = Object(
    Field("disabled_reason", nullable(TEXT), required=True),
    Field("host", TEXT, required=True),
    Field("id", _ID, required=True),
)


def _hypervisor(*more: Field) -> Object:
    return Object(
        Field("id", _ID, required=True),
        Field("hypervisor_hostname", TEXT, required=True),
        Field("state", {"enum": ["down", "up"]}, required=True),
        Field("status", {"enum": ["disabled", "enabled"]}, required=True),
        *more,
    )


_AMOUNTS: Final = ("local_gb", "local_gb_used", "memory_mb", "memory_mb_used", "vcpus", "vcpus_used")
_PERHAPS: Final = ("current_workload", "free_disk_gb", "free_ram_mb", "running_vms")
_WHOLE: Final = _hypervisor(
    Field(
        "cpu_info",
        ByVersion((until(27), TEXT), (ALL, {"type": "object", "properties": {}, "additionalProperties": True})),
        _OLD,
        required=True,
    ),
    *(Field(name, INTEGER, _OLD, required=True) for name in _AMOUNTS),
    *(Field(name, _NUMBER, _OLD, required=True) for name in _PERHAPS),
    Field("disk_available_least", _NUMBER),
    Field("host_ip", nullable(TEXT), required=True),
    Field("hypervisor_type", TEXT, required=True),
    Field("hypervisor_version", {"type": ["string", "integer"]}, required=True),
    Field("service", _SERVICE, required=True),
    Field("uptime", nullable(TEXT), since(88), required=True),
    _NAMED_SERVERS,
)
_BRIEF: Final = _hypervisor(_NAMED_SERVERS)


def _once(shape: Any) -> ByVersion:
    return ByVersion((until(52), shape), (ALL, single(shape)))


_LIST_QUERY: Final = query(
    Field("limit", _once(LIMIT), since(33)),
    Field("marker", _once(TEXT), since(33)),
    Field(
        "hypervisor_hostname_pattern",
        single({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-._]*$"}),
        since(53),
    ),
    Field("with_servers", single(BOOLEAN), since(53)),
    lenient=until(52),
)
_LIST_ERRORS: Final = (((), until(32)), ((400,), between(33, 52)), ((400, 404), since(53)))


def _listed(shape: Object) -> Object:
    return Object(Field("hypervisors", array(shape), required=True), Field("hypervisors_links", NEXT_LINK, since(33)))


LIST: Final = Route(
    method="GET",
    path="/os-hypervisors",
    errors=_LIST_ERRORS,
    policies=(LIST_POLICY,),
    query=_LIST_QUERY,
    response=_listed(_BRIEF),
)
DETAIL: Final = Route(
    method="GET",
    path="/os-hypervisors/detail",
    errors=_LIST_ERRORS,
    policies=(DETAIL_POLICY,),
    query=_LIST_QUERY,
    response=_listed(_WHOLE),
)
SHOW: Final = Route(
    method="GET",
    path="/os-hypervisors/{id}",
    errors=(((404,), until(52)), ((400, 404), since(53))),
    policies=(SHOW_POLICY,),
    query=query(Field("with_servers", single(BOOLEAN), since(53)), lenient=until(52)),
    response=Object(Field("hypervisor", _WHOLE, required=True)),
)
STATISTICS: Final = Route(
    method="GET",
    path="/os-hypervisors/statistics",
    versions=_OLD,
    policies=(STATISTICS_POLICY,),
    query={},
    response=Object(
        Field(
            "hypervisor_statistics",
            Object(
                *(Field(name, INTEGER, required=True) for name in (*_AMOUNTS, "count")),
                *(Field(name, _NUMBER, required=True) for name in (*_PERHAPS, "disk_available_least")),
            ),
            required=True,
        )
    ),
)
UPTIME: Final = Route(
    method="GET",
    path="/os-hypervisors/{id}/uptime",
    versions=_OLD,
    errors=(400, 404, 501),
    policies=(UPTIME_POLICY,),
    query={},
    response=Object(
        Field("hypervisor", _hypervisor(_NAMED_SERVERS, Field("uptime", nullable(TEXT), required=True)), required=True)
    ),
)
SEARCH: Final = Route(
    method="GET",
    path="/os-hypervisors/{id}/search",
    versions=_OLDER,
    errors=(404,),
    policies=(SEARCH_POLICY,),
    query={},
    response=Object(Field("hypervisors", array(_hypervisor()), required=True)),
)
SERVERS: Final = Route(
    method="GET",
    path="/os-hypervisors/{id}/servers",
    versions=_OLDER,
    errors=(404,),
    policies=(SERVERS_POLICY,),
    query={},
    response=Object(Field("hypervisors", array(_hypervisor(Field("servers", _SERVERS))), required=True)),
)
