import io
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from kilonova.cloud import steps
from kilonova.cloud.errors import CloudError
from kilonova.cloud.progress import Terminal
from kilonova.cloud.steps import Step, StepFailed


def test_a_step_runs_after_what_it_needs() -> None:
    order: list[str] = []
    names = {"c": ("a", "b"), "a": (), "b": ("a",)}
    took = steps.run([Step(name, lambda name=name: order.append(name), needs) for name, needs in names.items()])
    assert order == ["a", "b", "c"]
    assert set(took) == {"a", "b", "c"}


def test_independent_steps_run_at_once() -> None:
    both = threading.Barrier(2, timeout=10)
    steps.run([Step("a", lambda: both.wait() and None), Step("b", lambda: both.wait() and None)])


def test_a_failure_names_step_cause_and_log_and_nothing_new_begins(tmp_path: Path) -> None:
    began: list[str] = []

    def fail() -> None:
        raise CloudError("no room", tmp_path / "its.log")

    plan = [Step("a", fail), Step("b", lambda: began.append("b"), ("a",)), Step("c", lambda: began.append("c"), ("b",))]
    with pytest.raises(StepFailed, match="a: no room") as caught:
        steps.run(plan)
    assert caught.value.log == tmp_path / "its.log"
    assert began == []


def test_the_log_of_the_step_is_named_when_the_cause_has_none(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("odd")

    with pytest.raises(StepFailed) as caught:
        steps.run([Step("a", fail, log=tmp_path / "a.log")])
    assert caught.value.log == tmp_path / "a.log"


def test_what_is_done_for_good_is_not_done_again(tmp_path: Path) -> None:
    times: list[int] = []
    step = Step("a", lambda: times.append(1), once=tmp_path / "done" / "a")
    steps.run([step])
    steps.run([step])
    assert times == [1]


def test_a_failed_step_leaves_no_stamp(tmp_path: Path) -> None:
    def fail() -> None:
        raise CloudError("no")

    stamp = tmp_path / "a"
    with pytest.raises(StepFailed):
        steps.run([Step("a", fail, once=stamp)])
    assert not stamp.exists()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([Step("a", lambda: None, ("b",))], "never be met"),
        ([Step("a", lambda: None, ("b",)), Step("b", lambda: None, ("a",))], "never be met"),
        ([Step("a", lambda: None), Step("a", lambda: None)], "share a name"),
    ],
)
def test_impossible_plans_are_refused_before_anything_runs(plan: list[Step], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        steps.run(plan)


def test_what_lasts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "LONG", 0.01)
    text = io.StringIO()
    show = Terminal(Console(file=text, width=120))
    told = threading.Event()
    lasting = show.lasting

    def seen(running: Sequence[Step]) -> None:
        lasting(running)
        if text.getvalue().count("still at work") > 1:
            told.set()

    monkeypatch.setattr(show, "lasting", seen)
    assert steps.run([Step("a", lambda: told.wait(10) and None, note="something is made")], show)["a"] < 9
    first, *more = text.getvalue().splitlines()
    assert first.endswith("… a: something is made")
    assert more[0].endswith("still at work: a")
