"""A database server that is gone without a word: its machine died, or the network swallows what is sent.

Without this a thread that waits for an answer waits for hours. A statement that takes long is no silence: the server's
machine still confirms what it gets, and a probe of the connection.
"""

from __future__ import annotations

import socket
from typing import Any

SECONDS = 30
"""So long nothing may be confirmed before the connection counts as lost."""

IDLE_SECONDS, PROBE_SECONDS, PROBES = 10, 5, 4
"""When and how often a connection on which an answer is waited for is probed."""


def bound(connected: socket.socket) -> None:
    """Bound the silence on a socket; where the system has no such option, it has its own bounds."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


_OPTIONS = {
    "TCP_KEEPIDLE": IDLE_SECONDS,
    "TCP_KEEPINTVL": PROBE_SECONDS,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": SECONDS * 1000,
}

LIBPQ: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": IDLE_SECONDS,
    "keepalives_interval": PROBE_SECONDS,
    "keepalives_count": PROBES,
    "tcp_user_timeout": SECONDS * 1000,
}
"""The same in the words of PostgreSQL's library."""
