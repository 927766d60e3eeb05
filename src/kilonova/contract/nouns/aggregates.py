"""Host aggregates in REST."""

from typing import Any, Final

from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.fields import (
    INTEGER,
    METADATA_KEY,
    NOTHING,
    TEXT,
    UUID,
    ByVersion,
    Field,
    Object,
    Shape,
    array,
    nullable,
    query,
)
from kilonova.contract.microversions import ALL, since, until
from kilonova.contract.nouns.servers import SERVER_NAME

_POLICY: Final = "os_compute_api:os-aggregates:"
INDEX_POLICY: Final = _POLICY + "index"
CREATE_POLICY: Final = _POLICY + "create"
SHOW_POLICY: Final = _POLICY + "show"
UPDATE_POLICY: Final = _POLICY + "update"
DELETE_POLICY: Final = _POLICY + "delete"
ADD_HOST_POLICY: Final = _POLICY + "add_host"
REMOVE_HOST_POLICY: Final = _POLICY + "remove_host"
SET_METADATA_POLICY: Final = _POLICY + "set_metadata"

_PATH: Final = "/os-aggregates"
_ONE: Final = _PATH + "/{id}"
_TIME: Final = {"type": "string", "format": "date-time"}
_HOST: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-._]*$"}


def _zone(form: str) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1, "maxLength": 255, "format": form}
    return {"oneOf": [name, {"type": "null"}]}


_ZONE: Final = ByVersion((LEGACY_ONLY, _zone("az_name_with_leading_trailing_spaces")), (ALL, _zone("az_name")))
# An update takes spaces around the name, which are then taken away.
_LOOSE_NAME: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "format": "name_with_leading_trailing_spaces",
}
_BASIC: Final = (
    Field("availability_zone", nullable(TEXT), required=True),
    Field("created_at", _TIME, required=True),
    Field("deleted", {"type": "boolean"}, required=True),
    Field("deleted_at", nullable(_TIME), required=True),
    Field("id", INTEGER, required=True),
    Field("name", TEXT, required=True),
    Field("updated_at", nullable(_TIME), required=True),
    Field("uuid", UUID, since(41), required=True),
)
_WHOLE: Final = Object(
    *_BASIC,
    Field("hosts", nullable(array(_HOST)), required=True),
    Field(
        "metadata",
        Object(patterns={METADATA_KEY: {"type": ["string", "null"], "maxLength": 255}}, nullable=True),
        required=True,
    ),
)
_NO_QUERY: Final = ByVersion((LEGACY_ONLY, {}), (ALL, query(lenient=until(101))))


def _answer(shape: Object, member: str = "aggregate") -> Object:
    return Object(Field(member, shape, required=True))


def _asked(name: Shape, *, name_required: bool, **limits: Any) -> Object:
    return Object(
        Field(
            "aggregate",
            Object(Field("name", name, required=name_required), Field("availability_zone", _ZONE), **limits),
            required=True,
        )
    )


LIST: Final = Route(
    method="GET",
    path=_PATH,
    policies=(INDEX_POLICY,),
    query=_NO_QUERY,
    response=Object(Field("aggregates", array(_WHOLE), required=True)),
)
CREATE: Final = Route(
    method="POST",
    path=_PATH,
    errors=(400, 409),
    policies=(CREATE_POLICY,),
    body=_asked(SERVER_NAME, name_required=True),
    response=_answer(Object(*_BASIC)),
)
SHOW: Final = Route(
    method="GET", path=_ONE, errors=(400, 404), policies=(SHOW_POLICY,), query=_NO_QUERY, response=_answer(_WHOLE)
)
UPDATE: Final = Route(
    method="PUT",
    path=_ONE,
    errors=(400, 404, 409),
    policies=(UPDATE_POLICY,),
    body=_asked(_LOOSE_NAME, name_required=False, anyOf=[{"required": ["name"]}, {"required": ["availability_zone"]}]),
    response=_answer(_WHOLE),
)
DELETE: Final = Route(method="DELETE", path=_ONE, errors=(400, 404), policies=(DELETE_POLICY,), response=NOTHING)


def _action(key: str, policy: str, errors: tuple[int, ...], value: Shape) -> Route:
    return Route(
        method="POST",
        path=_ONE + "/action",
        action=key,
        errors=errors,
        policies=(policy,),
        body=Object(Field(key, value, required=True)),
        response=_answer(_WHOLE),
    )


_OF_HOST: Final = Object(Field("host", _HOST, required=True))
_METADATA: Final = Object(patterns={METADATA_KEY: {"type": ["string", "null"], "maxLength": 255}})
ADD_HOST: Final = _action("add_host", ADD_HOST_POLICY, (400, 404, 409), _OF_HOST)
REMOVE_HOST: Final = _action("remove_host", REMOVE_HOST_POLICY, (400, 404, 409), _OF_HOST)
SET_METADATA: Final = _action(
    "set_metadata", SET_METADATA_POLICY, (400, 404), Object(Field("metadata", _METADATA, required=True))
)
