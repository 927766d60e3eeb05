"""What is declared of REST contradicts the contract nowhere: routes, codes, policies, every shape in each version."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest

from kilonova.cmd.contract import routes
from kilonova.contract import surface

SHARED = pathlib.Path(__file__).parents[3] / "shared"
FACTS = SHARED / "contract" / "rest_routes.json"
pytestmark = pytest.mark.skipif(not FACTS.exists(), reason="the contract facts are not beside this work tree")


@pytest.fixture(scope="module")
def facts() -> dict:
    return json.loads(FACTS.read_text())


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


@pytest.mark.timeout(900)
@pytest.mark.parametrize("servers", [False, True], ids=["all but the large ones", "the large ones"])
def test_requests_and_responses_are_judged_like_the_contract(servers: bool) -> None:
    """All questions of the corpus about the routes that are declared; those about servers are most of them."""
    check = SHARED / "check" / "schemas"
    if not check.exists():
        pytest.skip("the check is not beside this work tree")
    names = {route.key for route in routes()}
    large = {"GET /servers", "GET /servers/detail", "GET /servers/{id}", "PUT /servers/{id}", "POST /servers"}
    wanted = names & large if servers else names - large
    command = [sys.executable, str(check), "--python", sys.executable, "--routes", _exactly(wanted)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=880)
    lines = [line for line in ran.stdout.splitlines() if re.match("[A-Z]+ /", line)]
    wrong = [line for line in lines if any(have != want for have, want in re.findall(r" (\d+)/(\d+)", line))]
    assert len(lines) > len(wanted) // 2, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert wrong == []


def _exactly(names: set[str]) -> str:
    """A regular expression for these routes, whatever the contract calls their parameters."""
    return "^(" + "|".join(re.sub(r"\\\{\w+\\\}", r"\\{\\w+\\}", re.escape(name)) for name in sorted(names)) + ")$"
