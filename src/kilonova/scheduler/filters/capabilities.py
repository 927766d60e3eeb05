"""Extra specs compared with what the host reports of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kilonova.scheduler import operators
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host

VISIBLE = frozenset(name for name in Host.__slots__ if not name.startswith("_")) | {"nodename"}
"""Attributes of a host that a spec or query may name."""


class ComputeCapabilitiesFilter(Filter):
    """Reads `capabilities:a:b` specs, plain keys that the host knows, and hw:maxphysaddr_bits."""

    once = True

    def applies(self, request: Request) -> bool:
        return bool(request.wishes.specs)

    def objection(self, host: Host, request: Request) -> str | None:
        specs = dict(request.wishes.specs)
        bits = specs.pop("hw:maxphysaddr_bits", None)
        if bits is not None:
            specs["capabilities:cpu_info:maxphysaddr:bits"] = f">= {bits}"
        for key, wanted in specs.items():
            path = key.split(":")
            if len(path) > 1:
                if path.pop(0) != "capabilities":
                    continue
            elif path[0] not in VISIBLE and path[0] not in host.stats:
                continue
            found = lookup(host, path)
            if found is None:
                return f"it does not report {':'.join(path)}"
            if not operators.match(str(found), wanted):
                return f"its {':'.join(path)} is {found}, not {wanted}"
        return None


def lookup(host: Host, path: list[str]) -> Any:
    """A value by its path: an attribute of the host or one of its statistics, then into JSON; None if not there."""
    found: Any = getattr(host, path[0], None) if path[0] in VISIBLE else None
    if found is None:
        found = host.stats.get(path[0])
    for step in path[1:]:
        if isinstance(found, str):
            found = _parsed(found)
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
