"""Connections to a MySQL server by PyMySQL that share what is costly about TLS, and notice a silent peer.

PyMySQL offers TLS on every connection and, for that, reads all certificates of the system each time: 20 ms of CPU
time, many times what the rest of a connection takes. A pool under load makes and drops connections all the time.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Any

from pymysql.connections import Connection

from kilonova.db import silence

_LOCK = threading.Lock()
_CONTEXTS: dict[tuple[tuple[str, Any], ...], ssl.SSLContext] = {}


class SharingConnection(Connection):
    """A connection whose TLS context is that of all others with the same options."""

    def connect(self, sock: socket.socket | None = None) -> None:
        # The driver bounds only the way to the port; a server that hangs would not answer for ever.
        usual = getattr(self, "_read_timeout", None)
        self._read_timeout = self.connect_timeout
        super().connect(sock)
        self._read_timeout = usual
        if self._sock is not None and self._sock.family != socket.AF_UNIX:
            silence.bound(self._sock)

    def _create_ssl_ctx(self, sslp: ssl.SSLContext | Mapping[str, Any]) -> ssl.SSLContext:
        if isinstance(sslp, ssl.SSLContext):
            return sslp
        key = tuple(sorted(sslp.items()))
        with _LOCK:
            if key not in _CONTEXTS:
                _CONTEXTS[key] = super()._create_ssl_ctx(sslp) if sslp else _unverified()
            return _CONTEXTS[key]


def _unverified() -> ssl.SSLContext:
    """What PyMySQL makes where the URL says nothing of TLS, without reading the certificates that it does not ask."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def connect(*arguments: Any, **options: Any) -> SharingConnection:
    """A connection by the driver's arguments."""
    return SharingConnection(*arguments, **options)
