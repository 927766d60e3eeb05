"""Flavors in REST: list, detail, show."""

from typing import Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import (
    INTEGER,
    LIMIT,
    LINKS,
    METADATA,
    TEXT,
    URI,
    ByVersion,
    Field,
    Object,
    array,
    nullable,
    query,
)
from kilonova.contract.microversions import ALL, since, until

INDEX_EXTRA_SPECS: Final = "os_compute_api:os-flavor-extra-specs:index"

SORT_KEYS: Final = [
    "created_at",
    "description",
    "disabled",
    "ephemeral_gb",
    "flavorid",
    "id",
    "is_public",
    "memory_mb",
    "name",
    "root_gb",
    "swap",
    "updated_at",
    "vcpu_weight",
    "vcpus",
]
_LIST_QUERY: Final = query(
    Field("is_public", TEXT),
    Field("limit", LIMIT),
    Field("marker", TEXT),
    Field("minDisk", TEXT),
    Field("minRam", TEXT),
    Field("name", TEXT, since(102)),
    Field("sort_dir", {"type": "string", "enum": ["asc", "desc"]}),
    Field(
        "sort_key",
        ByVersion(
            (until(101), {"type": "string", "enum": [*SORT_KEYS, "rxtx_factor"]}),
            (ALL, {"type": "string", "enum": SORT_KEYS}),
        ),
    ),
    lenient=until(74),
)

_BARE_LINKS: Final = array(Object(Field("href", URI, required=True), Field("rel", TEXT, required=True), extra=True))
_SWAP_OR_EMPTY: Final = {"anyOf": [INTEGER, {"const": ""}]}


def flavor(swap: object) -> Object:
    """A flavor in full; ``swap`` is the shape of its swap, which lost the empty string in 2.75."""
    return Object(
        Field("OS-FLV-DISABLED:disabled", {"type": "boolean"}, until(101), required=True),
        Field("OS-FLV-EXT-DATA:ephemeral", INTEGER, required=True),
        Field("description", nullable(TEXT), since(55), required=True),
        Field("disk", INTEGER, required=True),
        Field("extra_specs", METADATA, since(61)),
        Field("id", TEXT, required=True),
        Field("links", _BARE_LINKS, required=True),
        Field("name", TEXT, required=True),
        Field("os-flavor-access:is_public", {}, required=True),
        Field("ram", INTEGER, required=True),
        Field("rxtx_factor", {}, until(101), required=True),
        Field("swap", swap, required=True),
        Field("vcpus", INTEGER, required=True),
    )


FLAVOR: Final = flavor(ByVersion((until(74), _SWAP_OR_EMPTY), (ALL, INTEGER)))
_FLAVOR_IN_LIST: Final = flavor(ByVersion((until(101), _SWAP_OR_EMPTY), (ALL, INTEGER)))
_BRIEF: Final = Object(
    Field("description", nullable(TEXT), since(55), required=True),
    Field("id", TEXT, required=True),
    Field("links", LINKS, required=True),
    Field("name", TEXT, required=True),
)

LIST: Final = Route(
    method="GET",
    path="/flavors",
    errors=(400,),
    query=_LIST_QUERY,
    response=Object(Field("flavors", array(_BRIEF), required=True), Field("flavors_links", LINKS)),
)
DETAIL: Final = Route(
    method="GET",
    path="/flavors/detail",
    errors=(400,),
    soft=(INDEX_EXTRA_SPECS,),
    query=_LIST_QUERY,
    response=Object(Field("flavors", array(_FLAVOR_IN_LIST), required=True), Field("flavors_links", LINKS)),
)
SHOW: Final = Route(
    method="GET",
    path="/flavors/{id}",
    errors=(404,),
    soft=(INDEX_EXTRA_SPECS,),
    query=query(lenient=until(101)),
    response=Object(Field("flavor", FLAVOR, required=True)),
)
