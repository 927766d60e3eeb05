"""memcached for profile full: tokens and catalogs."""

from __future__ import annotations

import os

from kilonova.cloud.daemons import Daemon, port_answers
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK


class Memcached(Service):
    name = "memcached"
    set_up_needs = ("packages",)

    def daemons(self) -> list[Daemon]:
        port = self.site.ports["memcached"]
        as_root = ["-u", "root"] if os.getuid() == 0 else []
        return [
            Daemon(self.name, ["memcached", "-l", LOOPBACK, "-p", port, "-m", "64", *as_root], ready=port_answers(port))
        ]
