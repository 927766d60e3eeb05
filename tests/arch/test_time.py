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
