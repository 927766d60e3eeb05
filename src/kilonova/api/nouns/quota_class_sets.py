"""Quota classes: what the class `default` sets holds for projects without limits of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kilonova.api import quota
from kilonova.api.nouns import quota_sets
from kilonova.api.services import Services
from kilonova.contract.nouns import quota_class_sets as contract
from kilonova.db.api import quotas
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request

LONGEST_NAME: Final = 255
_ANYBODY: dict[str, Any] = {}
"""The target of rules that ask for an administrator, whatever the project."""


def show(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.SHOW_POLICY, _ANYBODY)
    return {"quota_class_set": {"id": id, **_limits(call, id)}}


def update(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_POLICY, _ANYBODY)
    if len(id) > LONGEST_NAME:
        raise bad_request(f"quota_class_name has {len(id)} characters, more than {LONGEST_NAME}.")
    wanted = quota_sets.known(call.body["quota_class_set"])
    call.services.cells.api.run(_set, id, wanted)
    return {"quota_class_set": _limits(call, id)}


def _limits(call: Call[Services], name: str) -> dict[str, int]:
    return quota.defaults(call.services.conf, call.services.cells.api.query(quotas.quota_class_get, name))


def _set(tx: Tx, name: str, wanted: Mapping[str, int]) -> None:
    for resource, limit in wanted.items():
        quotas.quota_class_set(tx, name, resource, limit)


ROUTES = [Binding(contract.SHOW, show), Binding(contract.UPDATE, update)]
