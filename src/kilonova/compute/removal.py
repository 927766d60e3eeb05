"""Taking an instance off its host: guest, ports, volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kilonova.base import clock
from kilonova.compute import block_devices, network, releases
from kilonova.contract import objects
from kilonova.contract.context import RequestContext

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent


def take_down(
    agent: Agent,
    ctxt: RequestContext,
    instance: objects.Instance,
    mappings: Sequence[objects.BlockDeviceMapping],
) -> None:
    """The guest first, then its addresses: a guest that cannot be stopped keeps them. May be repeated."""
    admin = ctxt.elevated()
    info = network.cached(instance) or _found_interfaces(agent, admin, instance)
    agent.driver.destroy(admin, instance, info, block_devices.assemble(instance, mappings))
    agent.clients.neutron.deallocate(admin, instance, cached=info)
    releases.release_all(agent, ctxt, mappings)


def _found_interfaces(agent: Agent, admin: RequestContext, instance: objects.Instance) -> list[dict[str, Any]]:
    """Of a server whose record names none, as a build leaves it that did not come so far: what Neutron has.

    A port that is older than the server was brought by its user, and stays.
    """
    from kilonova.clients.neutron.allocation import predates

    neutron, born = agent.clients.neutron, clock.aware(instance.get("created_at"))
    ports = neutron.ports_by_device(admin, instance.uuid, instance.project_id)
    brought = [port["id"] for port in ports if predates(port, born)]
    return neutron.network_info(admin, instance, preserve=brought) if ports else []
