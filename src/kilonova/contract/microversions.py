"""Microversions of the compute API as small integers, and sets of them.

A microversion ``2.x`` is the integer ``x``. The legacy endpoint ``/v2`` is `LEGACY` (0): it behaves as 2.1 where
nothing else is said.
"""

from dataclasses import dataclass
from typing import Final

LEGACY: Final = 0
MIN: Final = 1
MAX: Final = 104


def parse(text: str) -> int:
    """``"2.53"`` -> 53. Raises ValueError for another form or another major version."""
    major, dot, minor = text.partition(".")
    if major != "2" or not dot or not (minor.isascii() and minor.isdigit()) or (minor[0] == "0" and minor != "0"):
        raise ValueError(text)
    return int(minor)


def text(version: int) -> str:
    """53 -> ``"2.53"``."""
    return f"2.{version}"


@dataclass(frozen=True, slots=True)
class Versions:
    """A set of microversions as closed ranges; ``None`` above means no upper bound."""

    ranges: tuple[tuple[int, int | None], ...] = ((LEGACY, None),)

    def __contains__(self, version: int) -> bool:
        return any(low <= version and (high is None or version <= high) for low, high in self.ranges)

    def __or__(self, other: "Versions") -> "Versions":
        return Versions(self.ranges + other.ranges)

    def edges(self) -> set[int]:
        """The versions at which membership may change."""
        lows = {low for low, _ in self.ranges}
        return lows | {high + 1 for _, high in self.ranges if high is not None}


def since(low: int) -> Versions:
    """The versions from ``low`` on."""
    return Versions(((low, None),))


def until(high: int) -> Versions:
    """The versions up to and including ``high``, the legacy endpoint too."""
    return Versions(((LEGACY, high),))


def between(low: int, high: int) -> Versions:
    """The versions from ``low`` to ``high``, both included."""
    return Versions(((low, high),))


ALL: Final = Versions()
