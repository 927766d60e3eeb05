"""Services of the cloud in REST."""

from typing import Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import (
    BOOLEAN,
    INTEGER,
    NOTHING,
    TEXT,
    UUID,
    ByVersion,
    Field,
    Object,
    array,
    nullable,
    one_of,
    query,
)
from kilonova.contract.microversions import ALL, since, until

LIST_POLICY: Final = "os_compute_api:os-services:list"
UPDATE_POLICY: Final = "os_compute_api:os-services:update"
DELETE_POLICY: Final = "os_compute_api:os-services:delete"

_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 255}
_HOST: Final = {**_NAME, "pattern": "^[a-zA-Z0-9-._]*$"}
_STATUS: Final = {"type": "string", "enum": ["disabled", "enabled"]}
_STATUS_SHOWN: Final = ByVersion(
    (until(68), _STATUS), (ALL, {"type": "string", "enum": ["UNKNOWN", "disabled", "enabled"]})
)
_TIME: Final = {"type": ["string", "null"], "format": "date-time"}
# From 2.69 on, little is known of the services of a cell that does not answer.
_SERVICE: Final = Object(
    Field("binary", TEXT, required=True),
    Field("disabled_reason", nullable(TEXT), required=until(68)),
    Field("forced_down", {"type": "boolean"}, since(11), required=until(68)),
    Field("host", TEXT, required=True),
    Field("id", ByVersion((until(52), INTEGER), (ALL, UUID)), required=until(68)),
    Field("state", {"type": "string", "enum": ["down", "up"]}, required=until(68)),
    Field("status", _STATUS_SHOWN, required=True),
    Field("updated_at", _TIME, required=until(68)),
    Field("zone", TEXT, required=until(68)),
)
_CHANGED: Final = one_of(
    Object(
        Field("binary", TEXT, required=True),
        Field("disabled_reason", nullable(TEXT)),
        Field("host", TEXT, required=True),
        Field("status", _STATUS, required=True),
    ),
    Object(
        Field("binary", TEXT, required=True),
        Field("forced_down", {"type": "boolean"}, required=True),
        Field("host", TEXT, required=True),
    ),
)

LIST: Final = Route(
    method="GET",
    path="/os-services",
    policies=(LIST_POLICY,),
    query=query(Field("binary", TEXT), Field("host", TEXT), lenient=until(74)),
    response=Object(Field("services", array(_SERVICE), required=True)),
)
UPDATE: Final = Route(
    method="PUT",
    path="/os-services/{id}",
    errors=(400, 404),
    policies=(UPDATE_POLICY,),
    body=Object(
        Field("binary", _NAME, until(52), required=True),
        Field("disabled_reason", _NAME),
        Field("forced_down", BOOLEAN, since(11)),
        Field("host", _HOST, until(52), required=True),
        Field("status", _STATUS, since(53)),
    ),
    response=Object(Field("service", ByVersion((until(52), _CHANGED), (ALL, _SERVICE)), required=True)),
)
DELETE: Final = Route(
    method="DELETE",
    path="/os-services/{id}",
    success=204,
    errors=(400, 404, 409),
    policies=(DELETE_POLICY,),
    response=NOTHING,
)
