"""Addresses of a server by network, from what is cached of its ports."""

from __future__ import annotations

from typing import Any

from kilonova.api.servers import find
from kilonova.api.servers.view import addresses_of, interfaces
from kilonova.api.services import Services
from kilonova.contract.nouns import server_ips as contract
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import not_found

_COLUMNS = ("uuid", "project_id", "user_id")
Addresses = dict[str, list[dict[str, Any]]]


def _addresses(call: Call[Services], uuid: str, rule: str) -> Addresses:
    record = find.permitted(call, uuid, rule, ("info_cache",), columns=_COLUMNS).record
    return addresses_of(interfaces(record), extended=False)


def index(call: Call[Services], server_id: str) -> dict[str, Addresses]:
    return {"addresses": _addresses(call, server_id, contract.INDEX_POLICY)}


def show(call: Call[Services], server_id: str, id: str) -> Addresses:
    found = _addresses(call, server_id, contract.SHOW_POLICY)
    if id not in found:
        raise not_found("Instance is not a member of specified network")
    return {id: found[id]}


ROUTES = [Binding(contract.LIST, index), Binding(contract.SHOW, show)]
