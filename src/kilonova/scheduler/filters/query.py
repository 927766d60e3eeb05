"""The hint `query`: a JSON expression over a host's attributes."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.filters.capabilities import VISIBLE
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class JsonFilter(Filter):
    """`["and", [">=", "$free_ram_mb", 1024], ["=", "$hypervisor_type", "QEMU"]]`"""

    def objection(self, host: Host, request: Request) -> str | None:
        text = request.hint("query")
        if not text:
            return None
        try:
            result = evaluate(json.loads(text), host)
        except (ValueError, TypeError, RecursionError) as exc:
            return f"the query is malformed: {exc}"
        if isinstance(result, list):
            result = any(result)
        return None if result else "the query does not hold"


def evaluate(expression: Any, host: Host) -> Any:
    """Lists are [operator, argument...], `$a.b` an attribute of the host; raises ValueError for anything else."""
    if not expression:
        return True
    if not isinstance(expression, list):
        raise ValueError(f"{expression!r} is no list")
    sign, *arguments = expression
    values = [value for value in (argument(each, host) for each in arguments) if value is not None]
    if sign in COMPARE:
        return len(values) > 1 and all(COMPARE[sign](values[0], each) for each in values[1:])
    if sign == "in":
        return len(values) > 1 and values[0] in values[1:]
    if sign == "not":
        return [not each for each in values]
    if sign == "or":
        return any(values)
    if sign == "and":
        return all(values)
    raise ValueError(f"{sign!r} is no operator")


def argument(value: Any, host: Host) -> Any:
    if isinstance(value, list):
        return evaluate(value, host)
    if not isinstance(value, str) or not value.startswith("$"):
        return value if value != "" else None
    first, *rest = value[1:].split(".")
    found: Any = getattr(host, first, None) if first in VISIBLE else None
    for step in rest:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
