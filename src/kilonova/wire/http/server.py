"""The built-in WSGI server: cheroot on native threads, in the foreground or inside a process with other services.

Why cheroot: docs/decisions/0003-built-in-wsgi-server.md.
"""

import logging
import threading
from typing import Any, Final

from cheroot import wsgi
from cheroot.ssl.builtin import BuiltinSSLAdapter

LOG = logging.getLogger(__name__)
_BACKLOG: Final = 512


class _Server(wsgi.Server):
    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        LOG.log(level or logging.INFO, msg, exc_info=traceback)


class Service:
    """A server with a bounded pool of threads. Port 0 takes a free one, `port` says which after `start`."""

    def __init__(self, server: wsgi.Server) -> None:
        self._server = server
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        bound: Any = self._server.bind_addr
        return int(bound[1])

    def start(self) -> None:
        """Listen, then serve from a thread of its own. Raises OSError when the address is taken."""
        self._server.prepare()
        self._thread = threading.Thread(target=self._server.serve, name="wsgi-accept", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 30.0) -> None:
        """Take no new requests, give running ones `timeout` seconds to finish."""
        self._server.shutdown_timeout = timeout
        self._server.stop()
        if self._thread is not None:
            self._thread.join(timeout + 5)

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
    certificate: str | None = None,
    key: str | None = None,
) -> Service:
    """A `Service`, not yet started, that answers on ``host:port`` with ``threads`` requests at a time."""
    server = _Server(
        (host, port),
        app,
        numthreads=threads,
        request_queue_size=_BACKLOG,
        server_name=host,
        timeout=60,
    )
    if certificate and key:
        server.ssl_adapter = BuiltinSSLAdapter(certificate, key)
    return Service(server)
