"""What the contract takes for valid: its JSON schemas, their dialect and their formats.

Nova's dialect is JSON Schema 2020-12 with `minimum`/`maximum` applied to numeric strings too, ten formats of its own,
and, on the legacy endpoint, unknown properties dropped instead of refused.
"""

from __future__ import annotations

import base64
import binascii
import copy
import datetime
import ipaddress
import json
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema
from tests.contract import facts
from tests.contract.fact_sheets import LATEST, minor

LEGACY = 0  # the minor version that stands for the legacy endpoint: microversion "2.0"
Format = Callable[[Any], bool]


def _text(check: Callable[[str], bool]) -> Format:
    """A format that only speaks of strings."""
    return lambda value: not isinstance(value, str) or check(value)


def _regex(text: str) -> bool:
    try:
        return bool(text) and bool(re.compile(text))
    except re.error:
        return False


_DATE = re.compile(
    r"(\d{4})(?:(?:-(\d{1,2})|(\d{2})(?!$))(?:(?:-(\d{1,2})|(\d{2}))"
    r"(?:[ T](\d{2})(?::?(\d{2}))?(?::?(\d{1,2})(?:[.,]\d+)?)?(?:Z|[-+](\d{2}):?(\d{2})?)?)?)?)?$",
    re.ASCII,
)


def _date_time(text: str) -> bool:
    """ISO 8601 from a bare year to a fraction of a second, of a date that exists."""
    match = _DATE.match(text)
    if not match:
        return False
    year, m1, m2, d1, d2, hour, minute, second, zone_h, zone_m = match.groups()
    try:
        datetime.datetime(
            int(year), int(m1 or m2 or 1), int(d1 or d2 or 1), int(hour or 0), int(minute or 0), int(second or 0)
        )
        datetime.timezone(datetime.timedelta(hours=int(zone_h or 0), minutes=int(zone_m or 0)))
    except ValueError:
        return False
    return True


def _base64(text: str) -> bool:
    """ASCII whose base64 letters decode; other characters are passed over."""
    try:
        base64.b64decode(text)
    except (binascii.Error, ValueError):
        return False
    return True


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _cidr(text: str) -> bool:
    """An IPv4 or IPv6 address, a slash, and a prefix length, net mask or host mask; host bits may be set."""
    address, slash, mask = text.partition("/")
    ip = _ip(address)
    if not slash or ip is None or re.search(r"\s", text):
        return False
    try:
        return 0 <= int(mask) <= ip.max_prefixlen
    except ValueError:
        other = _ip(mask)
    if other is None or other.version != ip.version:
        return False
    bits = int(other)
    hosts = bits ^ (2**ip.max_prefixlen - 1)
    return not bits & (bits + 1) or not hosts & (hosts + 1)


def _uuid(text: str) -> bool:
    """32 hexadecimal digits, in any case, hyphenated anyhow, in braces or after urn:uuid:"""
    try:
        plain = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
        return uuid.UUID(text).hex == plain
    except ValueError:
        return False


_LETTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_AUTHORITY = re.compile(rf"(?:(?:{_LETTER}|:)+@)?(?P<host>\[[^\]]*\]|{_LETTER}*):?[0-9]*")


def _uri(text: str) -> bool:
    """An absolute URI (RFC 3986) with an authority; [ ] and a second # are the only signs refused."""
    match = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*://([^/?#]+)[^#\[\]]*(?:#[^#\[\]]*)?", text)
    authority = match and _AUTHORITY.fullmatch(match[1].removesuffix("\n"))
    if not authority:
        return False
    host = authority["host"]
    if host.startswith("["):
        plain, _, zone = host[1:-1].partition("%25")
        return bool(re.fullmatch(rf"v[0-9A-Fa-f]+\.(?:{_LETTER}|:)+", plain)) or (
            isinstance(_ip(plain), ipaddress.IPv6Address) and "%" not in zone
        )
    return not re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", host) or _ip(host) is not None


def _printable(char: str) -> bool:
    """Letters, marks, numbers, punctuation, symbols and horizontal spaces of the basic plane."""
    kind = unicodedata.category(char)
    return ord(char) < 0xFFFF and kind[0] != "C" and (kind[0] != "Z" or kind == "Zs")


def _space(char: str) -> bool:
    return unicodedata.category(char) == "Zs"


