"""Server groups in REST."""

from typing import Any, Final

from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.fields import (
    INTEGER,
    LIMIT,
    NAME,
    NOTHING,
    UUID,
    ByVersion,
    Field,
    Object,
    array,
    query,
)
from kilonova.contract.microversions import ALL, since, until

_POLICY: Final = "os_compute_api:os-server-groups:"
INDEX_POLICY: Final = _POLICY + "index"
ALL_PROJECTS_POLICY: Final = _POLICY + "index:all_projects"
CREATE_POLICY: Final = _POLICY + "create"
SHOW_POLICY: Final = _POLICY + "show"
DELETE_POLICY: Final = _POLICY + "delete"

_STRICT: Final = ["anti-affinity", "affinity"]
POLICIES: Final = [*_STRICT, "soft-anti-affinity", "soft-affinity"]
_OWNER: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
_NO_QUERY: Final = ByVersion((LEGACY_ONLY, {}), (ALL, query(lenient=until(101))))


def _policies(least: int, **limits: Any) -> ByVersion:
    def of(names: list[str]) -> dict[str, Any]:
        first = {"type": "string", "enum": names}
        return {"type": "array", "prefixItems": [first], "minItems": least, "maxItems": 1, **limits}

    return ByVersion((until(14), of(_STRICT)), (ALL, of(POLICIES)))


_GROUP: Final = Object(
    Field("id", UUID, required=True),
    Field("name", {"type": "string"}, required=True),
    Field("policies", _policies(0), until(63), required=True),
    Field("metadata", Object(), until(63), required=True),
    Field("members", array(UUID), required=True),
    Field("project_id", _OWNER, since(13), required=True),
    Field("user_id", _OWNER, since(13), required=True),
    Field("policy", {"type": "string", "enum": POLICIES}, since(64), required=True),
    Field("rules", Object(Field("max_server_per_host", INTEGER)), since(64), required=True),
)
_PER_HOST: Final = {"type": ["integer", "string"], "pattern": "^[0-9]*$", "minLength": 1, "minimum": 1}

LIST: Final = Route(
    method="GET",
    path="/os-server-groups",
    policies=(INDEX_POLICY, ALL_PROJECTS_POLICY),
    query=query(
        Field("all_projects", {"type": "string"}), Field("limit", LIMIT), Field("offset", LIMIT), lenient=until(74)
    ),
    response=Object(Field("server_groups", array(_GROUP), required=True)),
)
CREATE: Final = Route(
    method="POST",
    path="/os-server-groups",
    errors=(400, 403, 409),
    policies=(CREATE_POLICY,),
    body=Object(
        Field(
            "server_group",
            Object(
                Field("name", NAME, required=True),
                Field("policies", _policies(1, uniqueItems=True), until(63), required=True),
                Field("policy", {"type": "string", "enum": POLICIES}, since(64), required=True),
                Field("rules", Object(Field("max_server_per_host", _PER_HOST)), since(64)),
            ),
            required=True,
        )
    ),
    response=Object(Field("server_group", _GROUP, required=True)),
)
SHOW: Final = Route(
    method="GET",
    path="/os-server-groups/{id}",
    errors=(404,),
    policies=(SHOW_POLICY,),
    query=_NO_QUERY,
    response=Object(Field("server_group", _GROUP, required=True)),
)
DELETE: Final = Route(
    method="DELETE",
    path="/os-server-groups/{id}",
    success=204,
    errors=(404,),
    policies=(DELETE_POLICY,),
    response=NOTHING,
)
