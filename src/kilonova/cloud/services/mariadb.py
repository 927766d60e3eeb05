"""MariaDB for profile full, with its own data folder, socket and port.

It runs as its own user, who cannot reach into the closed state folder: the daemon sees its folder through a mount of
its own, at the place where its package keeps data. A cloud that does not belong to root is its owner's throughout.
"""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from kilonova.cloud import ini
from kilonova.cloud.commands import ok, run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.errors import CloudError
from kilonova.cloud.probes import PATIENCE
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import LOOPBACK

COMPUTE_DATABASES = ("nova_api", "nova_cell0", "nova_cell1", "nova_cell2")
DATABASES = ("keystone", "placement", "glance", "neutron", "cinder", *COMPUTE_DATABASES)
USER = "mysql"
HOME = Path("/var/lib/mysql")
"""What the daemon sees of its folder is here."""

FOLDERS = ("data", "run", "tmp", "files")
PRIVATE_MOUNT = ("unshare", "--mount", "--propagation", "private")


class Mariadb(Service):
    name = "mariadb"
    set_up_needs = ("packages",)

    @property
    def user(self) -> str | None:
        """Whose the processes are; None where they are their starter's."""
        return USER if os.getuid() == 0 else None

    @property
    def home(self) -> Path:
        """The folder as the daemon sees it."""
        return HOME if self.user else self.data

    @property
    def socket(self) -> Path:
        return self.data / "run" / "mysql.sock"

    def configure(self) -> None:
        for folder in FOLDERS:
            (self.data / folder).mkdir(parents=True, exist_ok=True)
        for path in (self.data, *(self.data / folder for folder in FOLDERS)):
            path.chmod(0o700)
            if self.user:
                shutil.chown(path, self.user, self.user)
        ini.write(
            self.folder / "my.cnf",
            {
                "mysqld": {
                    "user": self.user,
                    "datadir": self.home / "data",
                    "socket": self.home / "run" / "mysql.sock",
                    "pid-file": self.home / "run" / "pid",
                    "tmpdir": self.home / "tmp",
                    # No statement reads or writes a file anywhere else, and none may read one of a client.
                    "secure-file-priv": self.home / "files",
                    "local-infile": 0,
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

    def seeing_home(self, *words: object) -> list[object]:
        """The command as its user's, with the folder where it expects it."""
        if not self.user:
            return list(words)
        if not ok([*PRIVATE_MOUNT, "true"]):
            raise CloudError(
                "MariaDB needs a mount of its own, which this machine forbids to root; start as another user"
            )
        mount = f"mkdir -p {HOME} && mount --bind {shlex.quote(str(self.data))} {HOME}"
        return [*PRIVATE_MOUNT, "sh", "-c", f"{mount} && exec {shlex.join(map(str, words))}"]

    def set_up(self) -> None:
        """Tables of the server, then accounts. Its administrator is who owns the cloud, known by the socket alone."""
        if not (self.data / "data" / "mysql").is_dir():
            options = ["--auth-root-authentication-method=socket", f"--auth-root-socket-user={getpass.getuser()}"]
            options += ["--skip-test-db", "--skip-name-resolve", *([f"--user={self.user}"] if self.user else [])]
            install = ["mariadb-install-db", "--no-defaults", f"--datadir={self.home / 'data'}", *options]
            run(self.seeing_home(*install), self.set_up_log)
        for daemon in self.daemons():
            self.supervisor.start(daemon)
        self.sql("; ".join(statement for name in DATABASES for statement in self.account(name)))

    def account(self, name: str) -> list[str]:
        """A database and its one user, who may nothing else: not in other databases, and with no file."""
        user = f"'{name}'@'{LOOPBACK}'"
        secret = self.site.password(f"database {name}")
        pattern = name.replace("_", "\\_")
        # Our own tables beside Nova's are in a room of that name.
        rooms = [pattern, f"{pattern}\\_kilonova"] if name in COMPUTE_DATABASES else [pattern]
        return [
            created(name),
            f"CREATE OR REPLACE USER {user} IDENTIFIED BY '{secret}'",
            *(f"GRANT ALL ON `{room}`.* TO {user}" for room in rooms),
        ]

    def recreate(self, names: Sequence[str]) -> None:
        """Empty databases, whatever was in them and in the rooms that our own tables have beside them."""
        gone = [f"DROP DATABASE IF EXISTS {name}{room}" for name in names for room in ("", "_kilonova")]
        self.sql("; ".join([*gone, *map(created, names)]))

    def sql(self, statement: str) -> str:
        return run([*self.client("mariadb"), "-NB"], self.set_up_log, said=statement)

    def client(self, program: str) -> list[str]:
        return [program, "--no-defaults", f"-u{getpass.getuser()}", f"--socket={self.socket}"]

    def answers(self) -> bool:
        return ok([*self.client("mariadb-admin"), "ping"], timeout=PATIENCE)

    def daemons(self) -> list[Daemon]:
        argv = self.seeing_home("mariadbd", f"--defaults-file={self.folder / 'my.cnf'}")
        return [Daemon(self.name, argv, ready=self.answers, stop_within=60)]


def created(name: str) -> str:
    return f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb3"
