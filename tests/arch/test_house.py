"""House rules that a reader relies on: names, sizes, the grid of verbs, import cycles."""

import ast
import importlib
import pathlib
import pkgutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kilonova"
ROOMS = sorted(p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists())
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE = 600
"""Lines. Generated-looking declarations (tables, objects, policies) are data and may be longer."""

DATA = {"policies.py", "exceptions.py", "tables.py"}


def _module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_drawer_modules() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert not [str(p) for p in MODULES if p.stem in drawers or p.parent.name in drawers]


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(p.relative_to(ROOT)) for p in MODULES if p.read_text() and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert silent == []


def test_files_stay_readable() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for p in MODULES
        if p.name not in DATA and "tables" not in p.parts and (n := len(p.read_text().splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_verbs_carry_one_name_in_every_room() -> None:
    """A file in an ops folder of any room is a verb that has a card."""
    cards = {p.stem for p in (SOURCE / "contract" / "ops").glob("*.py")} - {"__init__"}
    strangers = {}
    for room in ("api", "conductor", "compute"):
        verbs = {p.stem for p in (SOURCE / room / "ops").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
        if extra := verbs - cards - {"__init__"}:
            strangers[room] = sorted(extra)
    assert strangers == {}


def test_no_unfinished_marks() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "X" + "XX")
    assert not [str(p) for p in MODULES for m in marks if m in p.read_text()]


def _edges(room: str) -> dict[str, set[str]]:
    """Imports at module level inside one room."""
    names = {_module_name(p): p for p in MODULES if p.relative_to(SOURCE).parts[0] == room}
    edges: dict[str, set[str]] = {}
    for name, path in names.items():
        found: set[str] = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {f"{node.module}.{a.name}" for a in node.names} | {node.module}
        edges[name] = {f for f in found if f in names and f != name and not name.startswith(f + ".")}
    return edges


@pytest.mark.parametrize("room", ROOMS)
def test_no_import_cycle_inside_a_room(room: str) -> None:
    edges = _edges(room)
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"cycle: {' -> '.join((*trail[trail.index(name) :], name))}"
        if name in done:
            return
        for target in edges[name]:
            walk(target, (*trail, name))
        done.add(name)

    for name in edges:
        walk(name, ())


def test_every_module_imports_and_none_brings_eventlet() -> None:
    names = [m.name for m in pkgutil.walk_packages([str(SOURCE)], "kilonova.") if not m.name.endswith("__main__")]
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "assert sys.modules.get('eventlet') is None, 'eventlet was imported'\n"
    )
    run = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stderr[-3000:]


def test_version_is_importable() -> None:
    assert importlib.import_module("kilonova").__version__


def test_no_test_skips_itself_unseen() -> None:
    """Each goes through tests/needs.py, where KILONOVA_REQUIRE makes a failure of it."""
    ways = ("pytest.skip(", "skipif(", "importorskip(", "mark.skip", "xfail")
    tests = ROOT / "tests"
    apart = {tests / "needs.py", tests / "arch" / "test_house.py"}
    found = {
        str(path.relative_to(ROOT)): way
        for path in sorted(tests.rglob("*.py"))
        if path not in apart
        for way in ways
        if way in path.read_text()
    }
    assert found == {}
