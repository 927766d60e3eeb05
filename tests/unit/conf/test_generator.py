"""oslo-config-generator prints every option, under our name and under the one that operators' files name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kilonova import conf as configuration

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
GROUP = "oslo.config.opts"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that has the project's entry points as an installation of the present tree does."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][GROUP]
    folder = tmp_path / "kilonova-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: kilonova\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(
        f"[{GROUP}]\n" + "".join(f"{name} = {value}\n" for name, value in declared.items())
    )
    return tmp_path


@pytest.mark.parametrize("namespace", ["kilonova", "nova.conf"])
def test_every_option_is_printed(installed: Path, namespace: str) -> None:
    run = "import sys; from oslo_config.generator import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", run, "--namespace", namespace]
    made = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True, check=True
    )
    sample = made.stdout
    printed: set[tuple[str, str]] = set()
    group = ""
    for line in sample.splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif found := re.match(r"#(\w+) =", line):
            printed.add((group, found[1]))
    for listed, options in configuration.list_options():
        missing = {option.dest for option in options} - {name for of, name in printed if of == (listed or "DEFAULT")}
        assert not missing, listed
    assert "#auth_url = <None>" in sample
    assert "#host = <current_hostname>" in sample
