"""RabbitMQ for profile full: one node on the loopback, known to nobody else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kilonova.cloud import probes
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK, write_atomically

VHOSTS = ("neutron", "cinder", "nova", "nova_cell1", "nova_cell2")


class Rabbitmq(Service):
    name = "rabbitmq"
    set_up_needs = ("packages",)

    def configure(self) -> None:
        settings = [
            "loopback_users = none",
            "vm_memory_high_watermark.relative = 0.2",
            "disk_free_limit.absolute = 50MB",
            "log.file.level = warning",
            f"load_definitions = {self.folder / 'definitions.json'}",
        ]
        write_atomically(self.folder / "rabbitmq.conf", "\n".join(settings) + "\n")
        # The node makes users and hosts itself when it boots: every call of rabbitmqctl starts an Erlang machine.
        write_atomically(self.folder / "definitions.json", json.dumps(definitions(self.passwords())))
        write_atomically(self.folder / "enabled_plugins", "[].\n")
        # "localhost" is found without asking DNS.
        write_atomically(self.folder / "inetrc", '{host,{127,0,0,1},["localhost"]}.\n{lookup,[file,native]}.\n')
        # Erlang makes its cookie of the time; who knows it is the node's master.
        write_atomically(self.data / ".erlang.cookie", self.site.password("erlang"), mode=0o400)

    def passwords(self) -> dict[str, str]:
        """By virtual host."""
        return {vhost: self.site.password(f"bus {vhost}") for vhost in VHOSTS}

    @property
    def environment(self) -> dict[str, str]:
        ports = self.site.ports
        quiet = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
        return {
            "HOME": str(self.data),
            "RABBITMQ_NODENAME": f"kilonova{self.site.settings.number}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(ports["rabbitmq"]),
            "RABBITMQ_DIST_PORT": str(ports["rabbitmq-dist"]),
            "RABBITMQ_MNESIA_BASE": str(self.data / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.site.log),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": quiet,
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(ports["epmd"]),
            "ERL_INETRC": str(self.folder / "inetrc"),
            "LC_ALL": "C.UTF-8",
        }

    def daemons(self) -> list[Daemon]:
        ports = self.site.ports
        mapper = ["epmd", "-address", LOOPBACK, "-port", ports["epmd"]]
        server = ["/usr/lib/rabbitmq/bin/rabbitmq-server"]
        return [
            Daemon("epmd", mapper, self.environment, probes.epmd(ports["epmd"])),
            Daemon(self.name, server, self.environment, probes.amqp(ports["rabbitmq"]), stop_within=60),
        ]


def definitions(passwords: Mapping[str, str]) -> dict[str, Any]:
    """Virtual hosts as RabbitMQ imports them, each with a user of its name who may enter no other."""
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": [
            {
                "name": vhost,
                "password_hash": hashed(password),
                "tags": [],
                "hashing_algorithm": "rabbit_password_hashing_sha256",
            }
            for vhost, password in passwords.items()
        ],
        "vhosts": [{"name": vhost} for vhost in passwords],
        "permissions": [{"user": vhost, "vhost": vhost, **everything} for vhost in passwords],
    }


def hashed(password: str) -> str:
    """A salt of 4 bytes, then SHA-256. The passwords are random: a salt has nothing to add."""
    salt = b"kn01"
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
