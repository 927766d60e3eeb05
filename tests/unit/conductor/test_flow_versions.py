"""Of which stages each version of a flow consists: written down, so that a change of them without a new version shows.

When this fails after a change of stages: raise the flow's `version`, say `since` of what is new or does something else,
keep what goes as `retired`, and add the new version to flow_versions.json. Entries of older versions are never changed.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kilonova.conductor.service import FLOWS
from kilonova.flow.plan import Flow, Rest, Stage, flow, rest, step

FILE = pathlib.Path(__file__).with_name("flow_versions.json")
Versions = Mapping[str, Sequence[str]]


def said(stage: Stage) -> str:
    """A stage as the file says it: its name, its kind, its undo."""
    kind = "rest" if isinstance(stage, Rest) else "atomic" if stage.atomic else "light" if stage.light else "step"
    undo = "" if stage.undo is None else f", undo {stage.undo.__name__}"
    return f"{stage.name} ({kind}{undo})"


def faults(plan: Flow, versions: Versions) -> list[str]:
    """What is wrong with a flow by what is written of its versions."""
    if sorted(map(int, versions)) != list(range(1, plan.version + 1)):
        return [f"versions {sorted(versions)} are written down, and it is at {plan.version}"]
    found = []
    now = [said(stage) for stage in plan.stages if stage.retired is None]
    if now != list(versions[str(plan.version)]):
        found.append(f"version {plan.version} is {now}, not {versions[str(plan.version)]}")
    for stage in plan.stages:
        found += _untrue(stage, plan.version, versions)
    known = plan.names
    for number, stages in versions.items():
        names = [each.partition(" ")[0] for each in stages]
        found += [f"{name} of version {number} is gone" for name in names if name not in known]
        if sorted(names, key=known.index if set(names) <= set(known) else None) != names:
            found.append(f"the stages of version {number} are in another order now")
    return found


def _untrue(stage: Stage, version: int, versions: Versions) -> list[str]:
    """Its `since` is the version from which on it was what it is, its `retired` the first one without it."""
    last = version if stage.retired is None else stage.retired - 1
    first = last
    while first > 1 and said(stage) in versions[str(first - 1)]:
        first -= 1
    wrong = [] if stage.since == first else [f"{stage.name} is what it is since version {first}, not {stage.since}"]
    without = [n for n in range(first, last + 1) if said(stage) not in versions[str(n)]]
    after = [n for n in range(last + 1, version + 1) if said(stage) in versions[str(n)]]
    return wrong + [f"{stage.name} does not say the truth about version {n}" for n in (*without, *after)]


@pytest.mark.parametrize("op", FLOWS)
def test_stages_are_those_of_their_version(op: str) -> None:
    assert faults(FLOWS[op], json.loads(FILE.read_text())[op]) == []


def test_no_other_flow_is_written_down() -> None:
    assert sorted(json.loads(FILE.read_text())) == sorted(FLOWS)


def a(run: Any) -> None: ...
def b(run: Any) -> None: ...
def c(run: Any) -> bool: ...  # type: ignore[empty-body]
def undo(run: Any) -> None: ...


ONE = {"1": ["a (step)", "c (rest)"]}
TWO = {**ONE, "2": ["a (step)", "b (step, undo undo)", "c (rest)"]}
THREE = {**TWO, "3": ["b (step, undo undo)", "c (rest)"]}


@pytest.mark.parametrize(
    ("plan", "versions", "words"),
    [
        (flow("op", step(a), rest(c)), ONE, ""),
        (flow("op", step(a), step(b, undo=undo, since=2), rest(c), version=2), TWO, ""),
        (flow("op", step(a, retired=3), step(b, undo=undo, since=2), rest(c), version=3), THREE, ""),
        (flow("op", step(a), step(b), rest(c)), ONE, "version 1 is"),
        (flow("op", step(a, undo=undo), rest(c)), ONE, "version 1 is"),
        (flow("op", rest(c), step(a)), ONE, "another order"),
        (flow("op", step(a), rest(c), version=2), ONE, "written down"),
        (flow("op", step(a), step(b, undo=undo), rest(c), version=2), TWO, "since version 2, not 1"),
        (flow("op", step(b, undo=undo, since=2), rest(c), version=3), THREE, "a of version 1 is gone"),
        (flow("op", step(a, retired=2), step(b, undo=undo, since=2), rest(c), version=3), THREE, "about version 2"),
    ],
)
def test_what_this_test_sees(plan: Flow, versions: Versions, words: str) -> None:
    found = "; ".join(faults(plan, versions))
    assert words in found
    assert bool(words) == bool(found)


def test_a_stage_may_not_be_newer_than_its_flow() -> None:
    with pytest.raises(ValueError, match="newer than version 1"):
        flow("op", step(a), rest(c, since=2))
