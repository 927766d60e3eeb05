"""Private MariaDB and PostgreSQL servers for tests: own data, own sockets, own ports, stopped by their pids."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pymysql


def mariadb_found() -> bool:
    return bool(shutil.which("mariadbd") and shutil.which("mariadb-install-db"))


def postgresql_found() -> bool:
    return bool(_postgresql_programs())


class Mariadb:
    """A MariaDB server, which can be killed and started again; `url` is that of its user, without a database.

    What was committed outlives the process, as it does with the server's own defaults.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, _free_port()
        user = pwd.getpwuid(os.getuid()).pw_name
        self._base = ["--no-defaults", f"--datadir={folder}/data", f"--user={user}"]
        install = ["mariadb-install-db", *self._base, "--skip-test-db", "--auth-root-authentication-method=normal"]
        subprocess.run(install, check=True, capture_output=True, timeout=120)
        self.url = f"mysql+pymysql://k:k@127.0.0.1:{self._port}/"
        self.start()
        with pymysql.connect(unix_socket=f"{folder}/s", user="root") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER 'k'@'127.0.0.1' IDENTIFIED BY 'k'")
            cursor.execute("GRANT ALL ON *.* TO 'k'@'127.0.0.1' WITH GRANT OPTION")

    def start(self) -> None:
        command = [
            "mariadbd",
            *self._base,
            f"--socket={self._folder}/s",
            f"--pid-file={self._folder}/pid",
            f"--port={self._port}",
            "--bind-address=127.0.0.1",
            "--innodb-flush-log-at-trx-commit=2",
        ]
        with (self._folder / "log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for(self._port)
        except TimeoutError:
            _end(self.process)
            raise

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        _end(self.process)


@contextlib.contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """A MariaDB server; gives the URL of its user, without a database."""
    server = Mariadb(folder)
    try:
        yield server.url
    finally:
        server.stop()


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """A PostgreSQL server; gives the URL of its user, without a database. It will not run as root: then as postgres."""
    programs, port, data = _postgresql_programs(), _free_port(), folder / "data"
    owner = pwd.getpwnam("postgres") if os.getuid() == 0 else None
    folder.chmod(0o755)
    data.mkdir()
    if owner:
        os.chown(data, owner.pw_uid, owner.pw_gid)
    as_owner = {"user": owner.pw_uid, "group": owner.pw_gid} if owner else {}
    init = [f"{programs}/initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"]
    subprocess.run(init, check=True, capture_output=True, timeout=120, cwd="/", **as_owner)
    settings = ["-c", "fsync=off", "-c", f"unix_socket_directories={data}"]
    command = [f"{programs}/postgres", "-D", str(data), "-p", str(port), "-h", "127.0.0.1", *settings]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **as_owner)
        with _running(process):
            # It listens before it has started.
            ready = [f"{programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
            _wait_until(lambda: subprocess.run(ready, check=False).returncode == 0)
            yield f"postgresql+psycopg2://postgres@127.0.0.1:{port}/"


def _postgresql_programs() -> str | None:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return str(Path(found[-1]).parent) if found else None


@contextlib.contextmanager
def _running(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, seconds: float = 60) -> None:
    def listens() -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        return False

    _wait_until(listens, seconds)


def _wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"the server is not ready after {seconds} s")
        time.sleep(0.1)
