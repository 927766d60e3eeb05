"""The scripts that run elsewhere: inside the guest, and inside the environment of other services."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kilonova.cloud
from kilonova.cloud.commands import ok, run, run_each
from kilonova.cloud.errors import CloudError

CLOUD = Path(kilonova.cloud.__file__).parent
FLATTEN = CLOUD / "image" / "files" / "flatten"


def flatten(value: object) -> dict[str, str]:
    done = subprocess.run([FLATTEN], input=json.dumps(value), capture_output=True, text=True, check=True)
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


def test_the_guest_reads_json() -> None:
    value = {
        "meta": {"hostname": "decoy", "a": 'x "quoted" \\ y'},
        "hostname": "one.example",
        "public_keys": {"k 1": "ssh-rsa AAAA me@here\n"},
        "devices": [{"tags": ["t"]}, {}],
        "empty": [],
        "launch_index": 0,
        "flag": True,
        "none": None,
    }
    flat = flatten(value)
    assert flat["hostname"] == "one.example"
    assert flat["meta.hostname"] == "decoy"
    assert flat["meta.a"] == 'x "quoted" \\ y'
    assert flat["public_keys.k 1"] == "ssh-rsa AAAA me@here"
    assert flat["devices.0.tags.0"] == "t"
    assert (flat["launch_index"], flat["flag"], flat["none"]) == ("0", "true", "null")
    assert not any(key.startswith("empty") for key in flat)


@pytest.mark.parametrize("file", sorted((CLOUD / "image" / "files").iterdir()), ids=lambda file: file.name)
def test_guest_scripts_are_shell(file: Path) -> None:
    if file.name != "inittab":
        subprocess.run(["sh", "-n", file], check=True)


def test_commands_share_one_import(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(
        "import os, sys\n"
        "print('imported', flush=True)\n"
        "def main():\n    print(sys.argv)\n    return 3 if 'bad' in sys.argv else None\n"
    )
    argv = run_each(Path(sys.executable), "tool:main", ["tool", "--x"], ["a"], ["b", "c"])
    text = run(argv, env={"PYTHONPATH": str(tmp_path)})
    assert text.count("imported") == 1
    assert "['tool', '--x', 'a']" in text
    assert "['tool', '--x', 'b', 'c']" in text
    failing = run_each(Path(sys.executable), "tool:main", ["tool"], ["bad"], ["never"])
    with pytest.raises(CloudError, match="ended with 3"):
        run(failing, env={"PYTHONPATH": str(tmp_path)})


def test_commands_keep_their_output_and_tell_failures(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run(["echo", "hello"], log) == "hello\n"
    with pytest.raises(CloudError, match="oh no") as caught:
        run(["sh", "-c", "echo oh no; exit 2"], log)
    assert caught.value.log == log
    assert "$ echo hello\nhello\n" in log.read_text()
    with pytest.raises(CloudError, match="did not end"):
        run(["sleep", "5"], timeout=0.1)
    with pytest.raises(CloudError, match="not installed"):
        run(["/nowhere/tool"])
    assert ok(["true"])
    assert not ok(["false"])


def test_the_way_in_explains_itself() -> None:
    script = Path(__file__).parents[3] / "run"
    text = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    assert "./run cloud" in text
    assert subprocess.run([script, "dance"], capture_output=True).returncode == 2


def test_the_way_in_defines_each_function_once() -> None:
    text = (Path(__file__).parents[3] / "run").read_text()
    names = re.findall(r"^(\w+)\(\) \{", text, re.MULTILINE)
    assert len(set(names)) == len(names)
    assert {"cloud", "tests", "lint", "environment", "everything_for_tests"} <= set(names)
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The way in beside an environment that only says what is run, for a user without rights."""
    tools, scripts = tmp_path / "tools", tmp_path / ".venv" / "bin"
    says = '#!/bin/sh\necho {} "$*"\n'
    for path, text in (
        (tools / "id", "#!/bin/sh\necho 1000\n"),
        (tools / "sudo", says.format("sudo")),
        (scripts / "kilonova", says.format("kilonova")),
        (scripts / "python", "#!/bin/sh\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "run").write_bytes((Path(__file__).parents[3] / "run").read_bytes())
    return tmp_path


def way_in(clone: Path, *words: str) -> str:
    env = {"PATH": f"{clone / 'tools'}:/usr/bin:/bin", "HOME": str(clone)}
    done = subprocess.run(["bash", clone / "run", *words], env=env, capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cloud", "--help"], "kilonova cloud --help\n"),
        (["cloud", "up", "--help"], "kilonova cloud up --help\n"),
        (["cloud", "down", "-h"], "kilonova cloud down -h\n"),
        (["cloud", "status", "--json"], "kilonova cloud status --json\n"),
    ],
)
def test_help_and_status_need_no_rights(clone: Path, words: list[str], said: str) -> None:
    assert way_in(clone, *words) == said


@pytest.mark.parametrize("words", [["cloud"], ["cloud", "down"], ["cloud", "restart", "ovn"], ["cloud", "logs"]])
def test_what_needs_rights_goes_on_by_sudo(clone: Path, words: list[str]) -> None:
    assert way_in(clone, *words).startswith("sudo ")
