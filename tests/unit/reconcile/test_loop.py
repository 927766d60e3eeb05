"""What all loops have in common: two sightings, grace, dry run, failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from kilonova.reconcile.loop import Loop, Pass, Patience, Suspect


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclasses.dataclass
class Settings:
    """[kilonova]; a test may change it between two passes."""

    reconcile_grace: float = 0.0
    reconcile_dry_run: bool = False
    reconcile_disabled: Sequence[str] = ()


class Plain(Loop):
    name = "plain"

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)
        self.repaired: list[str] = []
        self.broken: set[str] = set()
        self.blind = False

    def find(self) -> list[str]:
        if self.blind:
            raise OSError("away")
        return self.keys

    def judge(self, found: Any) -> Sequence[Suspect]:
        return [Suspect(key, f"{key} is wrong", repairable=key != "foreign") for key in found]

    def repair(self, suspect: Suspect) -> None:
        if suspect.key in self.broken:
            raise OSError("no")
        self.repaired.append(suspect.key)


def test_two_sightings_and_the_grace_time() -> None:
    clock = Clock()
    patience = Patience(clock)
    suspects = [Suspect("a", "a")]
    assert patience.ripe(suspects, 10) == []
    clock.now = 5
    assert patience.ripe(suspects, 10) == []
    clock.now = 11
    assert patience.ripe(suspects, 10) == suspects


def test_what_was_gone_in_between_begins_anew() -> None:
    clock = Clock()
    patience = Patience(clock)
    suspects = [Suspect("a", "a")]
    patience.ripe(suspects, 10)
    clock.now = 11
    patience.ripe([], 10)
    clock.now = 12
    assert patience.ripe(suspects, 10) == []


def test_even_without_grace_nothing_is_repaired_at_first_sight() -> None:
    loop = Plain("a")
    run = Pass(loop, Settings())
    assert run.run().repaired == 0
    assert run.run().repaired == 1
    assert loop.repaired == ["a"]


def test_a_dry_run_repairs_nothing_and_tells_all() -> None:
    loop = Plain("a")
    run = Pass(loop, Settings(reconcile_dry_run=True))
    run.run()
    report = run.run()
    assert (report.repaired, report.seen, loop.repaired) == (0, ["a is wrong"], [])


def test_what_is_not_ours_is_only_told() -> None:
    loop = Plain("foreign")
    run = Pass(loop, Settings())
    run.run()
    assert run.run().seen == ["foreign is wrong"]
    assert loop.repaired == []


def test_one_failure_does_not_keep_others_from_repair() -> None:
    loop = Plain("a", "b")
    loop.broken.add("a")
    run = Pass(loop, Settings())
    run.run()
    report = run.run()
    assert (report.repaired, report.failed, loop.repaired) == (1, 1, ["b"])


def test_a_look_that_fails_ends_the_pass_and_forgets_nothing() -> None:
    loop = Plain("a")
    run = Pass(loop, Settings())
    run.run()
    loop.blind = True
    assert run.run().error == "OSError: away"
    loop.blind = False
    assert run.run().repaired == 1


def test_a_look_that_goes_on_failing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = Plain("a")
    run = Pass(loop, Settings())
    told = lambda: len([each for each in caplog.records if each.levelname == "WARNING"])  # noqa: E731
    loop.blind = True
    run.run()
    run.run()
    assert told() == 1
    loop.blind = False
    run.run()
    loop.blind = True
    run.run()
    assert told() == 2


def test_each_pass_goes_by_the_settings_of_its_time() -> None:
    loop, settings = Plain("a"), Settings(reconcile_grace=3600, reconcile_dry_run=True)
    run = Pass(loop, settings)
    run.run()
    assert run.run().waiting == 1
    settings.reconcile_grace = 0
    assert (run.run().waiting, loop.repaired) == (0, [])
    settings.reconcile_dry_run = False
    assert run.run().repaired == 1


def test_a_grace_of_its_own() -> None:
    run = Pass(Plain("a"), Settings(reconcile_grace=3600), grace=0)
    run.run()
    assert run.run().repaired == 1


def test_a_loop_that_is_switched_off_and_on() -> None:
    loop, settings = Plain("a"), Settings()
    run = Pass(loop, settings)
    run.run()
    settings.reconcile_disabled = ["plain"]
    assert run.run().passes == 1
    settings.reconcile_disabled = []
    # What it saw before it rested is no sighting.
    assert run.run().repaired == 0
    assert run.run().repaired == 1
