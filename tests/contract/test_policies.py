"""The policy rules are Nova's: names, checks, scopes, operations, deprecations."""

from __future__ import annotations

import json
import pathlib

import pytest

from kilonova.contract import policies

FACTS = pathlib.Path(__file__).parents[3] / "shared" / "contract" / "policies.json"


@pytest.fixture(scope="module")
def facts() -> dict[str, dict]:
    if not FACTS.exists():
        pytest.skip("the contract facts are not beside this work tree")
    return {rule["name"]: rule for rule in json.loads(FACTS.read_text())["rules"]}


def as_fact(rule: policies.Rule) -> dict:
    fact = {
        "name": rule.name,
        "check": rule.check,
        "scope_types": list(rule.scope_types) if rule.scope_types else None,
        "operations": [{"method": op.method, "path": op.path} for op in rule.operations],
    }
    if rule.deprecated:
        old = rule.deprecated
        fact["deprecated_rule"] = {"name": old.name, "check": old.check, "since": old.since}
    if rule.removal_since:
        fact |= {"deprecated_for_removal": True, "deprecated_since": rule.removal_since}
    return fact


def test_every_rule_is_novas_and_none_is_missing(facts):
    ours = {name: as_fact(rule) for name, rule in policies.by_name().items()}
    assert ours == facts


def test_names_are_unique():
    assert len(policies.by_name()) == len(policies.RULES) == 214


def test_references_between_rules_resolve():
    known = set(policies.by_name())
    for rule in policies.RULES:
        referred = {part.strip("() ").removeprefix("rule:") for part in rule.check.split(" or ") if "rule:" in part}
        assert referred <= known, rule.name