def _name(value: Any, spaces: bool = False, forbidden: str = "") -> bool:
    """Printable; without `spaces`, no space at either end; one newline at the very end is overlooked."""
    if not isinstance(value, str):
        return False  # unlike the other formats, these refuse what is no string (null too)
    line = value.removesuffix("\n")
    if not all(_printable(c) and c not in forbidden for c in line):
        return False
    if spaces:
        return any(not _space(c) for c in line)
    return value == "" or (line != "" and not _space(line[0]) and not _space(line[-1]))


FORMATS: dict[str, Format] = {
    "regex": _text(_regex),
    "date-time": _text(_date_time),
    "base64": _text(_base64),
    "cidr": _text(_cidr),
    "uuid": _text(_uuid),
    "uri": _text(_uri),
    "name": _name,
    "az_name": lambda v: _name(v, forbidden=":"),
    "name_with_leading_trailing_spaces": lambda v: _name(v, spaces=True),
    "az_name_with_leading_trailing_spaces": lambda v: _name(v, spaces=True, forbidden=":"),
}


def _number(value: Any) -> int | float | None:
    """The number that a limit is held against: also from a string; a fraction is cut off before the comparison."""
    for kind in (int, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            continue
    return None


_BASE = jsonschema.Draft202012Validator


def _limit(keyword: str) -> Callable[..., Iterator[jsonschema.ValidationError]]:
    def check(validator: Any, bound: Any, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
        number = _number(value)
        if number is not None:
            yield from _BASE.VALIDATORS[keyword](validator, bound, number, schema) or ()

    return check


def _dropping(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Legacy endpoint: unknown properties go, unless nothing would be left; beside patternProperties they are wrong."""
    if not isinstance(value, dict) or allowed is True:
        return
    patterns = list(schema.get("patternProperties", {}))
    unknown = [k for k in value if k not in schema.get("properties", {}) and not any(re.search(p, k) for p in patterns)]
    if len(unknown) == len(value):
        return
    if patterns and unknown:
        yield jsonschema.ValidationError(f"unexpected properties {unknown}")
    for k in unknown if not patterns else ():
        del value[k]


_LIMITS = {"minimum": _limit("minimum"), "maximum": _limit("maximum")}
STRICT = jsonschema.validators.extend(_BASE, _LIMITS)
RELAXED = jsonschema.validators.extend(_BASE, {**_LIMITS, "additionalProperties": _dropping})
CHECKER = jsonschema.FormatChecker(formats=("ipv4", "ipv6"))
for _format, _check in FORMATS.items():
    CHECKER.checks(_format)(_check)


@dataclass(frozen=True)
class Range:
    low: int
    high: int
    schema: str


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    action: str | None
    low: int
    high: int
    parts: dict[str, list[Range]]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}" + (f" #{self.action}" if self.action else "")


class Oracle:
    def __init__(self) -> None:
        doc = facts.load("rest_routes")
        self._same: dict[str, Any] = {}
        self.schemas: dict[str, Any] = {k: self._shared(s) for k, s in doc["schemas"].items()}
        self.routes = [
            Route(
                r["method"],
                r["path"],
                r.get("action"),
                max(minor(r["min"], 1), 1),
                minor(r["max"], LATEST),
                {
                    p: [Range(minor(x["min"], LEGACY), minor(x["max"], LATEST), x["schema"]) for x in r[p] or []]
                    for p in ("query", "body", "response")
                },
            )
            for r in doc["routes"]
            if "method" in r and not r.get("app") and not r.get("removed")
        ]
        self._validators: dict[tuple[str, bool], Any] = {}

    def _shared(self, schema: Any) -> Any:
        """The schema with equal parts made one object, so that they can be told by identity."""
        if isinstance(schema, dict):
            schema = {k: self._shared(v) for k, v in schema.items()}
        elif isinstance(schema, list):
            schema = [self._shared(v) for v in schema]
        else:
            return schema
        return self._same.setdefault(json.dumps(schema, sort_keys=True), schema)

    def error(self, schema: str, data: Any, relaxed: bool = False) -> str | None:
        """Why the data is invalid, or None."""
        key = (schema, relaxed)
        if key not in self._validators:
            self._validators[key] = (RELAXED if relaxed else STRICT)(self.schemas[schema], format_checker=CHECKER)
        try:
            found = next(self._validators[key].iter_errors(copy.deepcopy(data) if relaxed else data), None)
        except TypeError as error:
            return str(error)
        return None if found is None else f"{found.json_path}: {found.validator}"
