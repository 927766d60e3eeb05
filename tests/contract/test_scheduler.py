"""Filters, weighers, their defaults and options are Nova's."""

from __future__ import annotations

import pytest
from tests.contract import facts as novas

from kilonova import conf as options
from kilonova.scheduler import operators, plugins, prefilters


@pytest.fixture(scope="module")
def facts() -> dict:
    found: dict = novas.load("scheduler")
    return found


@pytest.fixture(scope="module")
def conf():
    return options.load([])


def test_all_filters_are_there(facts):
    assert set(plugins.filter_classes()) == set(facts["filters"])


def test_filters_run_when_novas_do(facts):
    ours = {name: (cls.once, cls.on_rebuild) for name, cls in plugins.filter_classes().items()}
    theirs = {
        name: (each["run_filter_once_per_request"], each["run_on_rebuild"]) for name, each in facts["filters"].items()
    }
    assert ours == theirs


def test_enabled_by_default_in_order(facts, conf):
    assert [each.name for each in plugins.filters(conf)] == facts["enabled_filters_default"]


def test_all_weighers_are_there_with_their_keys_and_bounds(facts):
    ours = {
        name: ([cls.key], cls.minimum, f"{cls.group}.{cls.option}") for name, cls in plugins.weigher_classes().items()
    }
    for name, each in facts["weighers"].items():
        keys, minimum, option = ours.pop(name)
        assert keys == each["aggregate_keys"], name
        assert minimum == each["minval"], name
        assert option in each["options"], name
    assert ours == {}


def test_request_filters_in_order(facts):
    assert [each.__name__ for each in prefilters.ORDER] == [each["name"] for each in facts["request_filters_in_order"]]


def test_defaults_of_options(facts, conf):
    for group, key in (("scheduler", "scheduler_defaults"), ("filter_scheduler", "filter_scheduler_defaults")):
        for name, default in facts[key].items():
            if name in conf[group]:
                assert conf[group][name] == default, name


def test_operators_are_known(facts):
    known = set(operators.NUMERIC) | set(operators.TEXTUAL) | {"<or>", "<all-in>"}
    assert known == set(facts["extra_specs_operators"])
