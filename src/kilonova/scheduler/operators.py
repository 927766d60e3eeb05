"""The little language of extra specs that are compared with what a host has (`>= 4`, `<in> vmx`, `<or> a <or> b`)."""

from __future__ import annotations

import operator
from collections.abc import Callable

NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
"""`=` means at least, as it always has."""

TEXTUAL: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": lambda value, wanted: wanted in value,
}


def match(value: str | None, wanted: str) -> bool:
    """Does a host's value satisfy the spec. Without an operator they must be the same."""
    words = wanted.split()
    sign = words[0] if words else ""
    if sign not in NUMERIC and sign not in TEXTUAL and sign not in ("<or>", "<all-in>"):
        return value == wanted
    if value is None or len(words) < 2:
        return False
    if sign == "<or>":
        return value in words[1::2]
    if sign == "<all-in>":
        return all(word in value for word in words[1:])
    if sign in TEXTUAL:
        return TEXTUAL[sign](value, words[1])
    return _numeric(sign, value, words[1])


def _numeric(sign: str, value: str, wanted: str) -> bool:
    try:
        return NUMERIC[sign](float(value), float(wanted))
    except ValueError:
        return False
