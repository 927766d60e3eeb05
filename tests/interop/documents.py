"""Where two documents differ."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


def unequal(where: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The path, the old and the new value of everything that differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in old.keys() | new.keys():
            yield from unequal(f"{where}.{key}", old.get(key, ABSENT), new.get(key, ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for n, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from unequal(f"{where}[{n}]", one, other)
    elif old != new:
        yield where.lstrip("."), old, new


@dataclasses.dataclass(frozen=True)
class Allowed:
    """A difference that is none of ours, or is meant: where (of what was asked) and field, by pattern, and why."""

    where: str
    field: str
    why: str

    def covers(self, asked: str, field: str) -> bool:
        return bool(re.search(self.where, asked) and re.fullmatch(self.field, field))
