"""Giving a server its ports and taking them away.

Every step looks before it makes: a repeat after a crash finds the ports of the
first try by their device id. On failure what this call made is deleted and what
it bound is unbound.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kilonova.base import clock
from kilonova.clients import refusals
from kilonova.clients.http import ServiceError
from kilonova.clients.neutron import requests
from kilonova.clients.neutron.rest import Item, NeutronError, NeutronRest
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

DNS = "dns-integration"
GROUPED_REQUESTS = "port-resource-request-groups"
IF_MATCH = "revision-if-match"

DEVICE_KEYS = (
    "pci_vendor_info",
    "pci_slot",
    "allocation",
    "arq_uuid",
    "physical_network",
    "card_serial_number",
    "vf_num",
    "pf_mac_address",
    "device_mac_address",
)
"""What a binding profile says of one host's device; it goes when the port is unbound."""


class Wish(msgspec.Struct, frozen=True):
    """What new and existing ports of one server shall get.

    `in_one`: a new port is made and bound in one request by the service, not made by the user and bound afterwards.
    `mapping`: {port or request group id: [provider uuids]} of the claim, for ports with a resource
    request. `pci_profiles`: {pci request id: binding profile of the claimed device}. `attached`:
    ports that the server already uses and that this call must not take for the leftovers of a first try.
    """

    host: str | None
    groups: Sequence[str] = ()
    in_one: bool = True
    mapping: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    pci_profiles: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    attached: Collection[str] = ()


class Allotted(msgspec.Struct):
    """Ports in the requested order, and which of them existed before."""

    ports: list[Item] = msgspec.field(default_factory=list)
    preexisting: list[str] = msgspec.field(default_factory=list)
    created: list[str] = msgspec.field(default_factory=list)
    """Made by this call, or found as the leftovers of an earlier one."""


