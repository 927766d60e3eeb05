"""Metadata of a server: pairs that its owner keeps with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.api import quota
from kilonova.api.servers import acting, find
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.cards import Op
from kilonova.contract.nouns import server_metadata as contract
from kilonova.db.cell import instances
from kilonova.db.cells import Cell
from kilonova.db.engine import Tx
from kilonova.db.objects import pairs
from kilonova.db.objects.instance import PAIRS
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import Fault, bad_request, forbidden, not_found

_TABLE = PAIRS["metadata"]
_COLUMNS = ("uuid", "project_id", "user_id")


def _metadata(call: Call[Services], uuid: str, rule: str) -> dict[str, str]:
    record = find.permitted(call, uuid, rule, ("metadata",), columns=_COLUMNS).record
    found: dict[str, str] = record["metadata"]
    return found


def index(call: Call[Services], server_id: str) -> dict[str, Any]:
    return {"metadata": _metadata(call, server_id, contract.INDEX_POLICY)}


def show(call: Call[Services], server_id: str, id: str) -> dict[str, Any]:
    found = _metadata(call, server_id, contract.SHOW_POLICY)
    if id not in found:
        raise _unknown()
    return {"meta": {id: found[id]}}


def _unknown() -> Fault:
    return not_found("Metadata item was not found")


def create(call: Call[Services], server_id: str) -> dict[str, Any]:
    return {"metadata": _write(call, server_id, contract.CREATE_POLICY, call.body["metadata"], keep=True)}


def replace(call: Call[Services], server_id: str) -> dict[str, Any]:
    return {"metadata": _write(call, server_id, contract.UPDATE_ALL_POLICY, call.body["metadata"], keep=False)}


def update(call: Call[Services], server_id: str, id: str) -> dict[str, Any]:
    item = call.body["meta"]
    cell = _cell(call, server_id, contract.UPDATE_POLICY, contract.CHANGE)
    if id not in item:
        raise bad_request("Request body and URI mismatch")
    _put(call, cell, server_id, item, keep=True)
    return {"meta": item}


def delete(call: Call[Services], server_id: str, id: str) -> None:
    if id not in _metadata(call, server_id, contract.DELETE_POLICY):
        raise _unknown()
    cell = _cell(call, server_id, contract.DELETE_POLICY, contract.REMOVE)
    cell.database.run(_take_out, call, cell, server_id, id)


def _write(call: Call[Services], uuid: str, rule: str, given: Mapping[str, str], *, keep: bool) -> dict[str, str]:
    cell = _cell(call, uuid, rule, contract.CHANGE)
    return _put(call, cell, uuid, given, keep=keep)


def _cell(call: Call[Services], uuid: str, rule: str, op: Op) -> Cell:
    """Where the server is, when the caller may change its metadata. Raises `Fault` 403, 409, InstanceNotFound."""
    found = acting.locate(call, uuid, rule)
    acting.check(call, found, op, contract.GUARD)
    # A server that is in no cell is being built, which the guard refuses.
    assert found.cell is not None
    return found.cell


def _put(call: Call[Services], cell: Cell, uuid: str, given: Mapping[str, str], *, keep: bool) -> dict[str, str]:
    services, project_id = call.services, call.context.project_id or ""
    limit = quota.limit_of(services.cells, services.conf, project_id, "metadata_items")
    return cell.database.run(_merge, call, cell, uuid, given, keep, limit)


def _merge(
    tx: Tx, call: Call[Services], cell: Cell, uuid: str, given: Mapping[str, str], keep: bool, limit: int
) -> dict[str, str]:
    present = _held(tx, call, cell, uuid, contract.CHANGE)
    wanted = {**present, **given} if keep else dict(given)
    if quota.exceeds(limit, len(wanted)):
        raise forbidden(exceptions.MetadataLimitExceeded(allowed=limit).format_message())
    pairs.replace(tx, _TABLE, uuid, wanted)
    return wanted


def _take_out(tx: Tx, call: Call[Services], cell: Cell, uuid: str, key: str) -> None:
    present = _held(tx, call, cell, uuid, contract.REMOVE)
    if key not in present:
        raise _unknown()
    pairs.replace(tx, _TABLE, uuid, {name: value for name, value in present.items() if name != key})


def _held(tx: Tx, call: Call[Services], cell: Cell, uuid: str, op: Op) -> dict[str, str]:
    """The pairs as they are, once nobody else can change them and the server still takes the operation."""
    record = instances.instance_hold(tx, uuid, acting.COLUMNS)
    if record is None:
        raise exceptions.InstanceNotFound(instance_id=uuid)
    acting.check(call, find.Found(record, cell), op, contract.GUARD)
    return pairs.read(tx, _TABLE, [uuid]).get(uuid, {})


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.CREATE, create),
    Binding(contract.REPLACE, replace),
    Binding(contract.SHOW, show),
    Binding(contract.UPDATE, update),
    Binding(contract.DELETE, delete),
]
