"""Neutron in memory: networks, subnets with address pools, ports with bindings, quotas, security groups."""

from __future__ import annotations

import ipaddress
import itertools
import re
import uuid
from collections.abc import Iterable
from typing import Any

from tests.fakes.web import FakeService, Refused, body, query, reply, route

from kilonova.clients.http import Reply, Request

EXTENSIONS = (
    "binding",
    "binding-extended",
    "dns-integration",
    "provider",
    "router",
    "security-group",
    "security-groups-shared-filtering",
    "port-resource-request",
    "port-resource-request-groups",
    "revision-if-match",
    "auto-allocated-topology",
)

DNS_LABEL = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?")

ADMIN_ONLY = ("binding:host_id", "binding:profile", "binding:vif_type", "binding:vif_details", "resource_request")


PAGING = ("limit", "marker", "sort_key", "sort_dir")


class FakeNeutron(FakeService):
    """`networks`, `subnets`, `ports`, `security_groups`, `floatingips`: the records by id, open for tests.

    A request with the context's token sees its project's and shared things; `admin` sees and may do all.
    `unbindable` lists hosts on which no port can be bound. `on_bound(port)` is called after a binding, as
    Neutron's notification to the compute service would be.
    """

    def __init__(self, extensions: Iterable[str] = EXTENSIONS) -> None:
        super().__init__()
        self.extension_aliases = list(extensions)
        self.networks: dict[str, dict[str, Any]] = {}
        self.subnets: dict[str, dict[str, Any]] = {}
        self.ports: dict[str, dict[str, Any]] = {}
        self.security_groups: dict[str, dict[str, Any]] = {}
        self.floatingips: dict[str, dict[str, Any]] = {}
        self.quotas: dict[str, dict[str, int]] = {}
        self.unbindable: set[str] = set()
        self.auto_network: str | None = None
        self.on_bound: Any = None
        self._macs = (f"fa:16:3e:00:{n >> 8:02x}:{n & 255:02x}" for n in itertools.count(1))

    # --- for tests -------------------------------------------------------------------------

    def network(
        self, name: str = "private", *, project: str = "project", cidr: str | None = "10.0.0.0/24", **more: Any
    ) -> str:
        """A network with one subnet (none with cidr=None); its id."""
        new = str(uuid.uuid4())
        self.networks[new] = {
            "id": new,
            "name": name,
            "tenant_id": project,
            "project_id": project,
            "shared": False,
            "router:external": False,
            "admin_state_up": True,
            "port_security_enabled": True,
            "mtu": 1442,
            "subnets": [],
            "provider:network_type": "geneve",
            "provider:physical_network": None,
            **more,
        }
        if cidr:
            self.subnet(new, cidr)
        return new

    def subnet(self, network: str, cidr: str, **more: Any) -> str:
        new = str(uuid.uuid4())
        net = ipaddress.ip_network(cidr)
        self.subnets[new] = {
            "id": new,
            "network_id": network,
            "cidr": cidr,
            "ip_version": net.version,
            "gateway_ip": str(next(net.hosts())),
            "enable_dhcp": True,
            "dns_nameservers": ["192.0.2.53"],
            "host_routes": [],
            **more,
        }
        self.networks[network]["subnets"].append(new)
        return new

    def port(self, network: str, *, project: str = "project", **more: Any) -> str:
        """A port as a user would make it beforehand; its id."""
        return self._new_port({"network_id": network, "tenant_id": project, **more})["id"]

    def security_group(self, name: str, *, project: str = "project", **more: Any) -> str:
        new = str(uuid.uuid4())
        self.security_groups[new] = {
            "id": new, "name": name, "tenant_id": project, "project_id": project, "shared": False, **more,
        }  # fmt: skip
        return new

    def ports_of(self, device: str) -> list[dict[str, Any]]:
        return [port for port in self.ports.values() if port["device_id"] == device]

    # --- lists -----------------------------------------------------------------------------

    @route("GET", "/v2.0/networks")
    def list_networks(self, request: Request) -> Any:
        return self._page(request, "networks", self.networks)

    @route("GET", "/v2.0/subnets")
    def list_subnets(self, request: Request) -> Any:
        return self._page(request, "subnets", self.subnets)

    @route("GET", "/v2.0/ports")
    def list_ports(self, request: Request) -> Any:
        return self._page(request, "ports", self.ports)

    @route("GET", "/v2.0/security-groups")
    def list_security_groups(self, request: Request) -> Any:
        return self._page(request, "security_groups", self.security_groups)

    @route("GET", "/v2.0/floatingips")
    def list_floatingips(self, request: Request) -> Any:
        return self._page(request, "floatingips", self.floatingips)

    @route("GET", "/v2.0/extensions")
    def list_extensions(self, request: Request) -> Any:
        return {"extensions": [{"alias": each} for each in self.extension_aliases]}

    def _page(self, request: Request, noun: str, records: dict[str, dict[str, Any]]) -> Any:
        """A page of what matches, with a link when there may be more."""
        wanted: dict[str, list[str]] = {}
        for name, value in query(request):
            wanted.setdefault(name, []).append(value)
        how = {name: wanted.pop(name)[0] for name in PAGING if name in wanted}
        fields = wanted.pop("fields", None)
        found = [
            record
            for record in records.values()
            if self._visible(request, record) and all(matches(record, key, each) for key, each in wanted.items())
        ]
        if how.get("sort_key") == "id":
            found.sort(key=lambda each: str(each["id"]))
        page, link = self.paged(request, found)
        shown = [self._shown(request, record) for record in page]
        items = [{name: each.get(name) for name in fields} for each in shown] if fields else shown
        return {noun: items, **({f"{noun}_links": [{"rel": "next", "href": link}]} if link else {})}

    def _visible(self, request: Request, record: dict[str, Any]) -> bool:
        if request.admin or request.ctxt.is_admin or record.get("shared") or record.get("router:external"):
            return True
        owner = record.get("tenant_id")
        if owner is None and "network_id" in record:
            return self._visible(request, self.networks[record["network_id"]])
        return owner == request.ctxt.project_id

    def _shown(self, request: Request, record: dict[str, Any]) -> dict[str, Any]:
        hidden = () if request.admin or request.ctxt.is_admin else ADMIN_ONLY
        return {name: value for name, value in record.items() if name not in hidden}

    # --- single things ---------------------------------------------------------------------

    @route("GET", "/v2.0/networks/{item}")
    def show_network(self, request: Request, item: str) -> Any:
        return {"network": self._shown(request, self._get(request, self.networks, item, "Network"))}

    @route("GET", "/v2.0/ports/{item}")
    def show_port(self, request: Request, item: str) -> Any:
        return {"port": self._shown(request, self._get(request, self.ports, item, "Port"))}

    @route("GET", "/v2.0/quotas/{project}")
    def show_quota(self, request: Request, project: str) -> Any:
        return {"quota": {"port": -1, **self.quotas.get(project, {})}}

    @route("GET", "/v2.0/auto-allocated-topology/{project}")
    def auto_allocated_topology(self, request: Request, project: str) -> Any:
        if self.auto_network is None:
            raise refused(409, "AutoAllocationFailure", "Deployment error: No default router:external network.")
        dry = ("fields", "dry-run") in query(request)
        return {"auto_allocated_topology": {"id": "dry-run=pass" if dry else self.auto_network}}

    def _get(self, request: Request, records: dict[str, Any], item: str, noun: str) -> dict[str, Any]:
        record = records.get(item)
        if record is None or not self._visible(request, record):
            raise refused(404, f"{noun}NotFound", f"{noun} {item} could not be found.")
        return record

    # --- ports -----------------------------------------------------------------------------

    @route("POST", "/v2.0/ports")
    def create_port(self, request: Request) -> Any:
        wanted = body(request)["port"]
        self._get(request, self.networks, wanted["network_id"], "Network")
        check_dns_name(wanted)
        project = wanted.get("tenant_id") or request.ctxt.project_id
        if not request.admin and not request.ctxt.is_admin and set(wanted) & set(ADMIN_ONLY):
            raise refused(403, "PolicyNotAuthorized", "policy does not allow create_port")
        limit = self.quotas.get(project, {}).get("port", -1)
        if limit != -1 and sum(port["tenant_id"] == project for port in self.ports.values()) >= limit:
            raise refused(409, "OverQuota", "Quota exceeded for resources: ['port'].")
        port = self._new_port({**wanted, "tenant_id": project})
        if port["binding:host_id"]:
            self._bind(port)
        return reply(201, {"port": self._shown(request, port)})

    @route("PUT", "/v2.0/ports/{item}")
    def update_port(self, request: Request, item: str) -> Any:
        port = self._get(request, self.ports, item, "Port")
        match = request.headers.get("If-Match")
        if match is not None and match != f"revision_number={port['revision_number']}":
            raise refused(412, "RevisionNumberConstraintFailed", f"port {item} is not at {match}")
        values = body(request)["port"]
        if not request.admin and not request.ctxt.is_admin and set(values) & set(ADMIN_ONLY):
            raise refused(403, "PolicyNotAuthorized", "policy does not allow update_port")
        check_dns_name(values)
        port.update(values)
        port["revision_number"] += 1
        if "binding:host_id" in values:
            self._bind(port)
        return {"port": self._shown(request, port)}

    @route("DELETE", "/v2.0/ports/{item}")
    def delete_port(self, request: Request, item: str) -> Reply:
        self._get(request, self.ports, item, "Port")
        del self.ports[item]
        return reply(204)

    def _new_port(self, wanted: dict[str, Any]) -> dict[str, Any]:
        network = self.networks[wanted["network_id"]]
        groups = wanted.get("security_groups")
        port = {
            "id": str(uuid.uuid4()),
            "name": "",
            "mac_address": next(self._macs),
            "status": "DOWN",
            "admin_state_up": True,
            "device_id": "",
            "device_owner": "",
            "dns_name": "",
            "revision_number": 1,
            "binding:host_id": "",
            "binding:vnic_type": "normal",
            "binding:vif_type": "unbound",
            "binding:vif_details": {},
            "binding:profile": {},
            "resource_request": None,
            **wanted,
            "project_id": wanted["tenant_id"],
            "security_groups": groups if groups is not None else ["default"],
            "fixed_ips": self._addresses(network, wanted.get("fixed_ips")),
        }
        self.ports[port["id"]] = port
        return port

    def _addresses(self, network: dict[str, Any], wanted: list[dict[str, str]] | None) -> list[dict[str, str]]:
        taken = {each["ip_address"] for port in self.ports.values() for each in port["fixed_ips"]}
        found = []
        for each in wanted or ():
            address = each.get("ip_address")
            subnet = next((s for s in network["subnets"] if address and inside(address, self.subnets[s])), None)
            if subnet is None:
                raise refused(400, "InvalidIpForNetwork", f"IP address {address} is not a valid IP for any subnet")
            if address in taken:
                raise refused(409, "IpAddressAlreadyAllocated", f"IP address {address} already allocated")
            found.append({"subnet_id": subnet, "ip_address": str(address)})
        if wanted:
            return found
        for subnet in network["subnets"][:1]:
            pool = (str(ip) for ip in ipaddress.ip_network(self.subnets[subnet]["cidr"]).hosts())
            free = next((ip for ip in pool if ip not in taken and ip != self.subnets[subnet]["gateway_ip"]), None)
            if free is None:
                raise refused(409, "IpAddressGenerationFailure", "No more IP addresses available on network")
            found.append({"subnet_id": subnet, "ip_address": free})
        return found

    def _bind(self, port: dict[str, Any]) -> None:
        host = port["binding:host_id"]
        if not host:
            port.update({"binding:host_id": "", "binding:vif_type": "unbound", "binding:vif_details": {}})
            port["status"] = "DOWN"
        elif host in self.unbindable:
            port["binding:vif_type"] = "binding_failed"
        else:
            port["binding:vif_type"] = "ovs"
            port["binding:vif_details"] = {"port_filter": True, "bridge_name": "br-int", "datapath_type": "system"}
            if self.on_bound is not None:
                self.on_bound(port)


def check_dns_name(values: dict[str, Any]) -> None:
    name = values.get("dns_name") or ""
    if name and not all(DNS_LABEL.fullmatch(label) for label in name.removesuffix(".").split(".")):
        raise refused(400, "HTTPBadRequest", f"Invalid input for dns_name. Reason: {name!r} is not a valid name.")


def matches(record: dict[str, Any], name: str, wanted: list[str]) -> bool:
    """Neutron's list filters: any of the values; `fixed_ips=ip_address=X` looks inside."""
    if name == "fixed_ips":
        values: dict[str, list[str]] = {}
        for key, value in (each.split("=", 1) for each in wanted):
            values.setdefault(key, []).append(value)
        return any(all(ip.get(key) in of_key for key, of_key in values.items()) for ip in record["fixed_ips"])
    return str(record.get(name)) in wanted


def inside(address: str, subnet: dict[str, Any]) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(subnet["cidr"])


def refused(status: int, kind: str, message: str) -> Refused:
    return Refused(status, {"NeutronError": {"type": kind, "message": message, "detail": ""}})
