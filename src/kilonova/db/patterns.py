"""Regular expressions that users filter by: one dialect in every database, and bounds on what matching may take.

The dialect is what RE2, MySQL, MariaDB and PostgreSQL understand alike: characters, ``.``, sets, groups, alternatives,
``* + ? {n,m}`` and their reluctant forms, ``^ $``, and a backslash before b, d, w and s, small or capital. RE2 runs
what is matched in this process (SQLite, servers in no cell yet): it never goes back, so the lengths bound the time.
The engines of MySQL and MariaDB do go back: what could make them do so too often is refused everywhere, and a statement
with a pattern has a few seconds.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from typing import Any, Final, Protocol

import re2
import sqlalchemy as sa

from kilonova.db.outcomes import InvalidFilterError

LONGEST: Final = 255
SECONDS: Final = 5
_MOST_WAYS: Final = 2**24
_MANY: Final = 64
"""Ways in which a repetition without an end counts."""

_MOST_MEMORY: Final = 2**20
_PIECES: Final = re.compile(
    r"\\(?P<escape>.)|(?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])|(?P<open>\(\?:|\()|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<times>[*+?]|\{(?P<least>\d{1,4})(?P<comma>,)?(?P<most>\d{1,4})?\})\??|(?P<brace>[{}\]])|(?P<plain>.)",
    re.DOTALL,
)
_CLASSES: Final = frozenset("bBdDwWsS")
_ESCAPES_IN_SETS: Final = re.compile(r"\\([A-Za-z0-9])")
_INNER: Final = re.compile(r"\[(?!:\^?\w+:\])")
_PLACES: Final = frozenset({"^", "$", "\\b", "\\B"})
_MOST_TIMES: Final = 255
_POSTGRESQL: Final = {"\\b": "\\y", "\\B": "\\Y"}


class Matcher(Protocol):
    """A compiled pattern."""

    pattern: str

    def search(self, text: str) -> Any: ...

    def match(self, text: str) -> Any: ...


def matcher(name: str, pattern: Any, *, any_case: bool = False) -> Matcher:
    """The compiled pattern of a filter. Raises InvalidFilterError."""
    text = checked(name, pattern)
    return _compiled(name, text, any_case)


def checked(name: str, pattern: Any) -> str:
    """The pattern of a filter, if it is one of the dialect. Raises InvalidFilterError."""
    text = str(pattern)
    if len(text) > LONGEST:
        raise InvalidFilterError(f"{name}: a pattern has at most {LONGEST} characters")
    _Reader(name).read(text)
    _compiled(name, text, False)
    return text


@functools.lru_cache(maxsize=512)
def _compiled(name: str, text: str, any_case: bool) -> Matcher:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    options.case_sensitive = not any_case
    options.dot_nl = True
    try:
        compiled: Matcher = re2.compile(text, options)
    except re2.error as exc:
        said = exc.args[0].decode(errors="replace") if isinstance(exc.args[0], bytes) else exc.args[0]
        raise InvalidFilterError(f"{name}: {said}") from exc
    return compiled


def of_dialect(pattern: str, dialect: str) -> str:
    """The pattern as the database's own engine is told it."""
    if dialect != "postgresql":
        return pattern
    return _PIECES.sub(lambda piece: _POSTGRESQL.get(piece[0], piece[0]), pattern)


