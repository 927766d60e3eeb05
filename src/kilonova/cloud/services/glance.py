"""Glance: images in files."""

from __future__ import annotations

from pathlib import Path

from kilonova.cloud import ini, uwsgi
from kilonova.cloud.commands import run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.rest import Rest
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import authtoken

FOLDERS = ("images", "staging", "tasks", "cache")


class Glance(Service):
    name = "glance"
    data_needs = ("identity", "guest image")

    def configure(self) -> None:
        for folder in FOLDERS:
            (self.data / folder).mkdir(parents=True, exist_ok=True)
        ini.write(
            self.folder / "glance-api.conf",
            {
                "DEFAULT": {
                    "log_file": self.log,
                    "enabled_backends": "file:file",
                    "enabled_import_methods": "[glance-direct,web-download,copy-image]",
                    # It has nothing to say to anybody.
                    "transport_url": "fake://",
                    "worker_self_reference_url": self.site.url("glance"),
                    "image_cache_dir": self.data / "cache",
                    "node_staging_uri": f"file://{self.data / 'staging'}",
                },
                "database": self.database("glance"),
                "glance_store": {"default_backend": "file"},
                "file": {"filesystem_store_datadir": self.data / "images"},
                "os_glance_staging_store": {"filesystem_store_datadir": self.data / "staging"},
                "os_glance_tasks_store": {"filesystem_store_datadir": self.data / "tasks"},
                "keystone_authtoken": authtoken(self.site, "glance", "image"),
                "paste_deploy": {
                    "flavor": "keystone",
                    "config_file": self.venv / "etc" / "glance" / "glance-api-paste.ini",
                },
                "oslo_messaging_notifications": {"driver": "noop"},
                "oslo_concurrency": {"lock_path": self.site.data / "lock"},
            },
        )

    def set_up(self) -> None:
        manage = self.venv / "bin" / "glance-manage"
        run([manage, "--config-file", self.folder / "glance-api.conf", "db_sync"], self.set_up_log, self.foreign)

    def daemons(self) -> list[Daemon]:
        env = {"OS_GLANCE_CONFIG_DIR": str(self.folder)}
        port = self.site.ports["glance"]
        return [uwsgi.daemon(self.site, self.name, self.venv, "glance.wsgi.api:application", port, env, "/healthcheck")]

    def fill(self) -> None:
        """The guest image where guests are real; else an empty disk that a fake driver never reads."""
        if self.site.settings.driver == "libvirt":
            self.upload("guest", self.site.data / "image" / "guest.qcow2")
            return
        disk = self.data / "empty.qcow2"
        if not disk.exists():
            run(["qemu-img", "create", "-q", "-f", "qcow2", disk, "16M"])
        self.upload("guest", disk)

    def upload(self, name: str, disk: Path, **properties: str) -> str:
        """Register a public qcow2 image; returns its id."""
        admin = Rest(self.site)
        base = self.site.url("glance", "/v2/images")
        found = admin.find(base, "images", name)
        if found and found["status"] == "active":
            return str(found["id"])
        common = {"disk_format": "qcow2", "container_format": "bare", "visibility": "public"}
        image = found or admin.post(base, {"name": name, **common, **properties})
        admin.put(f"{base}/{image['id']}/file", disk.read_bytes())
        return str(image["id"])
