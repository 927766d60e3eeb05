"""What is declared of REST contradicts the contract nowhere: routes, codes, policies, every shape in each version."""

from __future__ import annotations

import re

import pytest
from tests.contract import facts as novas
from tests.contract.schema_oracle import Oracle
from tests.contract.schema_questions import Corpus

from kilonova.cmd.contract import Judge, routes
from kilonova.contract import surface


@pytest.fixture(scope="module")
def facts() -> dict:
    found: dict = novas.load("rest_routes")
    return found


def shape(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def key(method: str, path: str, action: str | None) -> tuple[str, str, str | None]:
    return method, shape(path), action


def of_facts(facts: dict) -> dict:
    found: dict = {}
    for entry in facts["routes"]:
        if "method" in entry and re.fullmatch("/[^ ,]+", entry["path"]):
            found.setdefault(key(entry["method"], entry["path"], entry.get("action")), []).append(entry)
    return found


def test_every_route_of_the_contract_is_known_and_no_other(facts: dict) -> None:
    expected = of_facts(facts)
    gone = {k for k, entries in expected.items() if all(e.get("removed") for e in entries)}
    assert {key(*k) for k in surface.removed()} == gone
    assert {key(*k) for k in surface.served()} == set(expected) - gone


def test_declared_routes_are_of_the_contract(facts: dict) -> None:
    expected = of_facts(facts)
    wrong = {}
    for route in routes():
        entries = expected.get(key(route.method, route.path, route.action))
        if entries is None:
            wrong[route.key] = "not in the contract"
            continue
        codes = {c["code"] for e in entries for c in e["success"]} | {
            code for e in entries for code in e.get("success_explicit") or []
        }
        ours = {route.success} if isinstance(route.success, int) else {code for code, _ in route.success}
        if not ours <= codes:
            wrong[route.key] = f"success {ours}, contract {codes}"
    assert wrong == {}


def test_rules_that_routes_name_exist() -> None:
    from kilonova.contract.policies import by_name

    known = by_name()
    assert {rule for route in routes() for rule in (*route.policies, *route.soft) if rule not in known} == set()


LARGE = {"GET /servers", "GET /servers/detail", "GET /servers/{id}", "PUT /servers/{id}", "POST /servers"}
"""Most of the questions are about these, so each has a test of its own, which run side by side."""


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(Oracle())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("large", [None, *sorted(LARGE)], ids=lambda name: name or "all but the large ones")
def test_requests_and_responses_are_judged_like_the_contract(corpus: Corpus, large: str | None) -> None:
    """All questions of the corpus about the routes that are declared."""
    declared = {key(route.method, route.path, route.action): route.key for route in routes()}
    wanted = {k for k, name in declared.items() if (name == large if large else name not in LARGE)}
    judge, asked, wrong = Judge(), 0, []
    for route in corpus.oracle.routes:
        if key(route.method, route.path, route.action) not in wanted:
            continue
        for part in route.parts:
            for case in corpus.cases(route, part):
                asked += 1
                if judge.answer(case.question())["valid"] is not case.valid:
                    wrong.append((route.name, part, case.version, case.what, case.valid))
    assert asked > 2000
    assert wrong == []