class _Reader:
    """Reads a pattern piece by piece and counts in how many ways a matcher that goes back could match it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open = [1]
        self._last: int | None = None

    def read(self, text: str) -> None:
        """Raises InvalidFilterError."""
        for piece in _PIECES.finditer(text):
            kind = piece.lastgroup if piece.lastgroup not in ("least", "comma", "most") else "times"
            {"open": self._opened, "close": self._closed, "bar": self._alternative, "times": self._repeated}.get(
                str(kind), self._single
            )(piece)
        if len(self._open) > 1:
            raise self._refused("a parenthesis is not closed")
        self._check(self._open[0])

    def _single(self, piece: re.Match[str]) -> None:
        escape, members = piece["escape"], piece["set"]
        if escape is not None and escape.isalnum() and escape not in _CLASSES:
            raise self._refused(f"\\{escape} is not understood")
        if piece["brace"] is not None or piece["plain"] in ("[", "\\"):
            raise self._refused(f"{piece[0]} has no counterpart; to mean itself it needs a backslash")
        if members is not None:
            self._check_set(members)
        self._last = None if piece[0] in _PLACES else 1

    def _check_set(self, members: str) -> None:
        if any(letter not in "dws" for letter in _ESCAPES_IN_SETS.findall(members)):
            raise self._refused("in a set only \\d, \\w and \\s are understood")
        bare = re.sub(r"\\.", "", members[1:-1])
        if "&&" in bare or "--" in bare or _INNER.search(bare):
            raise self._refused("in a set [, && and -- need a backslash")

    def _opened(self, piece: re.Match[str]) -> None:
        self._open.append(1)
        self._last = None

    def _closed(self, piece: re.Match[str]) -> None:
        if len(self._open) == 1:
            raise self._refused("a parenthesis is not open")
        self._last = self._open.pop()
        self._count(self._last)

    def _alternative(self, piece: re.Match[str]) -> None:
        self._count(2)
        self._last = None

    def _repeated(self, piece: re.Match[str]) -> None:
        if self._last is None:
            raise self._refused(f"{piece[0]} repeats nothing")
        sign = piece["times"]
        if self._last > 1 and sign != "?":
            raise self._refused("a pattern of repetitions within repetitions takes too long")
        if max(int(piece["least"] or 0), int(piece["most"] or 0)) > _MOST_TIMES:
            raise self._refused(f"{sign} repeats more than {_MOST_TIMES} times")
        self._count(_ways(piece))
        self._last = None

    def _count(self, ways: int) -> None:
        self._open[-1] *= ways
        self._check(self._open[-1])

    def _check(self, ways: int) -> None:
        if ways > _MOST_WAYS:
            raise self._refused("a pattern of so many repetitions takes too long")

    def _refused(self, why: str) -> InvalidFilterError:
        return InvalidFilterError(f"{self._name}: {why}")


def _ways(piece: re.Match[str]) -> int:
    if piece["least"] is None:
        return 2 if piece["times"] == "?" else _MANY
    if not piece["comma"]:
        return 1
    return max(int(piece["most"]) - int(piece["least"]) + 1, 1) if piece["most"] else _MANY


# ---------------------------------------------------------------- in the databases


def function(pattern: str | None, text: object) -> bool | None:
    """What ``text REGEXP pattern`` calls in SQLite."""
    if pattern is None or text is None:
        return None
    return _compiled("pattern", pattern, False).search(str(text)) is not None


_LIMITS: Final[dict[str, tuple[str, str | None]]] = {
    "postgresql": (f"SET LOCAL statement_timeout = {SECONDS * 1000}", None),
    "mariadb": (f"SET SESSION max_statement_time = {SECONDS}", "SET SESSION max_statement_time = DEFAULT"),
    "mysql": (f"SET SESSION max_execution_time = {SECONDS * 1000}", "SET SESSION max_execution_time = DEFAULT"),
}
"""How a database is told to end a statement, and that it need not any more."""


@contextlib.contextmanager
def limited(tx: sa.Connection) -> Iterator[None]:
    """Statements with patterns take no longer than `SECONDS`; SQLite's are matched by `function`."""
    name = "mariadb" if getattr(tx.dialect, "is_mariadb", False) else tx.dialect.name
    limit, release = _LIMITS.get(name, (None, None))
    if limit is not None:
        tx.exec_driver_sql(limit)
    try:
        yield
    finally:
        if release is not None and not tx.invalidated:
            tx.exec_driver_sql(release)
