"""Names and passwords of new servers."""

import re
import secrets
from typing import Final

_LONGEST: Final = 63
_SEPARATORS: Final = re.compile(r"[ _.]")
_NOT_IN_HOSTNAME: Final = re.compile(r"[^\w.-]+")
# Without characters that are easily mistaken for one another.
_SYMBOLS: Final = ("23456789", "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz")


def hostname_of(name: str) -> str:
    """A hostname made of a server's name (RFC 952, RFC 1123), at most 63 characters; empty when nothing is left."""
    latin = name.encode("latin-1", "ignore").decode("latin-1")[:_LONGEST]
    return _NOT_IN_HOSTNAME.sub("", _SEPARATORS.sub("-", latin)).lower().strip(".-")


def hostname(wished: str | None, name: str, uuid: str, index: int, count: int) -> str:
    """The hostname of the ``index``th of ``count`` servers called ``name``."""
    if wished:
        return wished
    found = hostname_of(name)
    if not found:
        return f"Server-{uuid}"
    return f"{found}-{index + 1}" if count > 1 else found


def display_name(name: str, index: int, count: int) -> str:
    """The name of the ``index``th of ``count`` servers."""
    return f"{name}-{index + 1}" if count > 1 else name


def password(length: int) -> str:
    """A random password with a symbol of each kind, as far as its length allows."""
    symbols = [secrets.choice(kind) for kind in _SYMBOLS]
    secrets.SystemRandom().shuffle(symbols)
    everything = "".join(_SYMBOLS)
    symbols = symbols[:length] + [secrets.choice(everything) for _ in range(length - len(symbols))]
    secrets.SystemRandom().shuffle(symbols)
    return "".join(symbols)


def reservation_id() -> str:
    """The identifier of all servers of one request."""
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    return "r-" + "".join(secrets.choice(alphabet) for _ in range(8))
