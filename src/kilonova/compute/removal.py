"""Taking an instance off its host: guest, ports, volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kilonova.compute import block_devices, guest
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
    info = guest.network_info(instance) or agent.clients.neutron.network_info(admin, instance)
    agent.driver.destroy(admin, instance, info, block_devices.assemble(instance, mappings))
    agent.clients.neutron.deallocate(admin, instance, cached=info)
    block_devices.release_all(agent, ctxt, mappings)
