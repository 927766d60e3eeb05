"""Flavors: list, detail, show."""

from typing import Any

from kilonova.api import numbers
from kilonova.api.paging import Page, page
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.nouns import flavors as contract
from kilonova.db.api import flavors
from kilonova.db.outcomes import MarkerNotFoundError
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request

_WORDS = {"true": True, "1": True, "t": True, "yes": True, "y": True, "on": True}
_WORDS |= {"false": False, "0": False, "f": False, "no": False, "n": False, "off": False}


def index(call: Call[Services]) -> dict[str, Any]:
    wanted = page(call)
    rows = _rows(call, wanted)
    entries = [
        {"id": row["flavorid"], "name": row["name"], "description": row["description"], "links": _links(call, row)}
        for row in rows
    ]
    return {"flavors": entries} | _next(call, wanted, rows)


def detail(call: Call[Services]) -> dict[str, Any]:
    wanted = page(call)
    rows = _rows(call, wanted)
    with_extra_specs = _shows_extra_specs(call)
    entries = [view(call, row, with_extra_specs=with_extra_specs) for row in rows]
    return {"flavors": entries} | _next(call, wanted, rows)


def show(call: Call[Services], id: str) -> dict[str, Any]:
    row = call.services.cells.api.query(
        flavors.flavor_get, id, project_id=None if call.context.is_admin else call.context.project_id
    )
    if row is None:
        raise exceptions.FlavorNotFound(flavor_id=id)
    return {"flavor": view(call, row, with_extra_specs=_shows_extra_specs(call))}


def view(call: Call[Services], row: dict[str, Any], *, with_extra_specs: bool) -> dict[str, Any]:
    """A flavor in full."""
    shown = {
        "id": row["flavorid"],
        "name": row["name"],
        "ram": row["memory_mb"],
        "disk": row["root_gb"],
        "swap": row["swap"] or ("" if call.version < 75 else 0),
        "OS-FLV-EXT-DATA:ephemeral": row["ephemeral_gb"],
        "OS-FLV-DISABLED:disabled": bool(row["disabled"]),
        "vcpus": row["vcpus"],
        "os-flavor-access:is_public": bool(row["is_public"]),
        "rxtx_factor": row["rxtx_factor"] or "",
        "description": row["description"],
        "links": _links(call, row),
    }
    if with_extra_specs:
        shown["extra_specs"] = row["extra_specs"]
    return shown


def _shows_extra_specs(call: Call[Services]) -> bool:
    return call.version >= 61 and call.allows(contract.INDEX_EXTRA_SPECS)


def _links(call: Call[Services], row: dict[str, Any]) -> list[dict[str, str]]:
    return call.links(f"/flavors/{row['flavorid']}")


def _next(call: Call[Services], wanted: Page, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"flavors_links": [call.next_link(rows[-1]["flavorid"])]} if wanted.full(len(rows)) else {}


def _rows(call: Call[Services], wanted: Page) -> list[dict[str, Any]]:
    is_public: bool | None = True
    if call.context.is_admin:
        is_public = _is_public(call.last("is_public"))
    sort = (call.last("sort_key") or "flavorid", call.last("sort_dir") or "asc")
    try:
        return call.services.cells.api.query(
            flavors.flavor_list,
            is_public=is_public,
            # A flavor that is not public is listed to the projects that have access, those of administrators too.
            project_id=call.context.project_id,
            disabled=None if call.context.is_admin else False,
            min_memory_mb=_number(call, "minRam"),
            min_root_gb=_number(call, "minDisk"),
            name=call.last("name"),
            sort=[sort],
            limit=wanted.limit,
            marker=wanted.marker,
            marker_seen_by=None if call.context.is_admin else call.context.project_id,
        )
    except MarkerNotFoundError:
        raise bad_request(f"marker [{wanted.marker}] not found") from None


def _is_public(text: str | None) -> bool | None:
    if text is None:
        return True
    if text.lower() == "none":
        return None
    try:
        return _WORDS[text.strip().lower()]
    except KeyError:
        raise bad_request(f"Invalid is_public filter [{text}]") from None


def _number(call: Call[Services], name: str) -> int | None:
    text = call.last(name)
    return None if text is None else numbers.whole(f"{name} filter [{text[: numbers.LONGEST]}]", text)


ROUTES = [Binding(contract.LIST, index), Binding(contract.DETAIL, detail), Binding(contract.SHOW, show)]
