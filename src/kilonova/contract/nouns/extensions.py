"""Extensions in REST: what the API was made of before it had microversions. Clients still ask; the list never changes.

The entries are those of the API reference's samples, by alias, in ``extensions.json``.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any, Final

import msgspec

from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.fields import TEXT, ByVersion, Field, Object, array, query
from kilonova.contract.microversions import ALL, LEGACY, until

POLICY: Final = "os_compute_api:extensions"
_ONLY_LEGACY: Final = "OS-EXT-VIF-NET"
_EVERY: Final[dict[str, Any]] = {
    "links": [],
    "namespace": "http://docs.openstack.org/compute/ext/fake_xml",
    "updated": "2014-12-03T00:00:00Z",
}


@functools.cache
def entries(version: int) -> dict[str, dict[str, Any]]:
    """The extensions by alias, in the order of the list."""
    text = (resources.files(__package__) / "extensions.json").read_bytes()
    known: dict[str, tuple[str, str]] = msgspec.json.decode(text, type=dict[str, tuple[str, str]])
    return {
        alias: {"alias": alias, "name": name, "description": description, **_EVERY}
        for alias, (name, description) in known.items()
        if version == LEGACY or alias != _ONLY_LEGACY
    }


_LINK: Final = {"type": "object", "properties": {"href": {"type": "string", "format": "url"}, "rel": TEXT}}
_EXTENSION: Final = Object(
    Field("alias", TEXT, required=True),
    Field("description", TEXT, required=True),
    Field("links", array(_LINK), required=True),
    Field("name", TEXT, required=True),
    Field("namespace", TEXT, required=True),
    Field("updated", {"type": "string", "format": "date-time"}, required=True),
)
# The legacy endpoint checks no parameters.
_QUERY: Final = ByVersion((LEGACY_ONLY, {}), (ALL, query(lenient=until(101))))

LIST: Final = Route(
    method="GET",
    path="/extensions",
    policies=(POLICY,),
    query=_QUERY,
    response=Object(Field("extensions", array(_EXTENSION), required=True)),
)
SHOW: Final = Route(
    method="GET",
    path="/extensions/{id}",
    errors=(404,),
    policies=(POLICY,),
    query=_QUERY,
    response=Object(Field("extension", _EXTENSION, required=True)),
)
