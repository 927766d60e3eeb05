"""memcached for profile full: tokens and catalogs."""

from __future__ import annotations

import os

from kilonova.cloud import probes
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.services.service import Service


class Memcached(Service):
    name = "memcached"
    set_up_needs = ("packages",)

    def daemons(self) -> list[Daemon]:
        """On a socket of its owner's: a port would let everybody on the machine read and write."""
        socket = self.site.memcached
        as_root = ["-u", "root"] if os.getuid() == 0 else []
        argv = ["memcached", "-s", socket, "-a", "0600", "-m", "64", *as_root]
        return [Daemon(self.name, argv, ready=probes.memcached(socket))]
