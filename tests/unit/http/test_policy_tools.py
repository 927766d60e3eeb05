"""oslo.policy's programs find our rules and the operator's policy file, under Nova's namespace and under ours."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kilonova.contract import policies
from kilonova.wire.http import policy_tools

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
RULE = "os_compute_api:os-services:list"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that has the project's entry points as an installation of the present tree does."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    folder = tmp_path / "kilonova-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: kilonova\nVersion: 1\n")
    text = ""
    for group, names in declared.items():
        text += f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
    (folder / "entry_points.txt").write_text(text)
    (tmp_path / "policy.yaml").write_text(f'"{RULE}": "role:auditor"\n"os_compute_api:servers:show": "!"\n')
    (tmp_path / "nova.conf").write_text(f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n")
    return tmp_path


def run(installed: Path, program: str, *words: str) -> str:
    # XDG_CACHE_HOME: stevedore keeps what it found of other folders.
    env = {**os.environ, "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(installed)}
    command = [str(Path(sys.executable).parent / f"oslopolicy-{program}"), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("namespace", ["nova", "kilonova"])
def test_the_sample_has_every_rule(installed: Path, namespace: str) -> None:
    sample = run(installed, "sample-generator", "--namespace", namespace)
    missing = {rule.name for rule in policies.RULES if f'#"{rule.name}": ' not in sample}
    assert not missing
    assert "GET  /os-services" in sample


@pytest.mark.parametrize("namespace", ["nova", "kilonova"])
def test_the_policy_in_force_is_the_operators(installed: Path, namespace: str) -> None:
    conf = ("--config-file", str(installed / "nova.conf"))
    policy = run(installed, "policy-generator", *conf, "--namespace", namespace)
    assert f'"{RULE}": "role:auditor"' in policy
    assert '"os_compute_api:servers:index": "rule:project_reader_or_admin"' in policy
    assert run(installed, "validator", *conf, "--namespace", namespace) == ""


def test_a_rule_that_says_what_is_said_anyway_is_found(installed: Path) -> None:
    with (installed / "policy.yaml").open("a") as file:
        file.write('"os_compute_api:servers:index": "rule:project_reader_or_admin"\n')
    conf = ("--config-file", str(installed / "nova.conf"))
    redundant = run(installed, "list-redundant", *conf, "--namespace", "nova")
    assert redundant.split() == ['"os_compute_api:servers:index":', '"rule:project_reader_or_admin"']


def test_the_checker_asks_the_rules_of_a_sample(installed: Path) -> None:
    sample = run(installed, "sample-generator", "--namespace", "nova", "--exclude-deprecated")
    rules = installed / "all.yaml"
    rules.write_text("\n".join(line.removeprefix("#") for line in sample.splitlines() if line.startswith('#"')))
    access = installed / "access.json"
    access.write_text(
        '{"token": {"user": {"id": "u", "domain": {"id": "d"}}, "project": {"id": "p", "domain": {"id": "d"}},'
        ' "roles": [{"name": "reader"}], "methods": ["password"], "expires_at": "2038-01-01T00:00:00.000000Z"}}'
    )
    said = run(installed, "checker", "--policy", str(rules), "--access", str(access))
    assert "passed: os_compute_api:servers:index" in said
    assert f"failed: {RULE}" in said
    assert "exception: " not in said


def test_a_programs_own_words_are_not_the_configurations() -> None:
    words = ["--namespace", "nova", "--config-file", "a", "--output-file=b", "--config-dir=c"]
    assert policy_tools.arguments(words) == ["--config-file", "a", "--config-dir=c"]
