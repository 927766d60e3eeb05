"""MariaDB for profile full, with its own data folder, socket and port."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from kilonova.cloud import ini
from kilonova.cloud.commands import run
from kilonova.cloud.daemons import Daemon, port_answers
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK

COMPUTE_DATABASES = ("nova_api", "nova_cell0", "nova_cell1", "nova_cell2")
DATABASES = ("keystone", "placement", "glance", "neutron", "cinder", *COMPUTE_DATABASES)


class Mariadb(Service):
    name = "mariadb"
    set_up_needs = ("packages",)

    @property
    def as_root(self) -> list[str]:
        return ["--user=root"] if os.getuid() == 0 else []

    def configure(self) -> None:
        ini.write(
            self.folder / "my.cnf",
            {
                "mysqld": {
                    "datadir": self.data,
                    "socket": self.site.run / "mysql.sock",
                    "pid-file": self.site.run / "mysqld-own.txt",
                    "bind-address": LOOPBACK,
                    "port": self.site.ports["mariadb"],
                    "max_connections": 1000,
                    "skip-name-resolve": 1,
                    "skip-log-bin": 1,
                    "performance_schema": "OFF",
                    "character-set-server": "utf8mb3",
                    "innodb_buffer_pool_size": "192M",
                    "innodb_log_file_size": "64M",
                    # A crash of the machine may cost the last second: this is no production database.
                    "innodb_flush_log_at_trx_commit": 0,
                    "innodb_doublewrite": 0,
                    "innodb_stats_persistent": 0,
                    "open_files_limit": 4096,
                }
            },
        )

    def set_up(self) -> None:
        if not (self.data / "mysql").is_dir():
            shutil.rmtree(self.data, ignore_errors=True)
            options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
            run(
                ["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", *options, *self.as_root],
                self.set_up_log,
            )
        for daemon in self.daemons():
            self.supervisor.start(daemon)
        secret = self.site.settings.password
        statements = [
            f"CREATE USER IF NOT EXISTS 'cloud'@'%' IDENTIFIED BY '{secret}'",
            "GRANT ALL ON *.* TO 'cloud'@'%'",
            *(created(name) for name in DATABASES),
        ]
        self.sql("; ".join(statements))

    def recreate(self, names: Sequence[str]) -> None:
        """Empty databases, whatever was in them and in the rooms that our own tables have beside them."""
        gone = [f"DROP DATABASE IF EXISTS {name}{room}" for name in names for room in ("", "_kilonova")]
        self.sql("; ".join([*gone, *map(created, names)]))

    def sql(self, statement: str) -> str:
        socket = f"--socket={self.site.run / 'mysql.sock'}"
        return run(["mariadb", "--no-defaults", "-uroot", socket, "-NBe", statement], self.set_up_log)

    def daemons(self) -> list[Daemon]:
        argv = ["mariadbd", f"--defaults-file={self.folder / 'my.cnf'}", *self.as_root]
        return [Daemon(self.name, argv, ready=port_answers(self.site.ports["mariadb"]), stop_within=60)]


def created(name: str) -> str:
    return f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb3"
