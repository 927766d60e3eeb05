"""A port that leads to a database server, and cuts a connection in the moment of a COMMIT."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import sqlalchemy as sa

BEFORE, AFTER = "before the server has it", "after the server did it"


class CommitRelay:
    """Passes everything on. `arm(when)`: the next COMMIT costs its connection, before or after the server got it."""

    def __init__(self, url: sa.URL) -> None:
        self.cuts = 0
        self._server = (url.host or "127.0.0.1", url.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.set(port=int(self._listener.getsockname()[1]))
        self._armed: str | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, when: str | None) -> None:
        with self._lock:
            self._armed = when

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                doomed = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, doomed), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server, doomed), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                when = self._struck(data)
                if when == BEFORE:
                    break
                if when == AFTER:
                    doomed.set()
                server.sendall(data)
        _shut(server, client, at_once=not doomed.is_set())

    def _answers(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if doomed.is_set():
                    break
                client.sendall(data)
        _shut(server, client, at_once=True)

    def _struck(self, data: bytes) -> str | None:
        if b"COMMIT" not in data:
            return None
        with self._lock:
            when, self._armed = self._armed, None
            self.cuts += when is not None
            return when


def _shut(*ends: socket.socket, at_once: bool) -> None:
    if at_once:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relayed(url: sa.URL) -> Iterator[CommitRelay]:
    relay = CommitRelay(url)
    try:
        yield relay
    finally:
        relay.close()
