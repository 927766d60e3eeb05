"""Developers only: Nova itself in our place, to tell a fault of the surroundings from one of ours."""

from __future__ import annotations

import shutil
from pathlib import Path

from kilonova.cloud import uwsgi
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.services.kilonova import Compute


class Peer(Compute):
    """The same configuration, the other program, one process per service."""

    manage_entry = "nova.cmd.manage:main"

    @property
    def bin(self) -> Path:
        assert self.site.peer is not None
        return self.site.peer / "bin"

    def database_url(self, name: str) -> str:
        return self.site.database(name)

    def configure(self) -> None:
        super().configure()
        assert self.site.peer is not None
        shutil.copy(self.site.peer / "etc" / "nova" / "api-paste.ini", self.folder)

    def apis(self) -> list[Daemon]:
        assert self.site.peer is not None
        daemons = []
        for name, module, port in (("nova-api", "osapi_compute", "compute"), ("nova-metadata", "metadata", "metadata")):
            files = f"api-paste.ini;nova.conf;{name}.conf"
            env = {"OS_NOVA_CONFIG_DIR": str(self.folder), "OS_NOVA_CONFIG_FILES": files}
            (self.folder / f"{name}.conf").write_text(f"[DEFAULT]\nlog_file = {self.site.log / name}.log\n")
            application = f"nova.wsgi.{module}:application"
            daemons.append(uwsgi.daemon(self.site, name, self.site.peer, application, self.site.ports[port], env))
        return daemons

    def says_ready(self, name: str) -> bool:
        """It says nothing of the kind."""
        return self.supervisor.pid(name) is not None
