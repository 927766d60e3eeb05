"""Metadata of a server in REST."""

from typing import Any, Final

from kilonova.contract.cards import LEGACY_ONLY, Guard, Op, Route
from kilonova.contract.fields import METADATA_KEY, NOTHING, ByVersion, Field, Object, Shape, query
from kilonova.contract.microversions import ALL, until
from kilonova.contract.states import VM

_POLICY: Final = "os_compute_api:server-metadata:"
INDEX_POLICY: Final = _POLICY + "index"
SHOW_POLICY: Final = _POLICY + "show"
CREATE_POLICY: Final = _POLICY + "create"
UPDATE_ALL_POLICY: Final = _POLICY + "update_all"
UPDATE_POLICY: Final = _POLICY + "update"
DELETE_POLICY: Final = _POLICY + "delete"

_PATH: Final = "/servers/{server_id}/metadata"
NO_QUERY: Final = ByVersion((LEGACY_ONLY, {}), (ALL, query(lenient=until(101))))


def _items(kind: object, member: str, **limits: Any) -> Shape:
    values = Object(patterns={METADATA_KEY: {"type": kind, "maxLength": 255}}, **limits)
    return Object(Field(member, values, required=True))


_GIVEN: Final = _items("string", "metadata")
_SHOWN: Final = _items(["string", "null"], "metadata")
_ONE_GIVEN: Final = _items("string", "meta", minProperties=1, maxProperties=1)
_ONE_SHOWN: Final = _items(["string", "null"], "meta", minProperties=1, maxProperties=1)

LIST: Final = Route(method="GET", path=_PATH, errors=(404,), policies=(INDEX_POLICY,), query=NO_QUERY, response=_SHOWN)
CREATE: Final = Route(
    method="POST", path=_PATH, errors=(403, 404, 409), policies=(CREATE_POLICY,), body=_GIVEN, response=_SHOWN
)
REPLACE: Final = Route(
    method="PUT", path=_PATH, errors=(403, 404, 409), policies=(UPDATE_ALL_POLICY,), body=_GIVEN, response=_SHOWN
)
SHOW: Final = Route(
    method="GET",
    path=_PATH + "/{id}",
    errors=(404,),
    policies=(SHOW_POLICY,),
    query=NO_QUERY,
    response=_ONE_SHOWN,
)
UPDATE: Final = Route(
    method="PUT",
    path=_PATH + "/{id}",
    makes=True,
    errors=(400, 403, 404, 409),
    policies=(UPDATE_POLICY,),
    body=_ONE_GIVEN,
    response=_ONE_SHOWN,
)
DELETE: Final = Route(
    method="DELETE",
    path=_PATH + "/{id}",
    success=204,
    errors=(404, 409),
    policies=(DELETE_POLICY,),
    response=NOTHING,
)
GUARD: Final = Guard(vm=frozenset({VM.ACTIVE, VM.PAUSED, VM.SUSPENDED, VM.STOPPED}), task=None)
CHANGE: Final = Op(
    name="update_metadata",
    routes=(CREATE, REPLACE, UPDATE),
    guards={"update_instance_metadata": GUARD},
)
REMOVE: Final = Op(
    name="delete_metadata",
    routes=(DELETE,),
    guards={"delete_instance_metadata": GUARD},
)
