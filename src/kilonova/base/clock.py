"""Time: aware UTC for objects and logs, naive UTC for SQL columns, monotonic for durations."""

from __future__ import annotations

import datetime
import time

UTC = datetime.UTC


class Source:
    """Where time comes from: the machine."""

    def nanoseconds(self) -> int:
        """Since 1970-01-01 UTC."""
        return time.time_ns()

    def monotonic(self) -> float:
        return time.monotonic()


source = Source()
"""A test puts one in its place that it moves; nothing else does."""


def now() -> datetime.datetime:
    """The present as an aware UTC datetime."""
    return datetime.datetime.fromtimestamp(seconds(), UTC)


def seconds() -> float:
    """Since 1970-01-01 UTC."""
    return source.nanoseconds() / 1e9


def milliseconds() -> int:
    """Since 1970-01-01 UTC."""
    return source.nanoseconds() // 1_000_000


def naive_now() -> datetime.datetime:
    """The present as SQL columns hold it: UTC without a zone."""
    return now().replace(tzinfo=None)


def monotonic() -> float:
    """Seconds of a clock that never goes back."""
    return source.monotonic()


def aware(when: datetime.datetime | None) -> datetime.datetime | None:
    """A naive UTC time (SQL) with its zone; an aware one is converted to UTC."""
    if when is None:
        return None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else _utc(when)


def naive(when: datetime.datetime | None) -> datetime.datetime | None:
    """An aware time as SQL wants it: UTC without a zone."""
    if when is None or when.tzinfo is None:
        return when
    return _utc(when).replace(tzinfo=None)


def parse(text: str) -> datetime.datetime:
    """An ISO 8601 text as an aware UTC datetime. Raises ValueError."""
    when = datetime.datetime.fromisoformat(text)
    return when.replace(tzinfo=UTC) if when.tzinfo is None else _utc(when)


def _utc(when: datetime.datetime) -> datetime.datetime:
    """Raises ValueError where the calendar ends before the zone's difference is taken off."""
    try:
        return when.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{when.isoformat()} is beyond the calendar in UTC") from None


def iso(when: datetime.datetime) -> str:
    """`2026-01-01T00:00:00Z`, the form of the REST API."""
    text = naive(when)
    assert text is not None
    return text.replace(microsecond=0).isoformat() + "Z"
