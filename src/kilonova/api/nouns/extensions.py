"""Extensions: a list that is the same in every cloud."""

from __future__ import annotations

from typing import Any

from kilonova.api.services import Services
from kilonova.contract.nouns import extensions as contract
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import not_found
from kilonova.wire.http.standard import SENTENCES


def index(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.POLICY, {})
    return {"extensions": list(contract.entries(call.version).values())}


def show(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.POLICY, {})
    found = contract.entries(call.version).get(id)
    if found is None:
        raise not_found(SENTENCES[404])
    return {"extension": found}


ROUTES = [Binding(contract.LIST, index), Binding(contract.SHOW, show)]
