"""Key pairs."""

from __future__ import annotations

from typing import Any, Final

from kilonova.api import keys, quota
from kilonova.api.paging import Page, page
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.nouns import keypairs as contract
from kilonova.db import turns
from kilonova.db.api import key_pairs
from kilonova.db.engine import Tx
from kilonova.db.outcomes import DuplicateError, MarkerNotFoundError
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request, conflict, forbidden

_PAGED_SINCE: Final = 35
_DEFAULT_TYPE: Final = "ssh"


def _owner(call: Call[Services], rule: str, user_id: str | None) -> str:
    """Whose key pairs are meant: the caller's, or another user's where policy allows."""
    owner = user_id or call.context.user_id or ""
    call.authorize(rule, {"user_id": owner})
    return owner


def _view(row: dict[str, Any], *members: str) -> dict[str, Any]:
    return {name: row[name] for name in ("name", "fingerprint", "public_key", "type", *members)}


def index(call: Call[Services]) -> dict[str, Any]:
    owner = _owner(call, contract.INDEX, call.first("user_id"))
    wanted = page(call) if call.version >= _PAGED_SINCE else None
    rows = _rows(call, owner, wanted)
    body: dict[str, Any] = {"keypairs": [{"keypair": _view(row)} for row in rows]}
    if wanted is not None and wanted.full(len(rows)):
        body["keypairs_links"] = [call.next_link(rows[-1]["name"])]
    return body


def _rows(call: Call[Services], owner: str, wanted: Page | None) -> list[dict[str, Any]]:
    if wanted is None:
        return call.services.cells.api.query(key_pairs.key_pair_list, owner)
    try:
        return call.services.cells.api.query(key_pairs.key_pair_list, owner, limit=wanted.limit, marker=wanted.marker)
    except MarkerNotFoundError:
        raise bad_request(f"marker [{wanted.marker}] not found") from None


def show(call: Call[Services], id: str) -> dict[str, Any]:
    owner = _owner(call, contract.SHOW_POLICY, call.first("user_id"))
    row = call.services.cells.api.query(key_pairs.key_pair_get, owner, id)
    if row is None:
        raise exceptions.KeypairNotFound(user_id=owner, name=id)
    # Key pairs are removed for good, so these members never have another value.
    constant = {"deleted": False, "deleted_at": None, "updated_at": None}
    created = f"{row['created_at']:%Y-%m-%dT%H:%M:%S.%f}"
    return {"keypair": _view(row, "id", "user_id") | constant | {"created_at": created}}


def create(call: Call[Services]) -> dict[str, Any]:
    given = call.body["keypair"]
    owner = _owner(call, contract.CREATE_POLICY, given.get("user_id"))
    kind = given.get("type", _DEFAULT_TYPE)
    public_key = given.get("public_key")
    material = keys.generated(owner, kind) if public_key is None else keys.imported(public_key, kind)
    values = {
        "user_id": owner,
        "name": given["name"].strip(),
        "type": kind,
        "fingerprint": material.fingerprint,
        "public_key": material.public_key,
    }
    try:
        row = turns.run_in_turn(call.services.cells.api, turns.of_user(owner), _create, call, owner, values)
    except DuplicateError:
        raise conflict(exceptions.KeyPairExists(key_name=values["name"]).format_message()) from None
    except exceptions.KeypairLimitExceeded as error:
        raise forbidden(error.format_message()) from None
    shown = _view(row, "user_id")
    if material.private_key is not None:
        shown["private_key"] = material.private_key
    return {"keypair": shown}


def _create(tx: Tx, call: Call[Services], owner: str, values: dict[str, Any]) -> dict[str, Any]:
    quota.check_key_pairs(tx, call.services.conf, call.context, owner)
    return key_pairs.key_pair_create(tx, values)


def delete(call: Call[Services], id: str) -> None:
    owner = _owner(call, contract.DELETE_POLICY, call.first("user_id"))
    if not call.services.cells.api.run(key_pairs.key_pair_delete, owner, id):
        raise exceptions.KeypairNotFound(user_id=owner, name=id)


ROUTES = [
    Binding(contract.LIST, index),
    Binding(contract.CREATE, create),
    Binding(contract.SHOW, show),
    Binding(contract.DELETE, delete),
]
