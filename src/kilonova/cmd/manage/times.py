"""Points in time as people and the command `date` write them on a command line."""

from __future__ import annotations

import datetime
from collections.abc import Iterator


class NoTimeError(Exception):
    """The text is no time."""


def _formats() -> Iterator[str]:
    """Of strptime. Numbers in the order of a country (01/02/2026) are left out: nobody can tell which is the month."""
    yield "%a, %d %b %Y %H:%M:%S %z"
    for clock in ("%H:%M:%S", "%I:%M:%S %p"):
        yield f"%a %b %d {clock} %Z %Y"
        yield f"%a %b %d {clock} %Y"
        yield f"%a %d %b %Y {clock} %Z"
        yield f"%a %d %b {clock} %Z %Y"
    days = ("%Y-%m-%d", "%Y/%m/%d", "%B %d %Y", "%B %d, %Y", "%d %B %Y", "%d-%B-%Y")
    for day in (*days, *(day.replace("%B", "%b") for day in days if "%B" in day)):
        yield from (f"{day}{clock}" for clock in ("", " %H:%M", " %H:%M:%S", " %H:%M:%S %Z"))


_FORMATS = tuple(_formats())


def utc(text: str) -> datetime.datetime:
    """The time in UTC, which it is taken to be in unless it says otherwise; without a zone. Raises NoTimeError."""
    words = " ".join(text.split())
    try:
        return _in_utc(datetime.datetime.fromisoformat(words))
    except ValueError:
        pass
    for form in _FORMATS:
        try:
            found = datetime.datetime.strptime(words, form)
        except ValueError:
            continue
        # Python knows by name, besides UTC, the zone of this machine only.
        local = "%Z" in form and not {"UTC", "GMT", "Z"} & set(words.upper().split())
        return _in_utc(found.astimezone() if local else found)
    raise NoTimeError(f"{text!r} is no time; write for example 2026-01-31 or '2026-01-31 12:00:00'")


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    if time.tzinfo is not None:
        time = time.astimezone(datetime.UTC)
    return time.replace(tzinfo=None)
