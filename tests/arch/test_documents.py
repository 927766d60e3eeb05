"""What the documents name is there: files, options, commands, repair loops."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from kilonova import conf as configuration
from kilonova.cmd import kilonova, manage, status
from kilonova.reconcile.control.loops import make as control_loops
from kilonova.reconcile.host.loops import make as host_loops

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONGEST = 130
"""Characters of a line, tables and commands apart."""

PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "kilonova": kilonova.main,
    "nova-manage": manage.main,
    "nova-status": status.main,
}


def _names(pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    """What stands between backticks and matches, with its document."""
    for file in DOCUMENTS:
        for name in re.findall(r"`([^`\n]+)`", file.read_text()):
            if found := re.fullmatch(pattern, name):
                yield file.name, found


def test_files_are_there() -> None:
    places = (ROOT, ROOT / "src" / "kilonova", ROOT / "src")
    named = [(file, found[0]) for file, found in _names(r"[a-z_]+/[\w/.-]*") if not found[0].startswith("locks/")]
    assert named
    assert [each for each in named if not any((place / each[1]).exists() for place in places)] == []


def test_options_are_declared() -> None:
    conf = configuration.load([])
    wrong = [
        (file, found[0])
        for file, found in _names(r"\[(kilonova|api|quota|neutron|libvirt|filter_scheduler)\] (\w+)(?: = .*)?")
        if found[2] not in conf[found[1]]
    ]
    assert wrong == []


def _commands() -> Iterator[tuple[str, str]]:
    """Program and words up to the first that is no name; of lines of code and of what stands between backticks."""
    for file in DOCUMENTS:
        text = file.read_text()
        for line in [*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^ {4,}(.+)$", text, re.MULTILINE)]:
            program, _, rest = line.partition(" ")
            if program in PROGRAMS:
                words = shlex.split(rest, comments=True)
                while words and words[0].startswith("--"):
                    words = words[2:] if words[0] in ("--config-file", "--config-dir") else words[1:]
                yield program, " ".join(word for word in words[:2] if re.fullmatch("[a-z][a-z0-9_]+", word))


@pytest.mark.parametrize(("program", "words"), sorted(set(_commands())))
def test_commands_are_there(program: str, words: str) -> None:
    code = 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = PROGRAMS[program]([*words.split(), "--help"]) or 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert code == 0


def test_what_run_does_is_there() -> None:
    script = (ROOT / "run").read_text()
    known = set(re.findall(r"^(\w+)\) ", script, re.MULTILINE))
    found = {
        word for file in DOCUMENTS for word in re.findall(r"(?:^ {4}|`)\./run ([a-z]+)", file.read_text(), re.MULTILINE)
    }
    assert found
    assert found <= known


def test_each_repair_loop_is_on_the_map() -> None:
    text = (ROOT / "docs" / "map.md").read_text()
    made = [make.__globals__ for make in (control_loops, host_loops)]
    names = {each.name for scope in made for each in scope.values() if isinstance(each, type) and "name" in vars(each)}
    assert names
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_a_decision_has_its_number_and_lines_of_ordinary_length() -> None:
    for file in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        assert file.read_text().startswith(f"# {int(file.name[:4])}. "), file
    long = [
        f"{file.name}:{number}"
        for file in DOCUMENTS
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > LONGEST and not line.startswith(("|", "    "))
    ]
    assert long == []
