"""Whole numbers that clients write as text: of any length, while columns and messages have 64 bits."""

from __future__ import annotations

from typing import Any, Final

from kilonova.wire.http.faults import Fault, bad_request, not_found

LARGEST: Final = 2**63 - 1
LARGEST_COLUMN: Final = 2**31 - 1
LONGEST: Final = 20
"""More digits than the largest has; converting thousands of them takes long."""


def whole(name: str, value: Any, *, most: int = LARGEST) -> int:
    """The number that was given as ``name``, by a number or a text. Raises `Fault` 400."""
    try:
        number = int(_bounded(value))
    except OverflowError:
        raise bad_request(f"{name} is out of range") from None
    except ValueError:
        raise bad_request(f"{name} must be an integer") from None
    if abs(number) > most:
        raise bad_request(f"{name} is out of range")
    return number


def not_negative(name: str, value: Any, *, most: int = LARGEST) -> int:
    """Raises `Fault` 400."""
    number = whole(name, value, most=most)
    if number < 0:
        raise bad_request(f"{name} must not be negative")
    return number


def identifier(value: str, missing: str) -> int:
    """The number of a record. Raises `Fault` 400 for what is no number, 404 for one that no record has."""
    try:
        number = int(_bounded(value))
    except OverflowError:
        raise not_found(missing) from None
    except ValueError:
        raise _no_number(value) from None
    if abs(number) > LARGEST:
        raise not_found(missing)
    return number


def _no_number(value: str) -> Fault:
    return bad_request(f"Invalid input received: id must be an integer, not {value}.")


def _bounded(value: Any) -> Any:
    """The value; raises OverflowError for a text of too many digits."""
    if isinstance(value, str) and len(value) > LONGEST and value.strip().lstrip("+-").isdigit():
        raise OverflowError
    return value
