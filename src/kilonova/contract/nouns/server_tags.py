"""Tags of a server in REST, from 2.26."""

from typing import Any, Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import NOTHING, Field, Object, array, query
from kilonova.contract.microversions import ALL, since
from kilonova.contract.states import VM

_POLICY: Final = "os_compute_api:os-server-tags:"
INDEX_POLICY: Final = _POLICY + "index"
SHOW_POLICY: Final = _POLICY + "show"
UPDATE_POLICY: Final = _POLICY + "update"
UPDATE_ALL_POLICY: Final = _POLICY + "update_all"
DELETE_POLICY: Final = _POLICY + "delete"
DELETE_ALL_POLICY: Final = _POLICY + "delete_all"

CHANGEABLE: Final = frozenset({VM.ACTIVE, VM.PAUSED, VM.SUSPENDED, VM.STOPPED})
MOST: Final = 50
LONGEST: Final = 60
_PATH: Final = "/servers/{server_id}/tags"
_VERSIONS: Final = since(26)
TAG: Final = {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": "^[^,/]*$"}
_SHOWN: Final = Object(Field("tags", array(TAG), required=True))
_ANY_QUERY: Final = query(lenient=ALL)


def _route(method: str, path: str, policy: str, **more: Any) -> Route:
    return Route(method=method, path=path, versions=_VERSIONS, policies=(policy,), **more)


LIST: Final = _route("GET", _PATH, INDEX_POLICY, errors=(404,), query=_ANY_QUERY, response=_SHOWN)
REPLACE: Final = _route(
    "PUT",
    _PATH,
    UPDATE_ALL_POLICY,
    errors=(404, 409),
    body=Object(Field("tags", array(TAG, maxItems=MOST), required=True)),
    response=_SHOWN,
)
CLEAR: Final = _route("DELETE", _PATH, DELETE_ALL_POLICY, success=204, errors=(404, 409), response=NOTHING)
SHOW: Final = _route(
    "GET", _PATH + "/{id}", SHOW_POLICY, success=204, errors=(404,), query=_ANY_QUERY, response=NOTHING
)
# 201 for a tag that is new, 204 for one that was there.
ADD: Final = _route(
    "PUT",
    _PATH + "/{id}",
    UPDATE_POLICY,
    makes=True,
    success=((201, ALL), (204, ALL)),
    errors=(400, 404, 409),
    body=NOTHING,
    response=NOTHING,
)
REMOVE: Final = _route("DELETE", _PATH + "/{id}", DELETE_POLICY, success=204, errors=(404, 409), response=NOTHING)
