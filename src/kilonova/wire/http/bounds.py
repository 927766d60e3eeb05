"""What a request may be made of, whatever its shape says.

The databases differ in what they hold: NUL is in no text of PostgreSQL, and MySQL's tables are in a character set of
three bytes (utf8mb3), which ends with the basic plane. So that a cloud on one behaves like one on another, such text is
refused at the door. So is what is nested too deep, numbers that no column and no message takes, and lists of values of
which each costs a part of a query.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kilonova.wire.http.faults import Fault, bad_request

DEEPEST: Final = 64
MOST_VALUES: Final = 64
LARGEST: Final = 10**255 - 1
"""Extra specs are numbers of as many digits as their texts may have; what becomes a column has bounds of its own."""

_UNFIT: Final = re.compile("[\0\ud800-\udfff\U00010000-\U0010ffff]")
_NUL: Final = "\0"
_NEVER_STORED: Final = frozenset({"adminPass"})
"""Members that go to the guest and into no table."""


def fits(text: str) -> bool:
    """Whether every database holds the text."""
    return (text.isascii() and _NUL not in text) or not _UNFIT.search(text)


def fitted(text: str) -> str:
    """The text with a mark in the place of each character that not every database holds."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def check_body(body: Any) -> None:
    """Raise `Fault` 400 for text, numbers and nesting that nothing behind the door takes."""
    level: list[tuple[str, Any]] = [("", body)]
    for _ in range(DEEPEST):
        if not level:
            return
        level = [child for name, value in level for child in _children(name, value)]
    if level:
        raise bad_request(f"The request body is nested deeper than {DEEPEST} levels.")


def _children(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        for key in value:
            _check_text(str(name or key), key)
        return value.items()
    if isinstance(value, list):
        return ((name, each) for each in value)
    if isinstance(value, str) and (name not in _NEVER_STORED or _NUL in value):
        _check_text(name, value)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise bad_request(f"Invalid input for field/attribute {name}. The number is out of range.")
    return ()


def _check_text(name: str, text: str) -> None:
    if not fits(text):
        where = name if fits(name) else "with such a name"
        raise bad_request(
            f"Invalid input for field/attribute {where}. The text has characters that cannot be stored:"
            " NUL, or one beyond U+FFFF."
        )


def check_query(given: Mapping[str, list[str]]) -> None:
    """Raise `Fault` 400 for more values of one parameter than anybody needs, and for text that nothing can equal."""
    for name, values in given.items():
        if len(values) > MOST_VALUES:
            raise bad_request(f"Invalid input for query parameters {name}. More than {MOST_VALUES} values are given.")
        if not (fits(name) and all(fits(value) for value in values)):
            shown = name if fits(name) else "with such a name"
            raise bad_request(
                f"Invalid input for query parameters {shown}. The text has characters that nothing can have:"
                " NUL, or one beyond U+FFFF."
            )


def check_names(values: Iterable[str], *, made: bool) -> None:
    """Of the names in a path: there is nothing with a name that cannot be stored, and nothing ``made`` gets one."""
    for value in values:
        if not fits(value):
            raise Fault(400 if made else 404, "No name has NUL or characters beyond U+FFFF.")
