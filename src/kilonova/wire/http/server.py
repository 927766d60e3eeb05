"""The built-in WSGI server: waitress, in the foreground or inside a process with other services.

Why waitress: docs/decisions/0003-built-in-wsgi-server.md.
"""

import logging
import resource
import threading
import time
from typing import Any, Final

import msgspec
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from kilonova.base import clock
from kilonova.wire.http import faults
from kilonova.wire.http.connections import Limits, Refusal, Server

LOG = logging.getLogger(__name__)
_BACKLOG: Final = 1024
_IN_MEMORY: Final = 65536
"""Bytes of a body that are kept in memory; the rest goes into a file."""
_MORE_BODY: Final = 1 << 18
_LOOK_SECONDS: Final = 0.02


def fault(code: int, message: str) -> tuple[str, bytes]:
    """What is no request is answered like any error of the API."""
    return "application/json; charset=UTF-8", msgspec.json.encode(faults.document(code, message))


def plain(code: int, message: str) -> tuple[str, bytes]:
    """One line of text."""
    return "text/plain; charset=utf-8", f"{code}: {message}".encode()


class Service:
    """A server with a bounded pool of threads. Port 0 takes a free one, `port` says which after `start`."""

    def __init__(self, app: Any, host: str, port: int, threads: int, limits: Limits, refusal: Refusal) -> None:
        self._app, self._host, self._asked_port, self._threads = app, host, port, threads
        self._limits, self._refusal = limits, refusal
        self._dispatcher = ThreadedTaskDispatcher()
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None
        return int(self._server.effective_port)

    def start(self) -> None:
        """Listen, then serve from threads of its own. Raises OSError when the address is taken."""
        self._server = self._made()
        self._dispatcher.set_thread_count(self._threads)
        self._thread = threading.Thread(target=self._serve, args=(self._server,), name="http", daemon=True)
        self._thread.start()

    def _made(self) -> Server:
        limits = self._limits
        options = Adjustments(
            host=self._host,
            port=self._asked_port,
            threads=self._threads,
            backlog=_BACKLOG,
            # Ours go first: see Server.handle_accept.
            connection_limit=limits.connections + 100,
            cleanup_interval=1,
            max_request_header_size=limits.header,
            max_request_body_size=limits.body,
            inbuf_overflow=_IN_MEMORY,
            asyncore_use_poll=True,
            # Neutron's proxy tells in such a header for whom it asks; what may be believed the application decides.
            clear_untrusted_proxy_headers=False,
            log_socket_errors=False,
            ident=None,
            server_name=self._host,
        )
        return Server(self._app, limits, self._refusal, adj=options, dispatcher=self._dispatcher, map={})

    def _serve(self, server: Server) -> None:
        while not self._ended.is_set():
            wasyncore.loop(timeout=1, map=server._map, use_poll=True, count=1)

    def stop(self, timeout: float = 30.0) -> None:
        """Take no new requests, give running ones `timeout` seconds to finish."""
        server = self._server
        if server is None or self._thread is None or self._ended.is_set():
            return
        end = clock.monotonic() + timeout
        server.ending = True
        self._refuse(server)
        while any(connection.busy for connection in list(server.active_channels.values())):
            if clock.monotonic() > end:
                LOG.warning("requests did not end within %.0f seconds", timeout)
                break
            time.sleep(_LOOK_SECONDS)
        self._ended.set()
        server.pull_trigger()
        self._thread.join(5)
        self._dispatcher.shutdown(timeout=max(0.1, end - clock.monotonic()))
        for connection in list(server.active_channels.values()):
            connection.handle_close()
        if not self._dispatcher.threads:
            # A thread that still runs would write into whatever file has the number next.
            server.trigger.close()

    @staticmethod
    def _refuse(server: Server) -> None:
        """Listen no more, and part with who asks nothing; done by the thread of all connections."""
        done = threading.Event()

        def refuse() -> None:
            wasyncore.dispatcher.close(server)
            for connection in list(server.active_channels.values()):
                if not connection.busy:
                    connection.handle_close()
            done.set()

        server.trigger.pull_trigger(refuse)
        done.wait(5)

    def wait(self) -> None:
        """Return when the server has stopped."""
        if self._thread is not None:
            self._thread.join()


def serve(
    app: Any,
    host: str,
    port: int,
    threads: int,
    *,
    body: int = _IN_MEMORY,
    limits: Limits | None = None,
    refusal: Refusal = fault,
) -> Service:
    """A `Service`, not yet started, that answers on ``host:port`` with ``threads`` requests at a time.

    ``body`` is the largest one that the application takes. What is a little larger reaches it, for its own words.
    """
    granted = limits or Limits(body=body + _MORE_BODY, connections=_connections())
    return Service(app, host, port, threads, granted, refusal)


def _connections() -> int:
    """At most half of the files that the process may open are connections of clients."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1000 if soft == resource.RLIM_INFINITY else max(64, min(1000, soft // 2))
