"""Placement: inventories and allocations."""

from __future__ import annotations

from kilonova.cloud import ini, uwsgi
from kilonova.cloud.commands import run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import authtoken


class Placement(Service):
    name = "placement"

    def configure(self) -> None:
        ini.write(
            self.folder / "placement.conf",
            {
                "DEFAULT": {"log_file": self.log},
                "placement_database": self.database("placement") | {"sync_on_startup": False},
                "api": {"auth_strategy": "keystone"},
                "keystone_authtoken": authtoken(self.site, "placement", "placement"),
            },
        )

    def set_up(self) -> None:
        manage = self.venv / "bin" / "placement-manage"
        run([manage, "--config-file", self.folder / "placement.conf", "db", "sync"], self.set_up_log, self.foreign)

    def daemons(self) -> list[Daemon]:
        env = {"OS_PLACEMENT_CONFIG_DIR": str(self.folder)}
        port = self.site.ports["placement"]
        return [uwsgi.daemon(self.site, self.name, self.venv, "placement.wsgi.api:application", port, env)]
