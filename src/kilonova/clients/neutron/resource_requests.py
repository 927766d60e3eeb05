"""What a server's networks and ports ask of the scheduler: physical networks, QoS resources, PCI devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kilonova.base import ids
from kilonova.clients.neutron import info, requests
from kilonova.clients.neutron.allocation import GROUPED_REQUESTS
from kilonova.clients.neutron.memory import Memory
from kilonova.clients.neutron.rest import Item, NeutronRest
from kilonova.contract import exceptions, network_info, objects
from kilonova.contract.context import RequestContext


class ResourceRequests(msgspec.Struct, frozen=True):
    """For the request spec: network metadata, one request group per need of a port, instructions for all of them."""

    metadata: objects.NetworkMetadata
    groups: list[objects.RequestGroup]
    same_subtree: list[list[str]]
    pci: list[objects.InstancePCIRequest]


DEVICE_TYPES = {network_info.VNIC_DIRECT_PHYSICAL: "type-PF", network_info.VNIC_VDPA: "vdpa"}


def collect(
    rest: NeutronRest, memory: Memory, ctxt: RequestContext, requested: requests.Requested
) -> ResourceRequests | None:
    """None when the server gets no network. Two calls for any number of requests.

    Sets `pci_request_id` of requests whose port needs a device. Raises PortNotFound, DeviceProfileError.
    """
    wanted = requests.as_list(requested)
    if not wanted or requests.wants_none(requested):
        return None
    port_ids = [each for each in (requests.field(one, "port_id") for one in wanted) if each]
    ports = {port["id"]: port for port in rest.list(ctxt, "ports", admin=True, id=port_ids)} if port_ids else {}
    for port_id in port_ids:
        if port_id not in ports:
            raise exceptions.PortNotFound(port_id=port_id)
    providers = _providers(memory, ctxt, wanted, ports)
    found = ResourceRequests(_metadata(providers.values()), [], [], [])
    grouped = GROUPED_REQUESTS in rest.extensions(ctxt) if ports else False
    for request in wanted:
        port = ports.get(requests.field(request, "port_id") or "")
        request.pci_request_id = None
        if port is not None:
            _add_qos(found, port, grouped=grouped)
            _add_pci(found, request, port, providers[port["network_id"]][0])
    return found


def _providers(
    memory: Memory, ctxt: RequestContext, wanted: Sequence[objects.NetworkRequest], ports: Mapping[str, Item]
) -> dict[str, tuple[str | None, bool]]:
    named = [requests.field(each, "network_id") for each in wanted if not requests.field(each, "port_id")]
    ids_ = {each for each in named if each and each != requests.AUTO} | {port["network_id"] for port in ports.values()}
    return {each: info.provider(net) for each, net in memory.networks(ctxt, map(str, ids_)).items()}


def _metadata(providers: Any) -> objects.NetworkMetadata:
    found = list(providers)
    return objects.NetworkMetadata(
        physnets={physical for physical, _ in found if physical}, tunneled=any(tunneled for _, tunneled in found)
    )


def _add_qos(found: ResourceRequests, port: Item, *, grouped: bool) -> None:
    groups, same_subtree = of_port(port, grouped=grouped)
    found.groups.extend(groups)
    if same_subtree:
        found.same_subtree.append(same_subtree)


def of_port(port: Item, *, grouped: bool) -> tuple[list[objects.RequestGroup], list[str]]:
    """The request groups of one port, and which of them must be below one provider. `grouped`: Neutron groups them."""
    asked = port.get("resource_request") or {}
    if not asked:
        return [], []
    if not grouped:
        return [_group(port["id"], asked)], []
    groups = [_group(each["id"], each) for each in asked.get("request_groups", ())]
    return groups, list(asked.get("same_subtree") or ())


def _group(requester: str, asked: Mapping[str, Any]) -> objects.RequestGroup:
    return objects.RequestGroup(
        use_same_provider=True,
        requester_id=requester,
        resources={name: int(amount) for name, amount in asked["resources"].items()},
        required_traits=set(asked.get("required", ())),
    )


def _add_pci(found: ResourceRequests, request: objects.NetworkRequest, port: Item, physical: str | None) -> None:
    kind = port.get("binding:vnic_type") or network_info.VNIC_NORMAL
    if kind in network_info.ACCELERATOR_VNIC_TYPES:
        raise exceptions.DeviceProfileError(name=port.get("device_profile"), msg="accelerator ports are not supported")
    if kind not in network_info.SRIOV_VNIC_TYPES:
        return
    spec = {"physical_network": physical, "remote_managed": str(kind == network_info.VNIC_REMOTE_MANAGED)}
    if kind in DEVICE_TYPES:
        spec["dev_type"] = DEVICE_TYPES[kind]
    trusted = (port.get("binding:profile") or {}).get("trusted")
    if trusted is not None:
        spec["trusted"] = str(str(trusted).lower() in ("true", "1", "yes", "on", "t", "y"))
    device = objects.InstancePCIRequest(count=1, spec=[spec], request_id=ids.new_uuid(), requester_id=port["id"])
    if port.get("numa_affinity_policy"):
        device.numa_policy = port["numa_affinity_policy"]
    found.pci.append(device)
    request.pci_request_id = device.request_id
