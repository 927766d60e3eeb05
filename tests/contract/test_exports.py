"""What `python -m kilonova.contract export` prints contradicts the contract nowhere (it may lack what comes later)."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

CHECK = pathlib.Path(__file__).parents[2] / ".." / "shared" / "check" / "contract"
WHOLE = {"extra_specs", "filters", "image_properties", "objects", "remotable", "rpc", "virt"}
"""Kinds of which nothing is lacking."""


@pytest.mark.parametrize(
    "kind", sorted(WHOLE | {"exceptions", "notifications", "options", "periodic_tasks", "policies", "states"})
)
def test_nothing_is_wrong(kind: str) -> None:
    if not CHECK.exists():
        pytest.skip("the check is not on this machine")
    command = [sys.executable, str(CHECK.resolve()), kind, "-v", "--python", sys.executable]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    wrong = [line for line in ran.stdout.splitlines() if f"{kind}: WRONG" in line or f"{kind}: EXTRA" in line]
    ours_alone = [line for line in wrong if kind == "options" and "EXTRA" in line]
    assert [line for line in wrong if line not in ours_alone] == [], ran.stderr
    if kind in WHOLE:
        assert "100.0 %" in ran.stdout


def test_export_is_one_json_object() -> None:
    command = [sys.executable, "-m", "kilonova.contract", "export", "rpc"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["apis"]["compute"]["server"]["version"] == "6.5"
