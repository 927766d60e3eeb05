"""Value formats of the compute API's JSON schemas.

All but the names speak of strings only and let other types pass; the names refuse whatever is not a string.
Sources: the API reference; RFC 3986 (uri), RFC 4632 and RFC 4291 (cidr), RFC 4648 (base64), ISO 8601 (date-time).
"""

import base64
import binascii
import datetime
import ipaddress
import re
import unicodedata
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

Format = Callable[[Any], bool]


def _of_text(check: Callable[[str], bool]) -> Format:
    return lambda value: not isinstance(value, str) or check(value)


def _is_regex(text: str) -> bool:
    try:
        return bool(text) and bool(re.compile(text))
    except re.error:
        return False


_ISO_8601 = re.compile(
    r"(?P<year>\d{4})(?:-?(?P<month>\d{1,2})(?:-?(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{2})(?::?(?P<minute>\d{2}))?(?::?(?P<second>\d{1,2})(?:[.,]\d+)?)?"
    r"(?:Z|[-+](?P<zone_hour>\d{2}):?(?P<zone_minute>\d{2})?)?)?)?)?$",
    re.ASCII,
)
_YEAR_MONTH_WITHOUT_HYPHEN = re.compile(r"\d{6}$", re.ASCII)


def _is_date_time(text: str) -> bool:
    match = _ISO_8601.match(text)
    if not match or _YEAR_MONTH_WITHOUT_HYPHEN.match(text):
        return False
    part = {name: int(value) for name, value in match.groupdict().items() if value}
    try:
        datetime.datetime(
            part["year"],
            part.get("month", 1),
            part.get("day", 1),
            part.get("hour", 0),
            part.get("minute", 0),
            part.get("second", 0),
            tzinfo=datetime.timezone(
                datetime.timedelta(hours=part.get("zone_hour", 0), minutes=part.get("zone_minute", 0))
            ),
        )
    except ValueError:
        return False
    return True


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text)
    except (binascii.Error, ValueError):
        return False
    return True


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_mask(mask: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Ones then zeros (a net mask), or zeros then ones (a host mask)."""
    bits = int(mask)
    inverse = bits ^ (2**mask.max_prefixlen - 1)
    return not bits & (bits + 1) or not inverse & (inverse + 1)


def _is_cidr(text: str) -> bool:
    address, slash, suffix = text.partition("/")
    ip = _address(address)
    if not slash or ip is None or any(char.isspace() for char in text):
        return False
    try:
        return 0 <= int(suffix) <= ip.max_prefixlen
    except ValueError:
        mask = _address(suffix)
    return mask is not None and mask.version == ip.version and _is_mask(mask)


def _is_uuid(text: str) -> bool:
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    try:
        return uuid.UUID(text).hex == bare
    except ValueError:
        return False


_CHAR = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_AUTHORITY = re.compile(rf"(?:(?:{_CHAR}|:)+@)?(?P<host>\[[^\]]*\]|{_CHAR}*):?[0-9]*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://(?P<authority>[^/?#]+)[^#\[\]]*(?:#[^#\[\]]*)?")
_IP_FUTURE = re.compile(rf"v[0-9A-Fa-f]+\.(?:{_CHAR}|:)+")
_DOTTED_QUAD = re.compile(r"\d{1,3}(\.\d{1,3}){3}")


def _is_uri(text: str) -> bool:
    match = _URI.fullmatch(text)
    authority = match and _AUTHORITY.fullmatch(match["authority"].removesuffix("\n"))
    if not authority:
        return False
    host = authority["host"]
    if host.startswith("["):
        literal, _, zone = host[1:-1].partition("%25")
        is_ipv6 = isinstance(_address(literal), ipaddress.IPv6Address) and "%" not in zone
        return is_ipv6 or bool(_IP_FUTURE.fullmatch(literal))
    return not _DOTTED_QUAD.fullmatch(host) or _address(host) is not None


def _is_ip(kind: type) -> Format:
    return _of_text(lambda text: isinstance(_address(text), kind))


@lru_cache(maxsize=4096)
def _is_printable(char: str) -> bool:
    """A letter, mark, number, punctuation, symbol or horizontal space of the basic plane."""
    kind = unicodedata.category(char)
    return ord(char) < 0xFFFF and kind[0] != "C" and (kind[0] != "Z" or kind == "Zs")


@lru_cache(maxsize=4096)
def _is_space(char: str) -> bool:
    return unicodedata.category(char) == "Zs"


def _without_last_newline(text: str) -> str:
    """A single newline at the end is overlooked, as a ``$`` in a regular expression does."""
    return text.removesuffix("\n")


def _is_name(value: Any, *, outer_spaces: bool = False, forbidden: str = "") -> bool:
    if not isinstance(value, str):
        return False
    line = _without_last_newline(value)
    if not all(_is_printable(char) and char not in forbidden for char in line):
        return False
    if outer_spaces:
        return any(not _is_space(char) for char in line)
    return value == "" or (line != "" and not _is_space(line[0]) and not _is_space(line[-1]))


def _is_printable_line(text: str) -> bool:
    return all(_is_printable(char) for char in _without_last_newline(text))


FORMATS: Final[Mapping[str, Format]] = {
    "regex": _of_text(_is_regex),
    "date-time": _of_text(_is_date_time),
    "base64": _of_text(_is_base64),
    "cidr": _of_text(_is_cidr),
    "uuid": _of_text(_is_uuid),
    "uri": _of_text(_is_uri),
    "ipv4": _is_ip(ipaddress.IPv4Address),
    "ipv6": _is_ip(ipaddress.IPv6Address),
    "printable": _of_text(_is_printable_line),
    "name": _is_name,
    "az_name": lambda value: _is_name(value, forbidden=":"),
    "name_with_leading_trailing_spaces": lambda value: _is_name(value, outer_spaces=True),
    "az_name_with_leading_trailing_spaces": lambda value: _is_name(value, outer_spaces=True, forbidden=":"),
}
