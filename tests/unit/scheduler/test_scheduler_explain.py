"""Explanations: what travels and is logged is bounded, however many hosts were refused for however many reasons."""

from __future__ import annotations

from kilonova.scheduler.explain import MOST_HOSTS, Decision, Step


def test_reasons_that_differ_from_host_to_host_are_counted_not_listed() -> None:
    step = Step("ComputeFilter", 5000, 0)
    for number in range(5000):
        step.object("disabled" if number % 2 else f"its service was last heard of at {number}", f"host{number}")
    decision = Decision("uuid", candidates=5000, steps=[step])
    [told] = decision.to_dict()["filters"]
    assert told["reasons"][0]["count"] == 2500
    assert len(told["reasons"][0]["hosts"]) == MOST_HOSTS
    assert sum(each["count"] for each in told["reasons"]) == 2529
    assert told["left_out"] == "2471 more reasons for 2471 hosts"
    assert len(decision.details().splitlines()) == 33
    assert decision.details().endswith("  and 2471 more reasons for 2471 hosts")


def test_a_few_reasons_are_all_told() -> None:
    step = Step("ComputeFilter", 2, 0)
    step.object("disabled", "h2")
    step.object("disabled", "h1")
    decision = Decision("uuid", candidates=2, steps=[step])
    [told] = decision.to_dict()["filters"]
    assert (told["reasons"], told["left_out"]) == ([{"reason": "disabled", "count": 2, "hosts": ["h1", "h2"]}], None)
    assert decision.details().splitlines()[2:] == ["  disabled: h1, h2"]
