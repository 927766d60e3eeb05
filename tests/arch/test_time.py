"""The programs read the time at one place, so that tests can let it pass; tests wait for no fixed time."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kilonova"
READS = {("time", name) for name in ("time", "time_ns", "monotonic", "monotonic_ns")} | {
    ("datetime", "now"),
    ("datetime", "utcnow"),
}
APART = {
    "base/clock.py": "it is the place",
    "virt/uptime.py": "what the machine's own `uptime` shows",
    "wire/http/connections.py": "compared with times that the HTTP server took",
}
"""The one-machine cloud is apart too: it waits for other programs, for which no test's time passes."""


def _named(node: ast.expr) -> str | None:
    """The last name of `datetime` as of `datetime.datetime`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def test_the_time_is_read_at_one_place() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (name := path.relative_to(SOURCE).as_posix()) not in APART and not name.startswith("cloud/")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and (_named(node.value), node.attr) in READS
    ]
    assert found == []


LONGEST_SLEEP = 0.3
"""Seconds. What comes by itself is polled for (tests/waiting.py); for the rest, tests let time pass (`forward`)."""


def _numbers(path: pathlib.Path) -> dict[str, float]:
    """What names of a module stand for numbers."""
    return {
        target.id: node.value.value
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, int | float)
    }


def _longest(sleep: ast.Call, named: dict[str, float]) -> float:
    """The greatest number in what is slept for."""
    inside = [part for word in sleep.args for part in ast.walk(word)]
    literal = [part.value for part in inside if isinstance(part, ast.Constant) and isinstance(part.value, int | float)]
    return max(
        [*literal, *(named[part.id] for part in inside if isinstance(part, ast.Name) and part.id in named)], default=0
    )


def test_no_test_sleeps_for_a_fixed_time() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("unit", "ops")
        for path in sorted((ROOT / "tests" / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _named(node.func) == "sleep"
        if _longest(node, _numbers(path)) >= LONGEST_SLEEP
    ]
    assert found == []


FOR_EVER = 10.0
"""A latency of so many seconds is one that nobody waits out: something ends the call."""


def _latencies(node: ast.AST) -> list[ast.expr]:
    """What stands in a test for how long calls of the fake driver take."""
    if isinstance(node, ast.Call):
        return [word.value for word in node.keywords if word.arg == "fake_latency"]
    if isinstance(node, ast.Assign) and any(_named(target) == "_latency" for target in node.targets):
        return [node.value]
    return []


def test_no_call_of_the_fake_driver_takes_a_fixed_time_that_is_waited_out() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("unit", "ops")
        for path in sorted((ROOT / "tests" / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        for value in _latencies(node)
        for part in ast.walk(value)
        if isinstance(part, ast.Constant) and isinstance(part.value, float)
        if LONGEST_SLEEP <= part.value < FOR_EVER
    ]
    assert found == []
