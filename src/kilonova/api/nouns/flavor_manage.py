"""Flavors made, changed and removed; who may use them; what they ask of their hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kilonova.api.nouns import flavors as views
from kilonova.api.projects import check_exists
from kilonova.api.servers.creation.devices import truth
from kilonova.api.services import Services
from kilonova.base import ids
from kilonova.contract import exceptions, extra_specs
from kilonova.contract.nouns import flavor_manage as contract
from kilonova.contract.nouns.flavors import INDEX_EXTRA_SPECS
from kilonova.db import exact
from kilonova.db.api import flavors
from kilonova.db.engine import Tx
from kilonova.db.outcomes import DuplicateError
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import bad_request, conflict, not_found

CHECKED_SINCE: Final = 86
PUBLIC_REFUSED_SINCE: Final = 7
LONGEST_VALUE: Final = 255
_NOBODY: dict[str, Any] = {}
"""The target of rules that ask for an administrator, whatever the project."""


def create(call: Call[Services]) -> dict[str, Any]:
    call.authorize(contract.CREATE_POLICY, _NOBODY)
    given = call.body["flavor"]
    flavorid = given.get("id")
    values = {
        "name": given["name"].strip(),
        "flavorid": ids.new_uuid() if flavorid is None else str(flavorid),
        "memory_mb": int(given["ram"]),
        "vcpus": int(given["vcpus"]),
        "root_gb": int(given["disk"]),
        "ephemeral_gb": int(given.get("OS-FLV-EXT-DATA:ephemeral", 0)),
        "swap": int(given.get("swap", 0)),
        "rxtx_factor": float(given.get("rxtx_factor", 1.0)),
        "is_public": truth(given.get("os-flavor-access:is_public", True)),
        "description": given.get("description"),
        "disabled": False,
    }
    try:
        row = call.services.cells.api.run(flavors.flavor_create, values)
    except DuplicateError:
        raise conflict(_taken(call, values)) from None
    return {"flavor": _view(call, row)}


def _taken(call: Call[Services], values: dict[str, Any]) -> str:
    """Whether it is the name or the id that is taken."""
    if call.services.cells.api.query(flavors.flavor_get, values["flavorid"]) is not None:
        return exceptions.FlavorIdExists(flavor_id=values["flavorid"]).format_message()
    return exceptions.FlavorExists(name=values["name"]).format_message()


def _view(call: Call[Services], row: dict[str, Any]) -> dict[str, Any]:
    return views.view(call, row, with_extra_specs=call.version >= 61 and call.allows(INDEX_EXTRA_SPECS))


def update(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_POLICY, _NOBODY)
    values = {"description": call.body["flavor"]["description"]}
    call.services.cells.api.run(flavors.flavor_update, id, values)
    return {"flavor": _view(call, _flavor(call, id))}


def delete(call: Call[Services], id: str) -> None:
    call.authorize(contract.DELETE_POLICY, _NOBODY)
    if not call.services.cells.api.run(flavors.flavor_delete, id):
        raise exceptions.FlavorNotFound(flavor_id=id)


def _flavor(call: Call[Services], flavorid: str) -> dict[str, Any]:
    """The flavor as far as the caller may know of it. Raises FlavorNotFound."""
    project_id = None if call.context.is_admin else call.context.project_id
    row = call.services.cells.api.query(flavors.flavor_get, flavorid, project_id=project_id)
    if row is None:
        raise exceptions.FlavorNotFound(flavor_id=flavorid)
    return row


# ---------------------------------------------------------------- access


def list_access(call: Call[Services], flavor_id: str) -> dict[str, Any]:
    call.authorize(contract.ACCESS_POLICY, _NOBODY)
    row = _flavor(call, flavor_id)
    if row["is_public"]:
        raise not_found("Access list not available for public flavors.")
    return _access(call, row)


def _access(call: Call[Services], row: dict[str, Any]) -> dict[str, Any]:
    projects = call.services.cells.api.query(flavors.flavor_access_list, row["id"])
    return {"flavor_access": [{"flavor_id": row["flavorid"], "tenant_id": project} for project in projects]}


def add_access(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.ADD_ACCESS_POLICY, _NOBODY)
    project = call.body["addTenantAccess"]["tenant"]
    check_exists(call, project)
    row = _flavor(call, id)
    if row["is_public"] and call.version >= PUBLIC_REFUSED_SINCE:
        raise conflict("Can not add access to a public flavor.")
    try:
        call.services.cells.api.run(flavors.flavor_access_add, row["id"], [project])
    except DuplicateError:
        message = exceptions.FlavorAccessExists(flavor_id=id, project_id=project).format_message()
        raise conflict(message) from None
    return _access(call, row)


def remove_access(call: Call[Services], id: str) -> dict[str, Any]:
    call.authorize(contract.REMOVE_ACCESS_POLICY, _NOBODY)
    project = call.body["removeTenantAccess"]["tenant"]
    row = _flavor(call, id)
    if not call.services.cells.api.run(flavors.flavor_access_remove, row["id"], project):
        raise exceptions.FlavorAccessNotFound(flavor_id=id, project_id=project)
    return _access(call, row)


# ---------------------------------------------------------------- extra specs


def list_specs(call: Call[Services], flavor_id: str) -> dict[str, Any]:
    call.authorize(INDEX_EXTRA_SPECS, _own(call))
    return {"extra_specs": _flavor(call, flavor_id)["extra_specs"]}


def create_specs(call: Call[Services], flavor_id: str) -> dict[str, Any]:
    call.authorize(contract.CREATE_SPECS_POLICY, _NOBODY)
    _set(call, flavor_id, _checked(call, call.body["extra_specs"]))
    return {"extra_specs": call.body["extra_specs"]}


def show_spec(call: Call[Services], flavor_id: str, id: str) -> dict[str, Any]:
    call.authorize(contract.SHOW_SPEC_POLICY, _own(call))
    specs = _flavor(call, flavor_id)["extra_specs"]
    if id not in specs:
        raise exceptions.FlavorExtraSpecsNotFound(flavor_id=flavor_id, extra_specs_key=id)
    return {id: specs[id]}


def update_spec(call: Call[Services], flavor_id: str, id: str) -> dict[str, Any]:
    call.authorize(contract.UPDATE_SPEC_POLICY, _NOBODY)
    given = _checked(call, call.body)
    if id not in given:
        raise bad_request("The name in the body is not that in the URL.")
    _set(call, flavor_id, given)
    return dict(call.body)


def delete_spec(call: Call[Services], flavor_id: str, id: str) -> None:
    call.authorize(contract.DELETE_SPEC_POLICY, _NOBODY)
    row = _flavor(call, flavor_id)
    if not call.services.cells.api.run(flavors.flavor_spec_delete, row["id"], id):
        raise exceptions.FlavorExtraSpecsNotFound(flavor_id=flavor_id, extra_specs_key=id)


def _checked(call: Call[Services], specs: Mapping[str, Any]) -> dict[str, str]:
    """The extra specs as they are kept. Raises `Fault` 400 for what has no meaning."""
    given = {name: str(value) for name, value in specs.items()}
    for name, value in given.items():
        # The schema limits texts only.
        if len(value) > LONGEST_VALUE:
            raise bad_request(f"extra_specs value has {len(value)} characters, more than {LONGEST_VALUE}.")
        problem = extra_specs.problem(name, value) if call.version >= CHECKED_SINCE else None
        if problem is not None:
            raise bad_request(f"Validation failed; {name}: {problem}.")
    return given


def _own(call: Call[Services]) -> dict[str, Any]:
    return {"project_id": call.context.project_id}


def _set(call: Call[Services], flavor_id: str, specs: dict[str, str]) -> None:
    row = _flavor(call, flavor_id)

    def write(tx: Tx) -> None:
        flavors.flavor_specs_set(tx, row["id"], specs)

    try:
        call.services.cells.api.run(write)
    except DuplicateError:
        clash = exact.clash(specs, row["extra_specs"])
        if clash is None:
            raise conflict(f"The extra specs of flavor {flavor_id} were changed meanwhile.") from None
        raise bad_request(exact.sentence("Extra specs", clash)) from None


ROUTES = [
    Binding(contract.CREATE, create),
    Binding(contract.UPDATE, update),
    Binding(contract.DELETE, delete),
    Binding(contract.LIST_ACCESS, list_access),
    Binding(contract.ADD_ACCESS, add_access),
    Binding(contract.REMOVE_ACCESS, remove_access),
    Binding(contract.LIST_SPECS, list_specs),
    Binding(contract.CREATE_SPECS, create_specs),
    Binding(contract.SHOW_SPEC, show_spec),
    Binding(contract.UPDATE_SPEC, update_spec),
    Binding(contract.DELETE_SPEC, delete_spec),
]
