"""Lists of other services, page after page: each service says in its own way that there is more.

Neutron and Cinder link with `<noun>_links`, Glance with `next`, Keystone with `links` (or it only says `truncated`).
Cinder's attachments come cut and without a word. Placement gives its lists whole.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kilonova.clients.http import Params, ServiceError

MOST: Final = 1000
"""Pages of one list. Services cut at a thousand items or so."""

PLACE: Final = frozenset({"marker", "limit", "offset", "page"})
"""What of a link says where the next page begins; the rest of the query is ours."""

Ask = Callable[[Params], Any]


def every(service: str, ask: Ask, params: Params, key: str, *, linked: bool = True) -> Iterator[dict[str, Any]]:
    """All items of a list. `ask` gets the body of one page; `linked` is False where a service does not say of more.

    A list that does not end, because the service turns in circles, is a ServiceError.
    """
    query = list(params.items()) if isinstance(params, Mapping) else list(params)
    places: set[tuple[tuple[str, Any], ...]] = set()
    for _ in range(MOST):
        body = ask(query)
        yield from body[key]
        place = _next(body, key, linked=linked) if body[key] else None
        if place is None:
            return
        if place in places:
            break
        places.add(place)
        names = {name for name, _ in place}
        query = [(name, value) for name, value in query if name not in names] + list(place)
    raise ServiceError(service, f"the list of {key} does not end")


def _next(body: Mapping[str, Any], key: str, *, linked: bool) -> tuple[tuple[str, Any], ...] | None:
    """Where the next page begins; None after the last one."""
    link = _link(body, key)
    if link is not None:
        query = urllib.parse.parse_qsl(urllib.parse.urlsplit(link).query)
        return tuple((name, value) for name, value in query if name in PLACE)
    if not linked or body.get("truncated"):
        return (("marker", body[key][-1]["id"]),)
    return None


def _link(body: Mapping[str, Any], key: str) -> str | None:
    links: Sequence[Mapping[str, str]] = body.get(f"{key}_links") or ()
    named = next((link["href"] for link in links if link.get("rel") == "next"), None)
    listed = body.get("links")
    found = named or body.get("next") or (listed.get("next") if isinstance(listed, Mapping) else None)
    return str(found) if found else None
