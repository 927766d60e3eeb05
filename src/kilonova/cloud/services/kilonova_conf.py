"""Configuration of the compute service: what every process has, the control plane, a cell, a host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kilonova.cloud import ini
from kilonova.cloud.services.image import virt_type
from kilonova.cloud.services.libvirt import Libvirt
from kilonova.cloud.services.ovn import Ovn
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK, REGION, authtoken, keystone_auth

CONTROLLER = "controller"
"""Server name of conductors and schedulers."""

QUOTAS = {"instances": 100, "cores": 200, "ram": 512000, "key_pairs": 100, "server_groups": 100}
FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)

PRIVILEGED = ("nova_sys_admin", "vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged", "privsep_osbrick")
"""Sections that name the helper of oslo.privsep. The default is started by sudo, which knows no path of ours."""

Sections = dict[str, dict[str, Any]]


def joined(first: Sections, second: Sections) -> Sections:
    """The sections of both; of an option that both have, the second's."""
    return {name: first.get(name, {}) | second.get(name, {}) for name in (*first, *second)}


class Configured(Service):
    """The compute service as far as its files say what it is."""

    @property
    def bin(self) -> Path:
        """Where our executables are: beside the Python that runs this."""
        return Path(sys.executable).parent

    @property
    def log(self) -> Path:
        """Where a build that fails says why."""
        return self.site.log / (f"nova-compute-{next(iter(self.hosts()))}.log" if self.site.bus else "kilonova.log")

    @property
    def conf(self) -> Path:
        return self.folder / "nova.conf"

    @property
    def cells(self) -> list[str]:
        return ["cell1", "cell2"] if self.site.full else ["cell1"]

    @property
    def fake(self) -> bool:
        return self.site.settings.driver == "fake"

    def hosts(self) -> dict[str, str]:
        """Cell by host name."""
        if self.fake:
            return {
                f"fake-{n}": self.cells[(n - 1) % len(self.cells)] for n in range(1, self.site.settings.computes + 1)
            }
        return {self.site.host: "cell1"}

    def database_url(self, name: str) -> str:
        if self.site.full:
            return self.site.database(name)
        return f"sqlite:///{self.site.data / 'sqlite' / name}.db"

    def configure(self) -> None:
        ini.write(self.conf, self.top())
        ini.write(self.privileged_conf, {"DEFAULT": {"log_dir": self.site.log}} | self.devices())
        if self.site.bus:
            for cell in self.cells:
                ini.write(self.cell_conf(cell), self.for_cell(cell))
            for host in self.hosts():
                ini.write(self.host_conf(host), self.for_host(host))

    @property
    def privileged_conf(self) -> Path:
        """What the privileged helpers read: no secret is in it."""
        return self.folder / "privileged.conf"

    def cell_conf(self, cell: str) -> Path:
        return self.folder / f"nova-{cell}.conf"

    def host_conf(self, host: str) -> Path:
        return self.folder / f"host-{host}.conf"

    def top(self) -> Sections:
        """Configuration of everything above the cells; embedded, of the one process."""
        one = not self.site.bus
        sections = joined(self.shared(), self.control()) | {
            "api_database": {"connection": self.database_url("nova_api")},
            "database": {"connection": self.database_url("nova_cell1" if one else "nova_cell0")},
        }
        sections["DEFAULT"]["transport_url"] = self.site.transport("nova")
        if one:
            hosts, driver = list(self.hosts()), self.driver_options()
            sections["DEFAULT"] |= {"host": hosts[0]} | driver["DEFAULT"]
            if len(hosts) > 1:
                sections.setdefault("kilonova", {})["hosts"] = ",".join(hosts)
            sections |= {name: options for name, options in driver.items() if name != "DEFAULT"}
        return sections

    def for_cell(self, cell: str) -> Sections:
        """Of a cell's conductor: its own database and bus, and nothing of those above or beside it."""
        sections = joined(self.shared(), self.control())
        sections["DEFAULT"]["transport_url"] = self.site.transport(f"nova_{cell}")
        return sections | {"database": {"connection": self.database_url(f"nova_{cell}")}}

    def for_host(self, host: str) -> Sections:
        """All that a compute host has: its cell's bus, no database and no secret of the API."""
        state = self.data / host
        (state / "instances").mkdir(parents=True, exist_ok=True)
        sections, driver = self.shared(), self.driver_options()
        sections["DEFAULT"] |= driver["DEFAULT"] | {
            "host": host,
            "state_path": state,
            "instances_path": state / "instances",
            "transport_url": self.site.transport(f"nova_{self.hosts()[host]}"),
        }
        sections["oslo_concurrency"] = {"lock_path": state / "lock"}
        return sections | {name: options for name, options in driver.items() if name != "DEFAULT"}

    def driver_options(self) -> Sections:
        if self.fake:
            return {"DEFAULT": {"compute_driver": self.fake_driver}}
        libvirt = Libvirt(self.site, self.supervisor)
        options: Sections = {
            "DEFAULT": {"compute_driver": "libvirt.LibvirtDriver", "resume_guests_state_on_host_boot": True},
            "libvirt": {
                "virt_type": virt_type(self.site),
                "connection_uri": libvirt.uri,
                "images_type": "qcow2",
                "cpu_mode": "host-passthrough" if virt_type(self.site) == "kvm" else "none",
                # Guests of the translator need little of its cache; the default is 1 GiB for each.
                "tb_cache_size": 32 if virt_type(self.site) == "qemu" else None,
            },
        }
        return options | self.devices()

    def devices(self) -> Sections:
        """Where devices of guests are plugged in."""
        if self.fake or self.site.settings.network != "ovn":
            return {}
        return {"os_vif_ovs": {"ovsdb_connection": f"unix:{Ovn(self.site, self.supervisor).socket('ovs')}"}}

    @property
    def fake_driver(self) -> str:
        return "fake.FakeDriverWithoutFakeNodes" if self.site.peer else "fake.FakeDriver"

    def control(self) -> Sections:
        """What only the control plane has: what it decides by, and secrets that no host needs."""
        sections: Sections = {
            "keystone_authtoken": self.authtoken(),
            "neutron": {
                "service_metadata_proxy": True,
                "metadata_proxy_shared_secret": self.site.password("metadata"),
            },
            "scheduler": {"discover_hosts_in_cells_interval": 30},
            "filter_scheduler": {"enabled_filters": ",".join(FILTERS)},
            "quota": QUOTAS,
        }
        if not self.site.peer:
            # By default the key is made of a database's URL, and that of SQLite is a path that everybody knows.
            sections["kilonova"] = {"flow_seal_keys": self.site.password("seal")}
        return sections

    def shared(self) -> Sections:
        """What every process has."""
        auth = keystone_auth(self.site, "nova")
        region = {"region_name": auth["region_name"]}
        login = {name: value for name, value in auth.items() if name not in region}
        (self.data / "lock").mkdir(parents=True, exist_ok=True)
        (self.data / "instances").mkdir(parents=True, exist_ok=True)
        sections: Sections = {
            "DEFAULT": {
                "my_ip": LOOPBACK,
                "host": CONTROLLER,
                "state_path": self.data,
                "instances_path": self.data / "instances",
                "log_dir": self.site.log,
                "osapi_compute_listen": LOOPBACK,
                "osapi_compute_listen_port": self.site.ports["compute"],
                "metadata_listen": LOOPBACK,
                "metadata_listen_port": self.site.ports["metadata"],
                "report_interval": 10,
                "service_down_time": 60,
            },
            "service_user": login | {"send_service_user_token": True},
            "keystone": auth,
            "placement": auth,
            "glance": region | {"valid_interfaces": "public"},
            "neutron": auth | {"valid_interfaces": "public"},
            "oslo_concurrency": {"lock_path": self.data / "lock"},
            "oslo_messaging_notifications": {"driver": "noop"},
            # A port of VNC knows no password: everybody on this machine could sit down at a guest's console.
            "vnc": {"enabled": False},
        }
        helper = {"helper_command": f"{self.bin / 'privsep-helper'} --config-file {self.privileged_conf}"}
        sections |= dict.fromkeys(PRIVILEGED, helper)
        if self.site.peer:
            sections = joined(sections, self.for_peer())
        if self.site.settings.volumes:
            sections["cinder"] = login | {"catalog_info": "block-storage::publicURL", "os_region_name": REGION}
        elif not self.site.peer:
            sections["kilonova"] = {"reconcile_disabled": "orphan_attachments,orphan_volumes"}
        return sections

    def for_peer(self) -> Sections:
        """What only Nova obeys."""
        return {
            "wsgi": {"api_paste_config": self.folder / "api-paste.ini"},
            "cache": {"enabled": True, "backend": "oslo_cache.dict"},
            "key_manager": {
                "backend": "nova.keymgr.conf_key_mgr.ConfKeyManager",
                "fixed_key": self.site.derived("volume keys"),
            },
            "scheduler": {"workers": 1},
            "conductor": {"workers": 1},
            "neutron": {"default_floating_pool": "public"},
        }

    def authtoken(self) -> dict[str, Any]:
        """Tokens are remembered in each process: our environment has no client of memcached."""
        section = authtoken(self.site, "nova", "compute")
        section.pop("memcached_servers", None)
        return section