class Allocation:
    """One server's allocation: make, bind, or undo."""

    def __init__(self, rest: NeutronRest, ctxt: RequestContext, instance: objects.Instance, wish: Wish) -> None:
        self._rest = rest
        self._ctxt = ctxt
        self._instance = instance
        self._wish = wish
        self._done = Allotted()
        self.made: set[str] = set()
        """Ports that did not exist before this call."""
        self._bound: set[str] = set()
        """Those of them that were bound when they were made."""

    def run(
        self,
        ordered: Sequence[objects.NetworkRequest],
        networks: Mapping[str, Item],
        existing: Mapping[str, Item],
        leftovers: Sequence[Item],
    ) -> Allotted:
        """Create what is missing, bind all to the host; undone as a whole when any part fails."""
        spare = [port for port in leftovers if port["id"] not in existing and port["id"] not in self._wish.attached]
        try:
            pairs = [(request, self._port(request, networks, existing, spare)) for request in ordered]
            for request, port in pairs:
                self._bind(request, port, networks[port["network_id"]])
        except Exception:
            LOG.info("undoing the port allocation of server %s", self._instance.uuid)
            self.undo()
            raise
        return self._done

    def undo(self) -> None:
        """Delete what was made, unbind what was bound; what fails is logged and left to the orphan_ports loop."""
        for port_id in self._done.preexisting:
            quietly(unbind, self._rest, self._ctxt, port_id, self._instance.uuid)
        for port_id in self._done.created:
            quietly(self._rest.delete, self._ctxt, "ports", port_id, admin=True)

    # --- one port --------------------------------------------------------------------------

    def _port(
        self,
        request: objects.NetworkRequest,
        networks: Mapping[str, Item],
        existing: Mapping[str, Item],
        spare: list[Item],
    ) -> Item:
        port_id = requests.field(request, "port_id")
        network = networks[existing[port_id]["network_id"] if port_id else request.network_id]
        self._check_groups(network, bool(port_id))
        if port_id:
            return existing[port_id]
        port = self._adopt(request, spare) or self._create(request, network)
        self._done.created.append(port["id"])
        return port

    def _check_groups(self, network: Item, port_given: bool) -> None:
        if network.get("port_security_enabled", True):
            unsuitable = not network.get("subnets") and not port_given
        else:
            unsuitable = bool(self._wish.groups)
        if unsuitable:
            raise exceptions.SecurityGroupCannotBeApplied()

    def _adopt(self, request: objects.NetworkRequest, spare: list[Item]) -> Item | None:
        address = requests.field(request, "address")
        for port in spare:
            same_network = port["network_id"] == request.network_id
            has_address = not address or any(each["ip_address"] == str(address) for each in port["fixed_ips"])
            if same_network and has_address:
                spare.remove(port)
                return port
        return None

    def _create(self, request: objects.NetworkRequest, network: Item) -> Item:
        address = requests.field(request, "address")
        body: dict[str, Any] = {
            "network_id": network["id"],
            "admin_state_up": True,
            "tenant_id": self._instance.project_id,
            "device_id": self._instance.uuid,
        }
        # Who may choose an address is for Neutron's policy to say; network and groups were found with the user's eyes.
        bound = self._wish.in_one and not address
        if bound:
            body |= self._binding(request, {}, network)
        if address:
            body["fixed_ips"] = [{"ip_address": str(address)}]
        if self._wish.groups:
            body["security_groups"] = list(self._wish.groups)
        try:
            port = self._rest.create(self._ctxt, "ports", body, admin=bound)
        except NeutronError as exc:
            raise refusals.of(exc, "new port", network_id=network["id"], address=address) from exc
        self.made.add(port["id"])
        if bound:
            self._bound.add(port["id"])
        return port

    def _bind(self, request: objects.NetworkRequest, port: Item, network: Item) -> None:
        created = port["id"] in self._done.created
        if not created:
            self._done.preexisting.append(port["id"])
        if port["id"] in self._bound:
            bound = port
        else:
            bound = self._update(port, self._binding(request, port, network), guarded=not created)
        if created and bound.get("resource_request"):
            raise exceptions.NetworksWithQoSPolicyNotSupported(
                instance_uuid=self._instance.uuid, network_id=network["id"]
            )
        requests.check_bound(bound)
        self._done.ports.append(bound)
        self._external_dns(network, port["id"])

    def _binding(self, request: objects.NetworkRequest, port: Item, network: Item) -> dict[str, Any]:
        """What makes a port the server's on its host."""
        return {
            "device_id": self._instance.uuid,
            "device_owner": f"compute:{self._instance.availability_zone}",
            "binding:host_id": self._wish.host,
            **self._profile(request, port),
            **self._dns(network),
        }

    def _update(self, port: Item, values: Mapping[str, Any], *, guarded: bool) -> Item:
        """`guarded`: only if nobody changed the port since it was read; a port taken meanwhile is PortInUse."""
        revision = port.get("revision_number") if guarded and IF_MATCH in self._rest.extensions(self._ctxt) else None
        try:
            return self._rest.update(self._ctxt, "ports", port["id"], values, admin=True, revision=revision)
        except NeutronError as exc:
            if exc.status != 412:
                raise refusals.of(exc, "port", port_id=port["id"]) from exc
        now = self._rest.port_show(self._ctxt, port["id"], admin=True)
        if now.get("device_id") not in ("", None, self._instance.uuid):
            raise exceptions.PortInUse(port_id=port["id"])
        return self._update(now, values, guarded=True)

    def _profile(self, request: objects.NetworkRequest, port: Item) -> dict[str, Any]:
        profile = dict(port.get("binding:profile") or {})
        asked = port.get("resource_request") or {}
        if asked and self._wish.mapping:
            grouped = GROUPED_REQUESTS in self._rest.extensions(self._ctxt)
            profile["allocation"] = holders(port, self._wish.mapping, grouped=grouped)
        pci_request = requests.field(request, "pci_request_id")
        if pci_request:
            if pci_request not in self._wish.pci_profiles:
                raise exceptions.PciDeviceNotFound(f"PCI device not found for request ID {pci_request}.")
            profile |= self._wish.pci_profiles[pci_request]
        return {"binding:profile": profile} if profile else {}

    def _dns(self, network: Item) -> dict[str, Any]:
        if DNS in self._rest.extensions(self._ctxt) and not network.get("dns_domain"):
            return {"dns_name": self._instance.hostname}
        return {}

    def _external_dns(self, network: Item, port_id: str) -> None:
        """A network with a DNS domain has its records in the user's zone: the user's token names the port."""
        if not network.get("dns_domain") or DNS not in self._rest.extensions(self._ctxt):
            return
        try:
            self._rest.update(self._ctxt, "ports", port_id, {"dns_name": self._instance.hostname})
        except NeutronError as exc:
            raise refusals.of(exc, "port name", hostname=self._instance.hostname) from exc


