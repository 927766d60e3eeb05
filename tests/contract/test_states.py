"""States, their names in REST, and when a server takes an operation, as the contract says."""

from __future__ import annotations

import pytest
from tests.contract import facts as novas

from kilonova.cmd import contract as exporter
from kilonova.contract import states


@pytest.fixture(scope="module")
def facts() -> dict:
    found: dict = novas.load("states")
    return found


@pytest.mark.parametrize("kind", ["vm_states", "task_states", "power_states", "instance_actions"])
def test_constants(facts: dict, kind: str) -> None:
    assert exporter.export_states()[kind] == facts[kind]


def test_names(facts: dict) -> None:
    assert sorted(states.ACTION_EVENTS) == sorted(facts["instance_action_events"])
    assert set(states.MIGRATION_STATUSES) == set(facts["migration_statuses"])
    assert list(states.HOST_STATUSES) == facts["host_status_values"]


def test_statuses(facts: dict) -> None:
    for vm_state, by_task in facts["api_status_map"].items():
        for task_state, shown in by_task.items():
            assert states.status(vm_state, None if task_state == "default" else task_state) == shown
    assert states.status("active", "spawning") == "ACTIVE"
    assert states.status("no such state", None) == facts["api_status_unknown"]


def test_status_is_found_back(facts: dict) -> None:
    assert states.states_of_status("shutoff") == ({"stopped"}, {"default"})
    assert states.states_of_status("REBOOT") == ({"active"}, {"rebooting", "reboot_pending", "reboot_started"})
    assert states.states_of_status("nonsense") == (set(), set())


def test_when_operations_are_taken(facts: dict) -> None:
    ours = exporter.export_states()["rest_action_states"]
    expected = facts["rest_action_states"]
    assert ours
    for route, rules in ours.items():
        assert route in expected, route
        for name, rule in rules.items():
            wanted = expected[route][name]
            for fact in ("vm_state", "task_state"):
                mine, theirs = rule.get(fact), wanted.get(fact)
                assert (mine is None) == (theirs is None), (route, fact)
                assert set(mine or ()) == set(theirs or ()), (route, fact)
            for fact in ("must_have_launched", "lock_checked", "host_required", "host_must_be_up"):
                assert bool(rule.get(fact)) == bool(wanted.get(fact)), (route, fact)
