"""Security groups: names to ids for new ports, and which groups a server's ports have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kilonova.clients.neutron.rest import Item, NeutronRest
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext

SHARED_FILTER = "security-groups-shared-filtering"


def ids_for(rest: NeutronRest, ctxt: RequestContext, project: str, wanted: Sequence[str] | None) -> list[str]:
    """Ids of the groups a user named by name or id; `default` alone is what Neutron gives anyway.

    Raises SecurityGroupNotFound, NoUniqueMatch.
    """
    if not wanted or list(wanted) == ["default"]:
        return []
    fields = ["id", "name"]
    own = rest.list(ctxt, "security-groups", fields=fields, tenant_id=project)
    try:
        return [_one(own, each) for each in wanted]
    except exceptions.SecurityGroupNotFound:
        if SHARED_FILTER not in rest.extensions(ctxt):
            raise
    shared = rest.list(ctxt, "security-groups", fields=fields, shared=True)
    return [_one(own + shared, each) for each in wanted]


def _one(groups: Iterable[Item], wanted: str) -> str:
    groups = list(groups)
    if any(group["id"] == wanted for group in groups):
        return wanted
    named = {group["id"] for group in groups if group["name"] == wanted}
    if len(named) > 1:
        raise exceptions.NoUniqueMatch(
            f"Multiple security groups found matching '{wanted}'. Use an ID to be more specific."
        )
    if not named:
        raise exceptions.SecurityGroupNotFound(security_group_id=wanted)
    return named.pop()


def for_ports(rest: NeutronRest, ctxt: RequestContext, port_ids: Sequence[str]) -> dict[str, list[Item]]:
    """{port id: its groups as {"id", "name"}} in two lists for any number of ports."""
    ports = rest.list(ctxt, "ports", id=list(port_ids), fields=["id", "security_groups"]) if port_ids else []
    used = sorted({group for port in ports for group in port.get("security_groups", ())})
    found = rest.list(ctxt, "security-groups", id=used, fields=["id", "name"]) if used else []
    groups = {each["id"]: each for each in found}
    return {
        port["id"]: [groups.get(each, {"id": each, "name": each}) for each in port.get("security_groups", ())]
        for port in ports
    }
