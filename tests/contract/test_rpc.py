"""The declared RPC interfaces equal the contract: what is served, and what is sent at every version cap."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from tests.contract import facts as novas

from kilonova.contract import context
from kilonova.contract.rpc import compute_v5
from kilonova.contract.rpc.table import Api, Method, Sent

CONTRACT: dict[str, Any] = novas.load("rpc")

APIS = sorted(CONTRACT["apis"])
NOT_SENT = {"supports_numa_live_migration"}  # a question that the client answers itself


def api(name: str) -> Api:
    found: Api = importlib.import_module(f"kilonova.contract.rpc.{name}").API
    return found


def signature(arguments: Any) -> list[tuple[str, Any]]:
    return [(a.name, a.default) for a in arguments]


def contract_signature(arguments: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(a["name"], a.get("default", ...)) for a in arguments]


@pytest.mark.parametrize("name", APIS)
def test_served(name: str) -> None:
    facts, ours = CONTRACT["apis"][name]["server"], api(name)
    assert (ours.version, ours.namespace) == (facts["version"], facts["namespace"])
    assert set(ours.served_by_name) == set(facts["methods_taking_context"])
    for method, arguments in facts["methods_taking_context"].items():
        served = ours.served_by_name[method]
        assert signature(served.arguments) == contract_signature(arguments), method
        assert set(served.expected) == set(facts["expected_exceptions"].get(method, ())), method


def test_served_of_the_previous_major() -> None:
    facts, ours = CONTRACT["apis"]["compute"]["server_v5"], compute_v5.API
    assert ours.version == facts["version"]
    assert {served.name for served in compute_v5.DIFFERENT} == set(facts["methods_taking_context"])
    for method, arguments in facts["methods_taking_context"].items():
        assert signature(ours.served_by_name[method].arguments) == contract_signature(arguments), method
    assert set(ours.served_by_name) == set(api("compute").served_by_name)


@pytest.mark.parametrize("name", APIS)
def test_client_methods(name: str) -> None:
    facts, ours = CONTRACT["apis"][name], api(name)
    assert set(ours.by_name) == set(facts["methods"]) - NOT_SENT
    assert dict(ours.aliases) == facts.get("version_aliases", {})
    for method in ours.methods:
        assert signature(method.arguments) == contract_signature(facts["methods"][method.name]["client_args"])


def rows() -> list[Any]:
    found = []
    for name in APIS:
        for method, facts in CONTRACT["apis"][name]["methods"].items():
            for row in facts["by_cap"]:
                if method not in NOT_SENT:
                    found.append(pytest.param(name, method, row, id=f"{name}.{method}-{row['cap']}-{row['variant']}"))
    return found


@pytest.mark.parametrize(("name", "method", "row"), rows())
def test_sent_at_every_cap(name: str, method: str, row: dict[str, Any]) -> None:
    ours, facts = api(name).by_name[method], row["sent"]
    message = ours.message(None if row["cap"] in (None, "6.5") else row["cap"])
    if "raises" in facts:
        check_refusal(ours, message, row)
        return
    assert (message.version, set(message.names)) == (facts["version"], set(facts["args"]))
    if name != "baseapi":
        assert (message.topic or api(name).topic) == facts["topic"]
    assert ours.fanout == facts["fanout"]
    assert (f"${ours.host}" if ours.host else None) == facts["server"] or row["variant"] == "optional_omitted"
    assert calls(ours, row) == (facts["mode"] == "call")
    if facts["mode"] == "call" and name != "baseapi":
        assert ours.long == (facts["timeout"] == "long_rpc_timeout")


def calls(method: Method, row: dict[str, Any]) -> bool:
    when = row.get("when") or {}
    return not when["do_cast"] if "do_cast" in when else method.call


def check_refusal(method: Method, message: Sent, row: dict[str, Any]) -> None:
    if row["cap"] == "6.5":  # not a matter of versions: an argument is missing
        return
    assert message.refuses == row["sent"]["raises"], method.name


def test_context_fields() -> None:
    assert set(context.admin().to_dict()) == set(CONTRACT["context_fields"])


def test_compute_version_by_service_version() -> None:
    facts = {int(k): v for k, v in CONTRACT["compute_rpc_by_service_version"].items()}
    assert dict(api("compute").by_service_version) == facts
