"""Tags of a server: words that its owner finds it by."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kilonova.api.servers import find
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.fields import Compiled, Invalid
from kilonova.contract.nouns import server_tags as contract
from kilonova.db import exact
from kilonova.db.cell import instances
from kilonova.db.cells import Cell
from kilonova.db.engine import Tx
from kilonova.db.objects import tag as tags
from kilonova.wire.http.call import Binding, Call, Reply
from kilonova.wire.http.faults import bad_request, conflict, not_found

_COLUMNS = ("uuid", "project_id", "user_id", "vm_state")
_TAG = Compiled(contract.TAG)


def _find(call: Call[Services], uuid: str, rule: str) -> find.Found:
    """The server with its tags. Raises `Fault` 403 (of another project's server too), InstanceNotFound."""
    return find.permitted(call, uuid, rule, ("tags",), columns=_COLUMNS, of_others=True)


def index(call: Call[Services], server_id: str) -> dict[str, Any]:
    return {"tags": list(_find(call, server_id, contract.INDEX_POLICY).record["tags"])}


def show(call: Call[Services], server_id: str, id: str) -> None:
    if id not in _find(call, server_id, contract.SHOW_POLICY).record["tags"]:
        raise not_found(f"Server {server_id} has no tag '{id}'")


def add(call: Call[Services], server_id: str, id: str) -> Reply:
    cell = _changeable(call, server_id, contract.UPDATE_POLICY, "update tag")
    try:
        _TAG.validator(call.version).check(id)
    except Invalid as error:
        raise bad_request(f"Tag '{id}' is invalid: {error.reason}") from None
    if not cell.database.run(_add, server_id, id):
        return Reply(status=204)
    return Reply(status=201, headers={"Location": call.url(f"/servers/{server_id}/tags/{id}")})


def _add(tx: Tx, uuid: str, name: str) -> bool:
    """Whether the tag is new."""
    present = _held(tx, uuid, "update tag")
    _check_clash([name], present)
    if len(present) >= contract.MOST:
        raise bad_request(f"The number of tags exceeded the per-server limit {contract.MOST}")
    if name in present:
        return False
    tags.put_all(tx, uuid, [*present, name])
    return True


def replace(call: Call[Services], server_id: str) -> dict[str, Any]:
    cell = _changeable(call, server_id, contract.UPDATE_ALL_POLICY, "update tags")
    return {"tags": cell.database.run(_put, server_id, call.body["tags"], "update tags")}


def clear(call: Call[Services], server_id: str) -> None:
    cell = _changeable(call, server_id, contract.DELETE_ALL_POLICY, "delete tags")
    cell.database.run(_put, server_id, [], "delete tags")


def _put(tx: Tx, uuid: str, wanted: list[str], doing: str) -> list[str]:
    _held(tx, uuid, doing)
    _check_clash(wanted)
    tags.put_all(tx, uuid, wanted)
    return sorted(set(wanted))


def _check_clash(wanted: Iterable[str], present: Collection[str] = ()) -> None:
    """Raise `Fault` 400 for tags that not every database tells apart."""
    clash = exact.clash(wanted, present)
    if clash is not None:
        raise bad_request(exact.sentence("Tags", clash))


def remove(call: Call[Services], server_id: str, id: str) -> None:
    cell = _changeable(call, server_id, contract.DELETE_POLICY, "delete tag")
    cell.database.run(_remove, call, server_id, id)


def _remove(tx: Tx, call: Call[Services], uuid: str, name: str) -> None:
    _held(tx, uuid, "delete tag")
    tags.destroy(tx, call.context, uuid, name)


def _changeable(call: Call[Services], uuid: str, rule: str, doing: str) -> Cell:
    """Where the server is, when its tags may be changed. Raises `Fault` 403, 409, InstanceNotFound."""
    found = _find(call, uuid, rule)
    _check(found.record, doing)
    # A server that is in no cell is being built, which the check refuses.
    assert found.cell is not None
    return found.cell


def _check(record: dict[str, Any], doing: str) -> None:
    if record["vm_state"] not in contract.CHANGEABLE:
        state = f"vm_state {record['vm_state']}"
        raise conflict(f"Cannot '{doing}' instance {record['uuid']} while it is in {state}")


def _held(tx: Tx, uuid: str, doing: str) -> list[str]:
    """The tags as they are, once nobody else can change them and the server still lets them be changed."""
    record = instances.instance_hold(tx, uuid, _COLUMNS)
    if record is None:
        raise exceptions.InstanceNotFound(instance_id=uuid)
    _check(record, doing)
    return [tag.tag for tag in tags.read(tx, [uuid]).get(uuid, [])]


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.REPLACE, replace),
    Binding(contract.CLEAR, clear),
    Binding(contract.SHOW, show),
    Binding(contract.ADD, add),
    Binding(contract.REMOVE, remove),
]