def holders(port: Item, mapping: Mapping[str, Sequence[str]], *, grouped: bool) -> Any:
    """Which provider serves the port: one uuid, or one per request group where Neutron groups them.

    `mapping`: as Placement shows it with a candidate.
    """
    if grouped:
        groups = (port.get("resource_request") or {}).get("request_groups", ())
        return {group["id"]: mapping[group["id"]][0] for group in groups}
    return mapping[port["id"]][0]


def held(port: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the port's binding says it holds in Placement: {provider: {"resources": {...}}}."""
    asked = port.get("resource_request") or {}
    named = (port.get("binding:profile") or {}).get("allocation")
    if not asked or not named:
        return {}
    if isinstance(named, str):
        return {named: {"resources": asked.get("resources", {})}}
    found: dict[str, dict[str, Any]] = {}
    for group in asked.get("request_groups", ()):
        mine = found.setdefault(named[group["id"]], {"resources": {}})["resources"]
        for name, amount in group.get("resources", {}).items():
            mine[name] = mine.get(name, 0) + amount
    return found


def deallocate(rest: NeutronRest, ctxt: RequestContext, ports: Iterable[Item], preserve: Collection[str]) -> None:
    """Unbind ports in `preserve`, delete the others. All are tried; the first failure is raised at the end."""
    failures: list[Exception] = []
    for port in ports:
        try:
            if port["id"] in preserve:
                unbind(rest, ctxt, port["id"], port["device_id"])
            else:
                rest.delete(ctxt, "ports", port["id"], admin=True)
        except (ServiceError, exceptions.NovaException) as exc:
            LOG.warning("cannot release port %s: %s", port["id"], exc)
            failures.append(exc)
    if failures:
        raise failures[0]


def predates(port: Mapping[str, Any], born: datetime.datetime | None) -> bool:
    """Whether a port is certainly older than the record of its server: then its user made it beforehand."""
    made = port.get("created_at")
    return bool(born and made and clock.parse(made) < born.replace(microsecond=0))


def unbind(rest: NeutronRest, ctxt: RequestContext, port_id: str, device: str) -> None:
    """Take a port from its server and host; one that is gone or another server's by now is left alone."""
    port = rest.show(ctxt, "ports", port_id, admin=True)
    if port is None or port.get("device_id") != device:
        return
    profile = {key: value for key, value in (port.get("binding:profile") or {}).items() if key not in DEVICE_KEYS}
    values: dict[str, Any] = {
        "binding:host_id": None,
        "binding:profile": profile,
        "device_id": "",
        "device_owner": "",
    }
    if port.get("dns_name"):
        values["dns_name"] = ""
    try:
        rest.update(ctxt, "ports", port_id, values, admin=True)
    except NeutronError as exc:
        if exc.status != 404:
            raise


def quietly(call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """For undoing: a failure is logged, the undoing goes on."""
    try:
        call(*args, **kwargs)
    except (ServiceError, exceptions.NovaException):
        LOG.warning("undoing a port allocation: %s%s failed", call.__name__, args[1:], exc_info=True)
