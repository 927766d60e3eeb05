"""Times as operators write them for --before."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator

import pytest

from kilonova.cmd.manage.times import NoTimeError, utc

WANTED = datetime.datetime(2026, 11, 30, 20, 5, 9)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "Mon Nov 30 20:05:09 UTC 2026",
        "Mon Nov 30 08:05:09 PM UTC 2026",
        "Mon 30 Nov 2026 08:05:09 PM UTC",
        "Mon 30 Nov 2026 20:05:09 UTC",
        "Mon 30 Nov 20:05:09 UTC 2026",
        "Mon Nov 30 20:05:09 2026",
        "Mon, 30 Nov 2026 21:05:09 +0100",
        "2026-11-30 20:05:09",
        "2026-11-30 20:05:09 UTC",
        "2026-11-30T20:05:09Z",
        "2026-11-30T21:05:09+01:00",
        "2026-11-30 15:05:09-05:00",
        " 2026/11/30  20:05:09 ",
        "November 30, 2026 20:05:09",
        "30 nov 2026 20:05:09",
        "30-Nov-2026 20:05:09",
    ],
)
def test_time_of_day(text: str) -> None:
    assert utc(text) == WANTED


@pytest.mark.parametrize("text", ["2026-11-30", "20261130", "2026/11/30", "30 November 2026", "Nov 30 2026"])
def test_day(text: str) -> None:
    assert utc(text) == datetime.datetime(2026, 11, 30)


@pytest.mark.parametrize("text", ["", " ", "sometime", "90 days ago", "11/30/2026", "2026-13-01", "2026-11-30 25:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(NoTimeError):
        utc(text)


def test_zone_of_this_machine_is_obeyed(berlin: None) -> None:
    assert utc("Mon Nov 30 21:05:09 CET 2026") == WANTED
    assert utc("Thu Jul 30 22:05:09 CEST 2026") == datetime.datetime(2026, 7, 30, 20, 5, 9)
    assert utc("Mon Nov 30 20:05:09 UTC 2026") == WANTED
    assert utc("2026-11-30 20:05:09") == WANTED
