"""The compact copy of the contract, and what tests do without what they need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests import needs
from tests.contract import facts
from tests.contract.facts import pack


@needs.needs("contract")
def test_the_compact_copy_is_whole() -> None:
    original = dict(pack.documents(needs.CONTRACT))
    assert facts.kinds() == sorted(original)
    assert [kind for kind in original if facts.load(kind) != original[kind]] == []


def test_it_has_something_of_each_kind() -> None:
    assert min(len(facts.load(kind)) for kind in facts.kinds()) > 0
    assert len(facts.samples("api_samples")) == 739
    assert len(facts.load("rest_routes")["routes"]) == 269


@pytest.fixture
def required(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    needs._required.cache_clear()
    monkeypatch.setattr(needs, "FOUND", {**needs.FOUND, "mariadb": lambda: False, "contract": lambda: False})
    yield monkeypatch
    needs._required.cache_clear()


@pytest.mark.parametrize("value", ["mariadb", "all", "peer, mariadb"])
def test_what_is_required_fails_where_it_is_missing(required: pytest.MonkeyPatch, value: str) -> None:
    required.setenv("KILONOVA_REQUIRE", value)
    with pytest.raises(pytest.fail.Exception, match="mariadb"):
        needs.check("mariadb")


@pytest.mark.parametrize(("value", "name"), [("", "mariadb"), ("rabbitmq", "mariadb"), ("all", "contract")])
def test_what_is_not_required_is_skipped(required: pytest.MonkeyPatch, value: str, name: str) -> None:
    required.setenv("KILONOVA_REQUIRE", value)
    with pytest.raises(pytest.skip.Exception):
        needs.check(name)


def test_a_misspelt_requirement_is_refused(required: pytest.MonkeyPatch) -> None:
    required.setenv("KILONOVA_REQUIRE", "mariadb,postgres")
    with pytest.raises(pytest.UsageError, match="postgres"):
        needs.check("mariadb")
