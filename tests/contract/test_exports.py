"""What `python -m kilonova.contract export` prints contradicts the contract nowhere (it may lack what comes later)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.contract import fact_sheets

from kilonova.cmd.contract import EXPORTS

WHOLE = {"extra_specs", "filters", "image_properties", "objects", "policies", "remotable", "rpc", "virt"}
"""Kinds of which nothing is lacking."""
OURS_TOO = {"cli", "options"}
"""Kinds in which we have names beside Nova's."""


@pytest.mark.parametrize("kind", sorted(fact_sheets.KINDS))
def test_nothing_is_wrong(kind: str) -> None:
    sheet = fact_sheets.KINDS[kind]
    exported = json.loads(json.dumps(EXPORTS[kind](), sort_keys=True, default=str))
    result = fact_sheets.compare(sheet, fact_sheets.of_contract(kind), sheet.facts(exported))
    allowed = {"MISSING"} | ({"EXTRA"} if kind in OURS_TOO else set())
    assert [each for each in result.differences if each["sort"] not in allowed] == []
    assert result.complete or kind not in WHOLE


def test_export_is_one_json_object() -> None:
    command = [sys.executable, "-m", "kilonova.contract", "export", "rpc"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["apis"]["compute"]["server"]["version"] == "6.5"
