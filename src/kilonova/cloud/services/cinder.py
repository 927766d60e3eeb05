"""Cinder: volumes on LVM where the machine has device-mapper, else in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kilonova.cloud import ini, lvm, ping, uwsgi
from kilonova.cloud.commands import run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.packages import foreign_path
from kilonova.cloud.probes import http_answers
from kilonova.cloud.rest import Rest
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK, authtoken, keystone_auth

VOLUME_TYPES: list[dict[str, Any]] = [
    {"name": "standard", "extra_specs": {"volume_backend_name": "standard"}},
    {"name": "multiattach", "extra_specs": {"volume_backend_name": "standard", "multiattach": "<is> True"}},
]


EXCHANGE = "openstack"
TOPICS = {"scheduler": ("cinder-scheduler", "cloud"), "volume": ("cinder-volume.cloud@standard", "cloud")}
"""Topic and server name of the agents on the bus."""


class Cinder(Service):
    name = "cinder"

    @property
    def conf(self) -> Path:
        return self.folder / "cinder.conf"

    def configure(self) -> None:
        for folder in ("volumes", "conversion", "coordination"):
            (self.data / folder).mkdir(parents=True, exist_ok=True)
        shared = self.venv / "etc" / "cinder"
        service = keystone_auth(self.site, "cinder")
        helper = {"helper_command": f"{self.venv / 'bin' / 'privsep-helper'} --config-file {self.conf}"}
        ini.write(
            self.conf,
            {
                "DEFAULT": {
                    "log_dir": self.site.log,
                    "transport_url": self.site.transport("cinder"),
                    "auth_strategy": "keystone",
                    "my_ip": LOOPBACK,
                    "host": "cloud",
                    "state_path": self.data,
                    "image_conversion_dir": self.data / "conversion",
                    "api_paste_config": shared / "api-paste.ini",
                    "resource_query_filters_file": shared / "resource_filters.json",
                    "rootwrap_config": shared / "rootwrap.conf",
                    "enabled_backends": "standard",
                    "default_volume_type": "standard",
                    "glance_api_servers": self.site.url("glance"),
                    "enable_force_upload": True,
                    "allow_availability_zone_fallback": True,
                    "storage_availability_zone": "nova",
                    "osapi_volume_listen": LOOPBACK,
                    "osapi_volume_listen_port": self.site.ports["cinder"],
                    "report_interval": 10,
                    "service_down_time": 60,
                    "rpc_ping_enabled": True,
                },
                "standard": {"volume_backend_name": "standard"} | self.backend(),
                "database": self.database("cinder"),
                "keystone_authtoken": authtoken(self.site, "cinder", "block-storage"),
                "service_user": service | {"send_service_user_token": True},
                "nova": service | {"interface": "public"},
                "cinder_sys_admin": helper,
                "privsep_osbrick": helper,
                "coordination": {"backend_url": f"file://{self.data / 'coordination'}"},
                "key_manager": {
                    "backend": "cinder.keymgr.conf_key_mgr.ConfKeyManager",
                    "fixed_key": self.site.derived("volume keys"),
                },
                "oslo_messaging_notifications": {"driver": "noop"},
                "oslo_concurrency": {"lock_path": self.site.data / "lock"},
            },
        )

    def backend(self) -> dict[str, Any]:
        group = lvm.volume_group(self.site)
        if group is None:
            kind = "gpfs" if self.site.settings.driver == "libvirt" else "local"
            return {"volume_driver": "kilonova_cinder.FileDriver", "kilonova_connection_type": kind}
        return {
            "volume_driver": "cinder.volume.drivers.lvm.LVMVolumeDriver",
            "volume_group": group,
            "target_helper": "lioadm",
            "target_protocol": "iscsi",
            "target_ip_address": LOOPBACK,
            "lvm_type": "thin",
        }

    def set_up(self) -> None:
        lvm.set_up(self.site, self.set_up_log)
        self.configure()
        manage = self.venv / "bin" / "cinder-manage"
        run([manage, "--config-file", self.conf, "db", "sync"], self.set_up_log, self.foreign)

    def daemons(self) -> list[Daemon]:
        ready = http_answers(self.site.url("cinder", "/"))
        if not self.site.bus:
            script = foreign_path() / "cinder_all.py"
            arguments = ["--config-file", self.conf, "--log-file", self.log]
            return [Daemon("cinder", [self.venv / "bin" / "python", script, *arguments], self.foreign, ready)]
        words = f"--config-file {self.conf} --log-file {self.site.log / 'cinder-api.log'}"
        port = self.site.ports["cinder"]
        api = uwsgi.daemon(self.site, "cinder-api", self.venv, "cinder.wsgi.api:application", port, arguments=words)
        return [api, self.agent("scheduler"), self.agent("volume")]

    def agent(self, kind: str) -> Daemon:
        name = f"cinder-{kind}"
        log = self.site.log / f"{name}.log"
        argv = [self.venv / "bin" / name, "--config-file", self.conf, "--log-file", log]
        topic, server = TOPICS[kind]
        asked = ping.oslo(self.site.transport("cinder"), EXCHANGE, topic, server)
        return Daemon(name, argv, self.foreign, asked=asked)

    def fill(self) -> None:
        admin = Rest(self.site)
        admin.login()
        base = self.site.url("cinder", f"/v3/{admin.project_id}/types")
        present = {item["name"] for item in admin.get(base)["volume_types"]}
        for kind in VOLUME_TYPES:
            if kind["name"] not in present:
                admin.post(base, {"volume_type": kind})
