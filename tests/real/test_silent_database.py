"""A database that swallows what is sent to it: who waits for its answer learns in bounded time that there is none.

The network is a relay on a port of its own, whose packets the kernel drops at some moment; needs root and iptables.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.needs import needs
from tests.real.database_fixtures import database_server

from kilonova.base import clock
from kilonova.db import silence
from kilonova.db.engine import Database, Tx
from kilonova.db.failures import is_disconnect

__all__ = ["database_server"]

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(300),
    needs("root", "iptables"),
]


class Relay:
    """A port that leads to a server, until `swallow`."""

    def __init__(self, url: sa.URL) -> None:
        self._server = (url.host or "127.0.0.1", url.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._rules: list[list[str]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        for side in ("--dport", "--sport"):
            rule = ["OUTPUT", "-o", "lo", "-p", "tcp", side, str(self.port), "-j", "DROP"]
            subprocess.run(["iptables", "-w", "10", "-I", *rule], check=True)
            self._rules.append(rule)

    def close(self) -> None:
        for rule in self._rules:
            subprocess.run(["iptables", "-w", "10", "-D", *rule], check=True)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relayed(database_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Database, Relay]]:
    for options, name, value in (
        (silence._OPTIONS, "TCP_KEEPIDLE", 1),
        (silence._OPTIONS, "TCP_KEEPINTVL", 1),
        (silence._OPTIONS, "TCP_USER_TIMEOUT", 3000),
        (silence.LIBPQ, "keepalives_idle", 1),
        (silence.LIBPQ, "keepalives_interval", 1),
        (silence.LIBPQ, "tcp_user_timeout", 3000),
        (silence.LIBPQ, "connect_timeout", 3),
    ):
        monkeypatch.setitem(options, name, value)
    url = sa.make_url(database_server.rstrip("/") + ("/mysql" if "mysql" in database_server else "/postgres"))
    relay = Relay(url)
    reached = url.set(port=relay.port)
    if "mysql" in url.drivername:
        reached = reached.update_query_dict({"connect_timeout": "3"})
    database = Database(reached.render_as_string(hide_password=False), db_max_retries=0)
    try:
        yield database, relay
    finally:
        relay.close()
        database.dispose()


def _answer(tx: Tx) -> int:
    return int(tx.execute(sa.text("SELECT 42")).scalar_one())


def test_who_asks_is_told_that_there_is_no_answer(relayed: tuple[Database, Relay]) -> None:
    database, relay = relayed
    assert database.query(_answer) == 42
    relay.swallow()
    began = clock.monotonic()
    with pytest.raises(sa.exc.DBAPIError) as lost:
        database.query(_answer)
    assert is_disconnect(lost.value)
    assert clock.monotonic() - began < 60


def test_who_waits_for_an_answer_when_it_falls_silent_is_told(relayed: tuple[Database, Relay]) -> None:
    database, relay = relayed
    sleep = "SELECT SLEEP(120)" if database.dialect == "mysql" else "SELECT pg_sleep(120)"
    threading.Timer(1.0, relay.swallow).start()
    began = clock.monotonic()
    with pytest.raises(sa.exc.DBAPIError):
        database.query(lambda tx: tx.exec_driver_sql(sleep))
    assert 1 < clock.monotonic() - began < 60


def test_a_statement_that_takes_long_is_no_silence(relayed: tuple[Database, Relay]) -> None:
    database, _ = relayed
    sleep = "SELECT SLEEP(6)" if database.dialect == "mysql" else "SELECT pg_sleep(6)"
    database.query(lambda tx: tx.exec_driver_sql(sleep).all())
