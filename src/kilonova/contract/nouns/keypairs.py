"""Key pairs in REST."""

from typing import Final

from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.fields import (
    INTEGER,
    LIMIT,
    NEXT_LINK,
    NOTHING,
    TEXT,
    ByVersion,
    Field,
    Object,
    array,
    query,
)
from kilonova.contract.fields import NAME as ANY_NAME
from kilonova.contract.microversions import ALL, since, until

INDEX: Final = "os_compute_api:os-keypairs:index"
CREATE_POLICY: Final = "os_compute_api:os-keypairs:create"
SHOW_POLICY: Final = "os_compute_api:os-keypairs:show"
DELETE_POLICY: Final = "os_compute_api:os-keypairs:delete"


def _name(characters: str) -> dict[str, object]:
    return {
        "allOf": [
            ANY_NAME,
            {"type": "string", "minLength": 1, "maxLength": 255, "pattern": f"^[{characters}]+$"},
        ]
    }


_NARROW_NAME: Final = _name(r"_\- a-zA-Z0-9")
_WIDE_NAME: Final = _name(r"_\-\@\. a-zA-Z0-9")
_LEGACY_NAME: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "format": "name_with_leading_trailing_spaces",
}
NAME: Final = ByVersion((LEGACY_ONLY, _LEGACY_NAME), (until(91), _NARROW_NAME), (ALL, _WIDE_NAME))
TYPE: Final = {"type": "string", "enum": ["ssh", "x509"]}
_USER_ID: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
_OF_USER: Final = query(Field("user_id", TEXT, since(10)), lenient=until(74))


def _keypair(*more: Field) -> Object:
    return Object(
        Field("fingerprint", TEXT, required=True),
        Field("name", ByVersion((until(91), _NARROW_NAME), (ALL, _WIDE_NAME)), required=True),
        Field("public_key", TEXT, required=True),
        Field("type", TYPE, since(2), required=True),
        *more,
    )


LIST: Final = Route(
    method="GET",
    path="/os-keypairs",
    errors=(((400,), since(35)),),
    policies=(INDEX,),
    query=query(
        Field("user_id", TEXT, since(10)),
        Field("limit", LIMIT, since(35)),
        Field("marker", TEXT, since(35)),
        lenient=until(74),
    ),
    response=Object(
        Field("keypairs", array(Object(Field("keypair", _keypair(), required=True))), required=True),
        Field("keypairs_links", NEXT_LINK, since(35)),
    ),
)
CREATE: Final = Route(
    method="POST",
    path="/os-keypairs",
    success=((200, until(1)), (201, since(2))),
    errors=(400, 403, 409),
    policies=(CREATE_POLICY,),
    body=Object(
        Field(
            "keypair",
            Object(
                Field("name", NAME, required=True),
                Field("public_key", TEXT, required=since(92)),
                Field("type", TYPE, since(2)),
                Field("user_id", TEXT, since(10)),
            ),
            required=True,
        )
    ),
    response=Object(
        Field(
            "keypair",
            _keypair(Field("private_key", TEXT, until(91)), Field("user_id", _USER_ID, required=True)),
            required=True,
        )
    ),
)
SHOW: Final = Route(
    method="GET",
    path="/os-keypairs/{id}",
    errors=(404,),
    policies=(SHOW_POLICY,),
    query=_OF_USER,
    response=Object(
        Field(
            "keypair",
            _keypair(
                Field("created_at", {"type": "string", "format": "date-time"}, required=True),
                Field("deleted", {"type": "boolean", "const": False}, required=True),
                Field("deleted_at", NOTHING, required=True),
                Field("id", INTEGER, required=True),
                Field("updated_at", NOTHING, required=True),
                Field("user_id", _USER_ID, required=True),
            ),
            required=True,
        )
    ),
)
DELETE: Final = Route(
    method="DELETE",
    path="/os-keypairs/{id}",
    success=((202, until(1)), (204, since(2))),
    errors=(404,),
    policies=(DELETE_POLICY,),
    query=_OF_USER,
    response=NOTHING,
)
