"""The record of what was done to a server, in REST."""

from typing import Final

from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.fields import (
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
from kilonova.contract.microversions import ALL, since, until
from kilonova.contract.nouns.server_metadata import NO_QUERY

LIST_POLICY: Final = "os_compute_api:os-instance-actions:list"
SHOW_POLICY: Final = "os_compute_api:os-instance-actions:show"
EVENTS_POLICY: Final = "os_compute_api:os-instance-actions:events"
DETAILS_POLICY: Final = "os_compute_api:os-instance-actions:events:details"

_TIME: Final = {"type": "string", "format": "date-time"}
_OWNER: Final = {"type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}


def _action(*more: Field) -> Object:
    return Object(
        Field("action", TEXT, required=True),
        Field("instance_uuid", UUID, required=True),
        Field("request_id", TEXT, required=True),
        Field("user_id", _OWNER, required=True),
        Field("project_id", _OWNER, required=True),
        Field("start_time", _TIME, required=True),
        Field("message", nullable(TEXT), required=True),
        Field("updated_at", nullable(_TIME), since(58), required=True),
        *more,
    )


_EVENT: Final = Object(
    Field("event", TEXT, required=True),
    Field("start_time", _TIME, required=True),
    Field("finish_time", nullable(_TIME), required=True),
    Field("result", nullable(TEXT), required=True),
    Field("traceback", nullable(TEXT)),
    Field("host", TEXT, since(62)),
    Field("hostId", TEXT, since(62), required=True),
    Field("details", nullable(TEXT), since(84)),
)

LIST: Final = Route(
    method="GET",
    path="/servers/{server_id}/os-instance-actions",
    errors=(((404,), until(57)), ((400, 404), since(58))),
    policies=(LIST_POLICY,),
    query=ByVersion(
        (LEGACY_ONLY, {}),
        (
            ALL,
            query(
                Field("limit", single(LIMIT), since(58)),
                Field("marker", single(TEXT), since(58)),
                Field("changes-since", single(_TIME), since(58)),
                Field("changes-before", single(_TIME), since(66)),
                lenient=until(57),
            ),
        ),
    ),
    response=Object(
        Field("instanceActions", array(_action()), required=True),
        Field("links", NEXT_LINK, since(58)),
    ),
)
SHOW: Final = Route(
    method="GET",
    path="/servers/{server_id}/os-instance-actions/{id}",
    errors=(404,),
    policies=(SHOW_POLICY,),
    soft=(EVENTS_POLICY, DETAILS_POLICY),
    query=NO_QUERY,
    response=Object(
        Field("instanceAction", _action(Field("events", array(_EVENT), required=since(51))), required=True)
    ),
)
