"""bash-completion of nova-manage offers what the contract has; the rest of the words are in their programs' tests."""

from __future__ import annotations

import pytest
from tests.contract import facts

from kilonova.cmd import manage


def words(capsys: pytest.CaptureFixture[str], *category: str) -> list[str]:
    assert manage.main(["--config-file", "/dev/null", "bash-completion", *category]) == 0
    return capsys.readouterr().out.split()


def test_categories_and_their_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"db", "cell_v2", "placement", "limits"} <= set(words(capsys))
    assert set(words(capsys, "placement")) == {"heal_allocations", "sync_aggregates", "audit"}
    assert words(capsys, "nonsense") == []


def test_nothing_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    contract = facts.load("cli")["nova-manage"]
    wanted = {
        category: {name for name, action in entry["actions"].items() if not action.get("unintended")}
        for category, entry in contract.items()
        if "actions" in entry
    }
    assert set(words(capsys)) == set(wanted)
    for category, actions in wanted.items():
        assert set(words(capsys, category)) == actions
