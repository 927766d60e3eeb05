"""Looking through a long list page by page for the few that need something.

What is left out (a flow is at work, its host is away) must not hide what comes behind it, so pages are read on until
enough is found; what is more waits for the next pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kilonova.db.query import Row

ENOUGH: Final = 500
"""Rows of one database in one pass."""


def first(page: Callable[[int], list[Row]], chosen: Callable[[list[Row]], list[Row]]) -> list[Row]:
    """The first rows that are chosen: `page` has those behind a number (`id`), none at the end."""
    found: list[Row] = []
    after = 0
    while len(found) < ENOUGH and (rows := page(after)):
        found += chosen(rows)
        after = rows[-1]["id"]
    return found[:ENOUGH]
