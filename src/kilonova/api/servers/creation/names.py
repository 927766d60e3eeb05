"""Names and passwords of new servers."""

import secrets
from typing import Final

# Without characters that are easily mistaken for one another.
_SYMBOLS: Final = ("23456789", "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz")


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
