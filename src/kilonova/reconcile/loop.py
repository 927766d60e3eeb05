"""One loop per kind of harm: find (a few queries), judge (pure), repair (may be repeated), report.

Nothing is repaired that was not seen in every pass for the whole grace time, and in two passes at least; nothing that
an active flow owns. A dry run is the same without repair. A loop never retries by itself: the next pass does.

Of many processes that could run a loop one does, by a lease. A loop over much looks at a slice in each pass, and once
more at what looked wrong in the last one; where the next slice begins is kept with the lease.
"""

from __future__ import annotations

import abc
import dataclasses
import datetime
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from kilonova.base import clock, log

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
    place: str | None = None
    """Where the next slice begins, for a loop that does not look at everything in each pass; None is the beginning."""
    suspected: Sequence[Suspect] = ()
    """What looked wrong in the last pass: whatever the slice is, it is looked at too."""

    @abc.abstractmethod
    def find(self) -> Iterable[Any]:
        """Look at the world and the record."""

    @abc.abstractmethod
    def judge(self, found: Iterable[Any]) -> Sequence[Suspect]:
        """What of it looks wrong. Pure."""

    @abc.abstractmethod
    def repair(self, suspect: Suspect) -> bool | None:
        """Put it right; looks again at what must still be true. False when it has to wait."""


class Leases(Protocol):
    """Who runs a loop (db/loops.py)."""

    def take(self, loop: str, seconds: float) -> tuple[str | None] | None: ...

    def keep(self, loop: str, seconds: float, place: str | None) -> bool: ...

    def give_back(self, loop: str) -> None: ...


class Settings(Protocol):
    """[kilonova] of the configuration, which may change between two passes."""

    @property
    def reconcile_interval(self) -> float: ...

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


class Turn:
    """The right of one process to run a loop, for a pass; without leases it has it always."""

    MISSED = 3
    """Passes that whoever has a loop may miss before another one takes it."""

    def __init__(self, loop: Loop, settings: Settings, leases: Leases | None) -> None:
        self._loop = loop
        self._settings = settings
        self._leases = leases
        self._renew_at = 0.0
        self.held = False

    def take(self) -> bool:
        """Begin a pass; False when another process runs the loop."""
        if self._leases is not None:
            found = self._leases.take(self._loop.name, self._seconds)
            self.held = found is not None
            if found is None:
                return False
            (self._loop.place,) = found
            self._renewed()
        return True

    def keep(self) -> bool:
        """Go on with the pass; asks only when a part of the lease is over."""
        return clock.monotonic() < self._renew_at or self.note()

    def note(self) -> bool:
        """Go on with the pass, its slice is done; False when another process runs the loop meanwhile."""
        if self._leases is None:
            return True
        self.held = self._leases.keep(self._loop.name, self._seconds, self._loop.place)
        self._renewed()
        return self.held

    def give_back(self) -> None:
        if self.held and self._leases is not None:
            self.held = False
            self._leases.give_back(self._loop.name)

    @property
    def _seconds(self) -> float:
        return self.MISSED * self._settings.reconcile_interval

    def _renewed(self) -> None:
        self._renew_at = clock.monotonic() + self._seconds / 3


class Pass:
    """Runs a loop once at a time, as the settings are when the pass begins; `grace` is a time of the loop's own.

    `passes` says which failures of a repair only tell that something else is away for now: they are a line each.
    """

    def __init__(
        self,
        loop: Loop,
        settings: Settings,
        grace: float | None = None,
        leases: Leases | None = None,
        *,
        passes: Callable[[BaseException], bool] = lambda _: False,
    ) -> None:
        self.loop = loop
        self.report = Report(loop.name)
        self._patience = Patience()
        self._settings = settings
        self._grace = grace
        self._passes = passes
        self._turn = Turn(loop, settings, leases)

    def run(self) -> Report:
        """One pass. A failure of the look ends it; a failure of one repair does not keep the others from being made.

        The same failure pass after pass is told once: a cloud may have no such service. A loop that is switched off
        does nothing, nor one that another process runs; when its time comes again, it has seen nothing before.
        """
        before, report = self.report.error, self.report
        try:
            if self._is_mine():
                report.at, report.passes, report.error = clock.now(), report.passes + 1, None
                began = clock.monotonic()
                self._act(self._look())
                report.seconds = clock.monotonic() - began
        except Exception as exc:  # noqa: BLE001 - a service may be away; the next pass looks again
            report.error = f"{type(exc).__name__}: {exc}"
            level = logging.DEBUG if report.error == before else logging.WARNING
            LOG.log(level, "%s: could not look: %s", self.loop.name, report.error)
        return report

    def stop(self) -> None:
        """Another process may run the loop at once. Raises what a database raises that is away."""
        self._turn.give_back()

    def _is_mine(self) -> bool:
        if is_on(self._settings, self.loop.name) and self._turn.take():
            return True
        self._turn.give_back()
        self._patience = Patience()
        self.loop.suspected = ()
        return False

    def _look(self) -> Sequence[Suspect]:
        suspects = self.loop.judge(self.loop.find())
        self.loop.suspected = suspects
        return suspects

    def _act(self, suspects: Sequence[Suspect]) -> None:
        report = self.report
        grace, dry_run = self._settings.reconcile_grace, self._settings.reconcile_dry_run
        ripe = self._patience.ripe(suspects, grace if self._grace is None else self._grace)
        report.seen = [each.harm for each in suspects]
        report.waiting = len(suspects) - len(ripe)
        report.repaired = report.failed = 0
        for suspect in ripe:
            if not self._turn.keep():
                break
            self._repair(suspect, dry_run)
        self._turn.note()
        report.repaired_ever += report.repaired
        report.failed_ever += report.failed

    def _repair(self, suspect: Suspect, dry_run: bool) -> None:
        if dry_run or not suspect.repairable:
            LOG.warning("%s: %s", self.loop.name, suspect.harm)
            return
        try:
            done = self.loop.repair(suspect)
        except Exception as exc:  # noqa: BLE001 - it is told and counted, and the next pass tries again
            self.report.failed += 1
            what = f"{self.loop.name}: {suspect.harm}: could not be repaired"
            log.failed(LOG, what, exc, foreseen=self._passes(exc))
        else:
            if done is False:
                self.report.waiting += 1
                return
            self.report.repaired += 1
            LOG.warning("%s: repaired: %s", self.loop.name, suspect.harm)
