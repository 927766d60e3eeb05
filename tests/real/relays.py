"""Ports that lead to a server: one that goes away at a word, and one that cuts connections at a COMMIT."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import sqlalchemy as sa

SILENT, GONE = "takes everything and answers nothing", "cuts connections and refuses new ones"
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


class Relay:
    """Passes everything on to a port of this machine, until `leave`; again after `come_back`."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._silent = threading.Event()
        self.port = 0
        self.come_back()

    def come_back(self) -> None:
        """Connections of before stay dead."""
        self._shut()
        self._silent = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, args=(self._listener, self._silent), daemon=True).start()

    def leave(self, how: str) -> None:
        self._silent.set()
        if how == GONE:
            self._shut()

    def close(self) -> None:
        self._silent.set()
        self._shut()

    def _shut(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, []
        listener = [self._listener] if self.port else []
        # What waits for an accept is woken by this alone.
        _shut(*listener, *ends, at_once=True)
        for end in (*listener, *ends):
            end.close()

    def _accept(self, listener: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with self._lock:
                    self._ends.append(client)
                if not silent.is_set():
                    server = socket.create_connection(("127.0.0.1", self._server))
                    with self._lock:
                        self._ends.append(server)
                    for way in ((client, server), (server, client)):
                        threading.Thread(target=_pass_on, args=(*way, silent), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, silent: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if not silent.is_set():
                target.sendall(data)
        if not silent.is_set():
            target.shutdown(socket.SHUT_WR)
