"""Build requests by filters. Their servers are JSON text, so they are filtered and sorted here; there are few."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db.objects import build_request

Check = Callable[[objects.Instance], bool]

EXACT = ("project_id", "user_id", "image_ref", "vm_state", "instance_type_id", "uuid", "host", "task_state")
"""Compared as a whole, or with each of a list; any other field of a server is searched for a pattern."""

PAIRS = ("metadata", "system_metadata")
ONLY_AFTERWARDS = ("deleted", "cleaned")
"""Filters that only servers of a cell can meet."""

DEFAULT_SORT = ("created_at", "id")
MANY = (list, tuple, set, frozenset)

TAGS: Mapping[str, Callable[[set[str], set[str]], bool]] = {
    "tags": lambda has, asked: asked <= has,
    "tags-any": lambda has, asked: bool(asked & has),
    "not-tags": lambda has, asked: not asked <= has,
    "not-tags-any": lambda has, asked: not asked & has,
}


def get_by_filters(
    tx: sa.Connection,
    ctxt: Any,
    filters: Mapping[str, Any],
    limit: int | None = None,
    marker: str | None = None,
    sort_keys: Sequence[str] | None = None,
    sort_dirs: Sequence[str] | None = None,
) -> objects.BuildRequestList:
    """A page of those whose servers meet all filters. Raises MarkerNotFound, InvalidInput (a pattern, directions)."""
    if limit == 0 or any(filters.get(name) for name in ONLY_AFTERWARDS):
        return objects.BuildRequestList(objects=_page([], marker, limit))
    checks = [_check(name, value) for name, value in filters.items()]
    every = build_request.get_all(tx, ctxt).objects
    found = [request for request in every if all(check(request.instance) for check in checks)]
    for key, direction in reversed(_order(sort_keys, sort_dirs)):
        found.sort(key=_by(key), reverse=direction == "desc")
    return objects.BuildRequestList(objects=_page(found, marker, limit))


def _page(found: list[Any], marker: str | None, limit: int | None) -> list[Any]:
    if not marker:
        return found[:limit]
    places = [n for n, request in enumerate(found) if request.instance_uuid == marker]
    if not places:
        raise exceptions.MarkerNotFound(marker=marker)
    rest = found[places[0] + 1 :]
    return rest[:limit]


def _order(keys: Sequence[str] | None, directions: Sequence[str] | None) -> list[tuple[str, str]]:
    """Keys with their directions; what is not asked for follows, newest first."""
    asked, given = list(keys or ()), list(directions or ())
    if len(given) > len(asked):
        raise exceptions.InvalidInput(reason="there are more sort directions than sort keys")
    if set(given) - {"asc", "desc"}:
        raise exceptions.InvalidInput(reason="a sort direction is asc or desc")
    rest = given[:1] or ["desc"]
    asked += [key for key in DEFAULT_SORT if key not in asked]
    return [(key, given[n] if n < len(given) else rest[0]) for n, key in enumerate(asked)]


def _by(key: str) -> Callable[[Any], tuple[bool, Any]]:
    def value(request: objects.BuildRequest) -> tuple[bool, Any]:
        # A server has no number yet; its request has. Nothing is the smallest.
        found = request.id if key == "id" else request.instance.get(key)
        return found is not None, found if found is not None else 0

    return value


def _check(name: str, wanted: Any) -> Check:
    if name in PAIRS:
        return _pairs(name, wanted)
    if name in TAGS:
        return lambda server: TAGS[name]({tag.tag for tag in server.tags}, set(wanted))
    if name not in EXACT:
        return _pattern(name, wanted)
    if isinstance(wanted, MANY):
        return lambda server: server.get(name) in wanted
    return lambda server: bool(server.get(name) == wanted)


def _pairs(name: str, wanted: Mapping[str, str] | Collection[Mapping[str, str]]) -> Check:
    asked = [wanted] if isinstance(wanted, Mapping) else list(wanted)
    items = list(itertools.chain.from_iterable(each.items() for each in asked))
    return lambda server: all((server.get(name) or {}).get(key) == value for key, value in items)


def _pattern(name: str, wanted: Any) -> Check:
    """A field that servers do not have, or that is empty, keeps none away."""
    if name not in objects.Instance.fields:
        return lambda server: True
    try:
        pattern = re.compile(str(wanted))
    except re.error as exc:
        raise exceptions.InvalidInput(reason=f"{name}: {exc}") from exc
    return lambda server: not server.get(name) or bool(pattern.search(str(server.get(name))))
