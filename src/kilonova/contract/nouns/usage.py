"""What projects used in a period, in REST."""

from typing import Any, Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import (
    LIMIT,
    NEXT_LINK,
    TEXT,
    UUID,
    Field,
    Object,
    array,
    nullable,
    one_of,
    query,
)
from kilonova.contract.microversions import since, until
from kilonova.contract.states import VM

LIST_POLICY: Final = "os_compute_api:os-simple-tenant-usage:list"
SHOW_POLICY: Final = "os_compute_api:os-simple-tenant-usage:show"
PAGED: Final = since(40)
ENDED: Final = "terminated"

_TIME: Final = {"type": "string", "format": "date-time"}
_PROJECT: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
_AMOUNT: Final = {"type": "number", "minimum": 0}
_STATES: Final = sorted({*(v for k, v in vars(VM).items() if k.isupper()), ENDED} - {VM.DELETED, VM.SOFT_DELETED})
_SERVER: Final = Object(
    Field("ended_at", nullable(_TIME), required=True),
    Field("flavor", TEXT, required=True),
    Field("hours", {"type": "number"}, required=True),
    Field("instance_id", UUID, required=True),
    Field("local_gb", {"type": "integer", "minimum": 0}),
    Field("memory_mb", {"type": "integer", "minimum": 1}),
    Field("name", TEXT, required=True),
    Field("started_at", _TIME, required=True),
    Field("state", {"type": "string", "enum": _STATES}, required=True),
    Field("tenant_id", _PROJECT, required=True),
    Field("uptime", {"type": "integer", "minimum": 0}, required=True),
    Field("vcpus", {"type": "integer", "minimum": 1}),
)


def _usage(*, servers: bool) -> Object:
    return Object(
        Field("server_usages", array(_SERVER), required=servers),
        Field("start", _TIME, required=True),
        Field("stop", _TIME, required=True),
        Field("tenant_id", _PROJECT, required=True),
        Field("total_hours", _AMOUNT, required=True),
        Field("total_local_gb_usage", _AMOUNT, required=True),
        Field("total_memory_mb_usage", _AMOUNT, required=True),
        Field("total_vcpus_usage", _AMOUNT, required=True),
    )


def _query(*more: Field) -> Object:
    paging = (Field("limit", LIMIT, PAGED), Field("marker", TEXT, PAGED))
    return query(Field("start", TEXT), Field("end", TEXT), *paging, *more, lenient=until(74))


def _response(member: str, shape: Any) -> Object:
    return Object(Field(member, shape, required=True), Field(f"{member}_links", NEXT_LINK, PAGED))


LIST: Final = Route(
    method="GET",
    path="/os-simple-tenant-usage",
    errors=(400,),
    policies=(LIST_POLICY,),
    query=_query(Field("detailed", TEXT)),
    response=_response("tenant_usages", array(_usage(servers=False))),
)
SHOW: Final = Route(
    method="GET",
    path="/os-simple-tenant-usage/{id}",
    errors=(400,),
    policies=(SHOW_POLICY,),
    query=_query(),
    response=_response("tenant_usage", one_of(_usage(servers=True), Object())),
)
