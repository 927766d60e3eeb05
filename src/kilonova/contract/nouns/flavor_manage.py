"""Making, changing and removing flavors in REST, who may use them, and what they ask of their hosts."""

from typing import Any, Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import (
    BOOLEAN,
    METADATA_KEY,
    NOTHING,
    TEXT,
    Field,
    Object,
    Shape,
    array,
    query,
)
from kilonova.contract.microversions import since, until
from kilonova.contract.nouns.flavors import FLAVOR, INDEX_EXTRA_SPECS
from kilonova.contract.nouns.servers import SERVER_NAME

CREATE_POLICY: Final = "os_compute_api:os-flavor-manage:create"
UPDATE_POLICY: Final = "os_compute_api:os-flavor-manage:update"
DELETE_POLICY: Final = "os_compute_api:os-flavor-manage:delete"
ACCESS_POLICY: Final = "os_compute_api:os-flavor-access"
ADD_ACCESS_POLICY: Final = "os_compute_api:os-flavor-access:add_tenant_access"
REMOVE_ACCESS_POLICY: Final = "os_compute_api:os-flavor-access:remove_tenant_access"
_SPECS_POLICY: Final = "os_compute_api:os-flavor-extra-specs:"
SHOW_SPEC_POLICY: Final = _SPECS_POLICY + "show"
CREATE_SPECS_POLICY: Final = _SPECS_POLICY + "create"
UPDATE_SPEC_POLICY: Final = _SPECS_POLICY + "update"
DELETE_SPEC_POLICY: Final = _SPECS_POLICY + "delete"

_MOST: Final = 2147483647
_NO_QUERY: Final = query(lenient=until(101))
_DESCRIPTION: Final = {"type": ["string", "null"], "minLength": 0, "maxLength": 65535, "format": "printable"}
_PROJECT: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}


def _amount(least: int) -> dict[str, Any]:
    return {"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": least, "maximum": _MOST}


_ID: Final = {
    "type": ["string", "number", "null"],
    "minLength": 1,
    "maxLength": 255,
    "pattern": "^(?! )[a-zA-Z0-9. _-]+(?<! )$",
}
_FACTOR: Final = {
    "type": ["number", "string"],
    "pattern": r"^[0-9]+(\.[0-9]+)?$",
    "exclusiveMinimum": 0,
    "maximum": 3.40282e38,
}
CREATE: Final = Route(
    method="POST",
    path="/flavors",
    errors=(400, 409),
    policies=(CREATE_POLICY,),
    soft=(INDEX_EXTRA_SPECS,),
    body=Object(
        Field(
            "flavor",
            Object(
                Field("name", SERVER_NAME, required=True),
                Field("id", _ID),
                Field("ram", _amount(1), required=True),
                Field("vcpus", _amount(1), required=True),
                Field("disk", _amount(0), required=True),
                Field("OS-FLV-EXT-DATA:ephemeral", _amount(0)),
                Field("swap", _amount(0)),
                Field("rxtx_factor", _FACTOR, until(101)),
                Field("os-flavor-access:is_public", BOOLEAN),
                Field("description", _DESCRIPTION, since(55)),
            ),
            required=True,
        )
    ),
    response=Object(Field("flavor", FLAVOR, required=True)),
)
UPDATE: Final = Route(
    method="PUT",
    path="/flavors/{id}",
    versions=since(55),
    errors=(400, 404),
    policies=(UPDATE_POLICY,),
    soft=(INDEX_EXTRA_SPECS,),
    body=Object(
        Field("flavor", Object(Field("description", _DESCRIPTION, required=True)), required=True),
    ),
    response=Object(Field("flavor", FLAVOR, required=True)),
)
DELETE: Final = Route(
    method="DELETE",
    path="/flavors/{id}",
    success=202,
    errors=(404,),
    policies=(DELETE_POLICY,),
    response=NOTHING,
)

# ---------------------------------------------------------------- access

_ACCESS: Final = Object(
    Field(
        "flavor_access",
        array(Object(Field("flavor_id", TEXT, required=True), Field("tenant_id", _PROJECT, required=True), extra=True)),
        required=True,
    ),
    extra=True,
)


def _access_action(key: str, policy: str, errors: tuple[int, ...]) -> Route:
    return Route(
        method="POST",
        path="/flavors/{id}/action",
        action=key,
        errors=errors,
        policies=(policy,),
        body=Object(
            Field(
                key,
                Object(Field("tenant", {"type": "string", "minLength": 1, "maxLength": 255}, required=True)),
                required=True,
            )
        ),
        response=_ACCESS,
    )


LIST_ACCESS: Final = Route(
    method="GET",
    path="/flavors/{flavor_id}/os-flavor-access",
    errors=(404,),
    policies=(ACCESS_POLICY,),
    query=_NO_QUERY,
    response=_ACCESS,
)
ADD_ACCESS: Final = _access_action("addTenantAccess", ADD_ACCESS_POLICY, (400, 403, 404, 409))
REMOVE_ACCESS: Final = _access_action("removeTenantAccess", REMOVE_ACCESS_POLICY, (400, 403, 404))

# ---------------------------------------------------------------- extra specs

_PATH: Final = "/flavors/{flavor_id}/os-extra_specs"
_VALUE: Final = {"type": ["string", "number"], "maxLength": 255}
_ONE: Final = Object(patterns={METADATA_KEY: _VALUE}, minProperties=1, maxProperties=1)


def _specs(shape: Shape) -> Object:
    return Object(Field("extra_specs", shape, required=True))


LIST_SPECS: Final = Route(
    method="GET",
    path=_PATH,
    errors=(404,),
    policies=(INDEX_EXTRA_SPECS,),
    query=_NO_QUERY,
    response=_specs(Object(patterns={METADATA_KEY: _VALUE})),
)
CREATE_SPECS: Final = Route(
    method="POST",
    path=_PATH,
    errors=(400, 404, 409),
    policies=(CREATE_SPECS_POLICY,),
    body=_specs(Object(patterns={METADATA_KEY: _VALUE})),
    response=_specs(Object(patterns={METADATA_KEY: _VALUE})),
)
SHOW_SPEC: Final = Route(
    method="GET",
    path=_PATH + "/{id}",
    errors=(404,),
    policies=(SHOW_SPEC_POLICY,),
    query=_NO_QUERY,
    response=Object(patterns={METADATA_KEY: _VALUE}),
)
UPDATE_SPEC: Final = Route(
    method="PUT",
    path=_PATH + "/{id}",
    makes=True,
    errors=(400, 404, 409),
    policies=(UPDATE_SPEC_POLICY,),
    body=_ONE,
    response=_ONE,
)
DELETE_SPEC: Final = Route(
    method="DELETE",
    path=_PATH + "/{id}",
    errors=(404,),
    policies=(DELETE_SPEC_POLICY,),
    response=NOTHING,
)
