"""What the built-in server grants a connection: sizes, times, and a framing that cannot be read in two ways.

A connection takes a thread only when a whole request has arrived, so silent and slow clients cost memory alone. That is
bounded: too much of a header is answered 431, too much of a body 413, one that comes too slowly 408. Where there is
no room for another connection, the one goes that has kept us waiting longest.
"""

from __future__ import annotations

import dataclasses
import logging
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask
from waitress.utilities import BadRequest

LOG = logging.getLogger(__name__)

Refusal = Callable[[int, str], tuple[str, bytes]]
"""Content type and body of an answer that the application is not asked for, by status and text."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """In bytes, seconds and connections."""

    header: int = 65536
    body: int = 1 << 20
    header_seconds: float = 20.0
    body_seconds: float = 60.0
    """From the first byte of a request on, its header included."""
    idle_seconds: float = 75.0
    """Between requests."""
    connections: int = 1000


_MOST_LENGTH_DIGITS: Final = 18
_ONCE: Final = ("HOST", "CONTENT_LENGTH", "TRANSFER_ENCODING", "CONTENT_TYPE")


class Parser(HTTPRequestParser):
    """Refuses what servers and proxies on the way understand differently, which is how requests are smuggled."""

    def parse_header(self, header_plus: bytes) -> None:
        """Raises ParsingError."""
        try:
            super().parse_header(_checked(header_plus))
        except ValueError as error:
            raise ParsingError("The request line is invalid.") from error


def _checked(head: bytes) -> bytes:
    """The header, which must say in one way how long the body is. Raises ParsingError."""
    first, *lines = head.split(b"\r\n")
    if any(line.startswith((b" ", b"\t")) for line in lines):
        raise ParsingError("A header is one line.")
    named = [line.partition(b":") for line in lines if line]
    found: dict[str, bytes] = {}
    for key, _, value in named:
        name = key.decode("latin-1").upper().replace("-", "_")
        if name in _ONCE and name in found:
            raise ParsingError(f"The header {key.decode('latin-1')} is there twice.")
        found[name] = value.strip(b" \t")
    if "TRANSFER_ENCODING" in found:
        if "CONTENT_LENGTH" in found:
            raise ParsingError("A request has either Content-Length or Transfer-Encoding.")
        if not first.endswith(b" HTTP/1.1"):
            raise ParsingError("Transfer-Encoding needs HTTP/1.1.")
        if b"," in found["TRANSFER_ENCODING"]:
            raise ParsingError("A request has one Transfer-Encoding.")
    if len(found.get("CONTENT_LENGTH", b"")) > _MOST_LENGTH_DIGITS:
        raise ParsingError("Content-Length is too large.")
    return head


class TooSlow(BadRequest):
    """A request that did not arrive in time."""

    code = 408
    reason = "Request Timeout"


class Refused(ErrorTask):
    """The answer to what is no request, in the form of the application's errors."""

    def execute(self) -> None:
        error = self.request.error
        LOG.info("%s: refused with %s: %s", self.channel.addr[0], error.code, error.body)
        kind, body = self.channel.server.refusal(error.code, str(error.body))
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", kind))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Connection(HTTPChannel):
    """One client's connection, which has its times."""

    parser_class = Parser
    error_task_class = Refused
    request: Any = None
    will_close: bool = False
    close_when_flushed: bool = False

    def __init__(self, server: Server, sock: socket.socket, addr: Any, adj: Any, map: Any = None) -> None:
        self.waiting_since = time.monotonic()
        """When we began to wait for a request."""
        self._first_byte: float | None = None
        super().__init__(server, sock, addr, adj, map=map)

    @property
    def busy(self) -> bool:
        """Whether a request of it is carried out, or its answer on the way."""
        return bool(self.requests or self.total_outbufs_len)

    def received(self, data: bytes) -> Any:
        """Data came."""
        before = self.request
        if before is None:
            self._first_byte = time.monotonic()
        taken = super().received(data)
        if self.request is not before and self.request is not None and before is not None:
            # The rest of what came is the beginning of another request.
            self._first_byte = time.monotonic()
        return taken

    def service(self) -> None:
        """Carry out a request, in a thread of the pool."""
        super().service()
        self.waiting_since = time.monotonic()
        if self.server.ending:
            self.close_when_flushed = True

    def judge(self, limits: Limits) -> None:
        """Part with a client that takes too long; called once a second from the thread of all connections."""
        now = time.monotonic()
        if self.requests:
            return
        if self.total_outbufs_len:
            # The client does not take its answer.
            self.will_close = self.will_close or time.time() - self.last_activity > limits.idle_seconds
            return
        if self.request is None or self._first_byte is None:
            self.will_close = self.will_close or now - self.waiting_since > limits.idle_seconds
            return
        most = limits.body_seconds if self.request.headers_finished else limits.header_seconds
        if now - self._first_byte > most:
            self._too_slow(most)

    def _too_slow(self, seconds: float) -> None:
        with self.requests_lock:
            if self.requests or self.request is None:
                return
            late = self.parser_class(self.adj)
            late.parse_header(b"GET / HTTP/1.0\r\n")
            late.error = TooSlow(f"The request did not arrive within {seconds:.0f} seconds.")
            late.completed = True
            self.request.close()
            self.request = None
            self.requests.append(late)
        self.server.add_task(self)


class Server(TcpWSGIServer):
    """Listens, and keeps the connections."""

    channel_class = Connection

    def __init__(self, application: Any, limits: Limits, refusal: Refusal, **options: Any) -> None:
        self.limits = limits
        self.refusal = refusal
        self.ending = False
        super().__init__(application, **options)

    def maintenance(self, now: float) -> None:
        """See BaseWSGIServer."""
        for connection in list(self.active_channels.values()):
            connection.judge(self.limits)

    def handle_accept(self) -> None:
        """See BaseWSGIServer."""
        super().handle_accept()
        if len(self.active_channels) > self.limits.connections:
            idle = [connection for connection in self.active_channels.values() if not connection.busy]
            if idle:
                min(idle, key=lambda connection: connection.waiting_since).handle_close()
