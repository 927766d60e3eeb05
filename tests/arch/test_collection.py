"""What only the long runs play can be collected at every change."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["tests/real", "tests/interop"])
def test_the_long_runs_can_be_collected(folder: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", folder]
    # A short run has no peer, and does not ask for one: what wants it is then collected as far as that line.
    environ = {name: value for name, value in os.environ.items() if name != "KILONOVA_REQUIRE"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
