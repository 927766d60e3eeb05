"""What a conditional write reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Updated(msgspec.Struct, frozen=True):
    """The row was as expected and holds the new values now."""


class Stale(msgspec.Struct, frozen=True):
    """The row exists but was not as expected; nothing was written. `current` has the columns that were asked about."""

    current: Mapping[str, Any]


class Missing(msgspec.Struct, frozen=True):
    """There is no such row (any more); nothing was written."""


Outcome = Updated | Stale | Missing


class DuplicateError(Exception):
    """A row with the same unique key exists; the transaction is lost."""


class MarkerNotFoundError(Exception):
    """The page's marker names no row."""


class InvalidSortKeyError(Exception):
    """The list cannot be sorted by this key."""


class InvalidFilterError(Exception):
    """A list cannot be filtered like this: an unknown name, or a pattern that is no regular expression."""
