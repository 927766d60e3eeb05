"""The policy rules are Nova's: names, checks, scopes, operations, deprecations."""

from __future__ import annotations

import pytest
from tests.contract import facts as novas

from kilonova.contract import policies


@pytest.fixture(scope="module")
def facts() -> dict[str, dict]:
    return {rule["name"]: rule for rule in novas.load("policies")["rules"]}


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
