"""Neutron: ML2/OVN for guests on a real network, or a driver that binds every port where guests are fake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kilonova.cloud import addresses, ini, uwsgi
from kilonova.cloud.commands import run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.packages import foreign_path
from kilonova.cloud.rest import Rest, patient, poll
from kilonova.cloud.services.ovn import Ovn
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import authtoken, keystone_auth
from kilonova.cloud.steps import Step

UNLIMITED = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule")


class Neutron(Service):
    name = "neutron"
    start_needs = ()

    @property
    def ovn(self) -> bool:
        return self.site.settings.network == "ovn"

    @property
    def conf(self) -> Path:
        return self.folder / "neutron.conf"

    @property
    def ml2(self) -> Path:
        return self.folder / "ml2.ini"

    def configure(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        ini.write(self.ml2, self.ovn_sections() if self.ovn else self.bind_all_sections())
        ini.write(
            self.conf,
            {
                "DEFAULT": {
                    "log_file": self.log,
                    "core_plugin": "ml2",
                    "service_plugins": "ovn-router,qos" if self.ovn else "router,qos,port_forwarding",
                    "transport_url": self.site.transport("neutron"),
                    "auth_strategy": "keystone",
                    "state_path": self.data,
                    "api_paste_config": self.venv / "etc" / "neutron" / "api-paste.ini",
                    "dns_domain": "cloud.example.",
                    "dhcp_agent_notification": False,
                    "notify_nova_on_port_status_changes": True,
                    "notify_nova_on_port_data_changes": True,
                    # At least 1: with 0 no event is ever sent.
                    "send_events_interval": 1,
                    "router_distributed": False,
                    "l3_ha": False,
                    "rpc_response_timeout": 10,
                    "global_physnet_mtu": 1500,
                },
                "database": self.database("neutron"),
                "keystone_authtoken": authtoken(self.site, "neutron", "network"),
                "nova": keystone_auth(self.site, "neutron"),
                "placement": keystone_auth(self.site, "neutron"),
                "oslo_messaging_notifications": {"driver": "noop"},
                "oslo_concurrency": {"lock_path": self.site.data / "lock"},
                "quotas": {f"quota_{kind}": -1 for kind in UNLIMITED},
            },
        )

    def ovn_sections(self) -> dict[str, dict[str, Any]]:
        ovn = Ovn(self.site, self.supervisor)
        return {
            "ml2": {
                "type_drivers": "local,flat,vlan,geneve",
                "tenant_network_types": "geneve",
                "mechanism_drivers": "ovn" if self.site.full else "kilonova_one_process,ovn",
                "extension_drivers": "port_security,qos,dns",
            },
            "ml2_type_flat": {"flat_networks": "*"},
            "ml2_type_geneve": {"vni_ranges": "1:4000", "max_header_size": 38},
            "securitygroup": {"enable_security_group": True},
            "ovn": {
                "ovn_nb_connection": f"unix:{ovn.socket('nb')}",
                "ovn_sb_connection": f"unix:{ovn.socket('sb')}",
                "ovn_metadata_enabled": True,
                "enable_distributed_floating_ip": False,
                "ovsdb_probe_interval": 0,
            },
        }

    def bind_all_sections(self) -> dict[str, dict[str, Any]]:
        return {
            "ml2": {
                "type_drivers": "local,flat,vlan,vxlan",
                "tenant_network_types": "vxlan",
                "mechanism_drivers": "kilonova_bind_all",
                "extension_drivers": "port_security,qos,dns_domain_ports",
            },
            "ml2_type_flat": {"flat_networks": "*"},
            "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:200"},
            "ml2_type_vxlan": {"vni_ranges": "1:4000"},
        }

    def set_up(self) -> None:
        manage = [self.venv / "bin" / "neutron-db-manage", "--config-file", self.conf, "--config-file", self.ml2]
        if self.site.full:
            run([*manage, "upgrade", "heads"], self.set_up_log, self.foreign)
            return
        script = foreign_path() / "neutron_tables.py"
        python = self.venv / "bin" / "python"
        run([python, script, self.site.database("neutron")], self.set_up_log, self.foreign)
        run([*manage, "stamp", "heads"], self.set_up_log, self.foreign)

    def daemons(self) -> list[Daemon]:
        env = {"OS_NEUTRON_CONFIG_DIR": str(self.folder), "OS_NEUTRON_CONFIG_FILES": "neutron.conf;ml2.ini"}
        port = self.site.ports["neutron"]
        api = uwsgi.daemon(self.site, self.name, self.venv, "neutron.wsgi.api:application", port, env)
        return [api, self.maintenance()] if self.ovn and self.site.full else [api]

    def maintenance(self) -> Daemon:
        """Repairs what a write to OVN's database has missed. Left out where memory counts: it takes 270 MiB."""
        name = "neutron-maintenance"
        program = self.venv / "bin" / "neutron-ovn-maintenance-worker"
        log = self.site.log / f"{name}.log"
        arguments = ["--config-file", self.conf, "--config-file", self.ml2, "--log-file", log]
        return Daemon(name, [program, *arguments], self.foreign)

    def fill(self) -> None:
        """Networks `public` (external) and `private` of project demo behind a router, and an open security group."""
        admin = Rest(self.site)
        admin.login()
        demo = Rest(self.site, "admin", "demo")
        demo.login()
        base = self.site.url("neutron", "/v2.0")
        # Its policies are read during the first requests, and until then nobody is an administrator.
        poll("Neutron does not know its administrator", patient(lambda: "agents" in admin.get(f"{base}/agents")), 60)
        plan = addresses.plan(self.site.settings.number)
        public = admin.ensure(
            f"{base}/networks",
            "network",
            {
                "name": "public",
                "router:external": True,
                "is_default": True,
                "provider:network_type": "flat",
                "provider:physical_network": "public",
                "project_id": admin.project_id,
            },
        )
        admin.ensure(
            f"{base}/subnets",
            "subnet",
            {
                "name": "public-subnet",
                "network_id": public["id"],
                "ip_version": 4,
                "cidr": plan.public,
                "gateway_ip": plan.host_address,
                "allocation_pools": [{"start": plan.floating_first, "end": plan.floating_last}],
                "enable_dhcp": False,
                "project_id": admin.project_id,
            },
        )
        private = admin.ensure(f"{base}/networks", "network", {"name": "private", "project_id": demo.project_id})
        subnet = admin.ensure(
            f"{base}/subnets",
            "subnet",
            {
                "name": "private-subnet",
                "network_id": private["id"],
                "ip_version": 4,
                "cidr": plan.private,
                "dns_nameservers": [],
                "project_id": demo.project_id,
            },
        )
        admin.ensure(
            f"{base}/subnetpools",
            "subnetpool",
            {
                "name": "default-pool",
                "prefixes": [plan.pool],
                "default_prefixlen": 26,
                "shared": True,
                "is_default": True,
            },
        )
        self.router(admin, base, demo.project_id, public["id"], subnet["id"], plan)
        self.open_default_group(admin, base, demo.project_id)

    def steps(self) -> list[Step]:
        host = Step("host port", self.host_port, ("neutron data", "ovn"), self.log)
        return [*super().steps(), *([host] if self.ovn else [])]

    def host_port(self) -> None:
        """This machine's own port on the guests' network.

        By the router alone a guest with a floating address would be lost at its own: its answers leave by the floating.
        """
        admin = Rest(self.site)
        admin.login()
        base = self.site.url("neutron", "/v2.0")
        plan = addresses.plan(self.site.settings.number)
        network = admin.find(f"{base}/networks", "networks", "private")
        if network is None:
            return
        wanted = {
            "name": "host",
            "network_id": network["id"],
            "project_id": admin.project_id,
            "device_owner": "network:kilonova-host",
            "fixed_ips": [{"ip_address": plan.private_host}],
            "port_security_enabled": False,
            "binding:host_id": self.site.host,
        }
        port = admin.find(f"{base}/ports", "ports", "host", network_id=network["id"], project_id=admin.project_id)
        port = port or admin.post(f"{base}/ports", {"port": wanted})["port"]
        Ovn(self.site, self.supervisor).plug_host(port | {"mtu": network["mtu"]})

    def router(self, admin: Rest, base: str, project: str, public: str, subnet: str, plan: addresses.Plan) -> None:
        """No SNAT: the host has a port on the guests' network, and guests are known by their own addresses."""
        router = admin.find(f"{base}/routers", "routers", "router")
        if router is None:
            gateway: dict[str, Any] = {"network_id": public, "enable_snat": False}
            gateway["external_fixed_ips"] = [{"ip_address": plan.router_address}]
            body = {"name": "router", "project_id": project, "external_gateway_info": gateway}
            router = admin.post(f"{base}/routers", {"router": body})["router"]
        ports = admin.get(f"{base}/ports?device_id={router['id']}")["ports"]
        if not any(ip["subnet_id"] == subnet for port in ports for ip in port["fixed_ips"]):
            admin.put(f"{base}/routers/{router['id']}/add_router_interface", {"subnet_id": subnet})

    def open_default_group(self, admin: Rest, base: str, project: str) -> None:
        """Let the host reach demo's guests by ping and ssh."""
        group = admin.get(f"{base}/security-groups?project_id={project}&name=default")["security_groups"][0]
        present = {(rule["protocol"], rule["port_range_min"]) for rule in group["security_group_rules"]}
        for protocol, port in (("icmp", None), ("tcp", 22)):
            if (protocol, port) not in present:
                rule = {
                    "security_group_id": group["id"],
                    "direction": "ingress",
                    "ethertype": "IPv4",
                    "protocol": protocol,
                    "port_range_min": port,
                    "port_range_max": port,
                    "remote_ip_prefix": "0.0.0.0/0",
                    "project_id": project,
                }
                admin.post(f"{base}/security-group-rules", {"security_group_rule": rule})
