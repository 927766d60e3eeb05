"""One loop per kind of harm: find (a few queries), judge (pure), repair (may be repeated), report.

Nothing is repaired that was not seen in every pass for the whole grace time, and in two passes at least; nothing that
an active flow owns. A dry run is the same without repair. A loop never retries by itself: the next pass does.
"""

from __future__ import annotations

import abc
import dataclasses
import datetime
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from kilonova.base import clock

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Suspect:
    """Something that looks wrong. `key` tells it apart from pass to pass; `harm` says what it is, for people."""

    key: str
    harm: str
    data: Any = None
    repairable: bool = True


@dataclasses.dataclass
class Report:
    """What a loop did in its last pass, and in all of them."""

    loop: str
    at: datetime.datetime | None = None
    seconds: float = 0.0
    seen: list[str] = dataclasses.field(default_factory=list)
    waiting: int = 0
    repaired: int = 0
    failed: int = 0
    passes: int = 0
    repaired_ever: int = 0
    failed_ever: int = 0
    error: str | None = None


class Loop(abc.ABC):
    """The four parts of a loop; `name` is that of its harm."""

    name: str

    @abc.abstractmethod
    def find(self) -> Iterable[Any]:
        """Look at the world and the record."""

    @abc.abstractmethod
    def judge(self, found: Iterable[Any]) -> Sequence[Suspect]:
        """What of it looks wrong. Pure."""

    @abc.abstractmethod
    def repair(self, suspect: Suspect) -> None:
        """Put it right; looks again at what must still be true."""


class Settings(Protocol):
    """[kilonova] of the configuration, which may change between two passes."""

    @property
    def reconcile_grace(self) -> float: ...

    @property
    def reconcile_dry_run(self) -> bool: ...

    @property
    def reconcile_disabled(self) -> Collection[str]: ...


def is_on(settings: Settings, name: str) -> bool:
    """Whether a loop is to run."""
    return name not in settings.reconcile_disabled


class Patience:
    """Remembers since when each suspect is seen."""

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        self._now = now
        self._since: dict[str, float] = {}

    def ripe(self, suspects: Sequence[Suspect], grace: float) -> list[Suspect]:
        """Those that were there in the last pass too, and for the grace time; what is not there now is forgotten."""
        now = self._now()
        before = self._since
        self._since = {each.key: before.get(each.key, now) for each in suspects}
        return [each for each in suspects if each.key in before and now - before[each.key] >= grace]


class Pass:
    """Runs a loop once at a time, as the settings are when the pass begins; `grace` is a time of the loop's own."""

    def __init__(self, loop: Loop, settings: Settings, grace: float | None = None) -> None:
        self.loop = loop
        self.report = Report(loop.name)
        self._patience = Patience()
        self._settings = settings
        self._grace = grace

    def run(self) -> Report:
        """One pass. A failure of the look ends it; a failure of one repair does not keep the others from being made.

        The same failure pass after pass is told once: a cloud may have no such service. A loop that is switched off
        does nothing; when it is on again, it has seen nothing before.
        """
        if not is_on(self._settings, self.loop.name):
            self._patience = Patience()
            return self.report
        began = clock.monotonic()
        report = self.report
        before, report.error = report.error, None
        report.at, report.passes = clock.now(), report.passes + 1
        try:
            suspects = self.loop.judge(self.loop.find())
        except Exception as exc:  # noqa: BLE001 - a service may be away; the next pass looks again
            report.error = f"{type(exc).__name__}: {exc}"
            level = logging.DEBUG if report.error == before else logging.WARNING
            LOG.log(level, "%s: could not look: %s", self.loop.name, report.error)
            return report
        grace, dry_run = self._settings.reconcile_grace, self._settings.reconcile_dry_run
        ripe = self._patience.ripe(suspects, grace if self._grace is None else self._grace)
        report.seen = [each.harm for each in suspects]
        report.waiting = len(suspects) - len(ripe)
        report.repaired = report.failed = 0
        for suspect in ripe:
            self._repair(suspect, dry_run)
        report.repaired_ever += report.repaired
        report.failed_ever += report.failed
        report.seconds = clock.monotonic() - began
        return report

    def _repair(self, suspect: Suspect, dry_run: bool) -> None:
        if dry_run or not suspect.repairable:
            LOG.warning("%s: %s", self.loop.name, suspect.harm)
            return
        try:
            self.loop.repair(suspect)
        except Exception:
            self.report.failed += 1
            LOG.exception("%s: %s: could not be repaired", self.loop.name, suspect.harm)
        else:
            self.report.repaired += 1
            LOG.warning("%s: repaired: %s", self.loop.name, suspect.harm)
