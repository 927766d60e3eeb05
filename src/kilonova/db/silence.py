"""A database that does not answer: its machine died, the network swallows what is sent, or the server hangs.

Without this a thread that waits for an answer waits for hours. Two things bound it. The connection's options notice a
machine that confirms nothing. A server that hangs on a machine that lives (it is stopped, its disk is stuck) is noticed
by nobody but a clock: one thread of the process cuts the connections on which an answer is overdue. What is known to
take long (a migration, an operator's command) is not watched.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.db.failures import DatabaseError, SilentError

SECONDS = 30
"""So long nothing may be confirmed before the connection counts as lost."""

IDLE_SECONDS, PROBE_SECONDS, PROBES = 10, 5, 4
"""When and how often a connection on which an answer is waited for is probed."""

CONNECT_SECONDS = 10
"""So long a server may take to make a connection, and so long again to answer what is asked before its first use."""

PING_SECONDS = 5.0
"""So long a connection may take to say that it is still there."""

READ_SECONDS = 30.0
"""So long an answer may take in a transaction that reads: with waiting for a connection, the minute that cells have."""

WRITE_SECONDS = 120.0
"""The same of one that writes: longer than servers let it wait for a lock."""

SOCKET = "kilonova_socket"
"""Where a pooled connection's `info` has a second handle of its socket, ours to cut: the driver's own may be closed by
it at any moment, and another connection's have its number."""


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
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": IDLE_SECONDS,
    "keepalives_interval": PROBE_SECONDS,
    "keepalives_count": PROBES,
    "tcp_user_timeout": SECONDS * 1000,
}
"""The same in the words of PostgreSQL's library."""


_WAIT = "kilonova_wait"

Connect = Callable[..., Any]
"""Makes a driver's connection of the driver's arguments."""


def keep_handles(engine: sa.Engine, connect: Connect) -> None:
    """Give every pooled connection its second handle, bound what is said on it before its first use, note answers."""

    @sa.event.listens_for(engine, "do_connect")
    def connecting(_dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        connection = connect(*arguments, **options)
        number = _number(connection)
        if number is not None:
            handle = record.info[SOCKET] = socket.socket(fileno=os.dup(number))
            wait = record.info[_WAIT] = Wait(handle, CONNECT_SECONDS)
            _WATCH.add(wait)
        return connection

    @sa.event.listens_for(engine, "checkout")
    def taken(_connection: Any, record: Any, _proxy: Any) -> None:
        wait = record.info.pop(_WAIT, None)
        if wait is not None:
            _WATCH.remove(wait)

    @sa.event.listens_for(engine, "close")
    def closed(_connection: Any, record: Any) -> None:
        handle = record.info.pop(SOCKET, None)
        if handle is not None:
            handle.close()

    @sa.event.listens_for(engine, "after_cursor_execute")
    def answered(connection: sa.Connection, *_: Any) -> None:
        wait = connection.info.get(_WAIT)
        if wait is not None:
            wait.answered()


def _number(connection: Any) -> int | None:
    """The file number of a driver's connection; None where the driver does not tell."""
    if hasattr(connection, "fileno"):
        return int(connection.fileno())
    own = getattr(connection, "_sock", None)
    return None if own is None else int(own.fileno())


def spoken(handle: socket.socket | None) -> bool:
    """Whether there is something to read on a connection that is at rest: mostly the word that it has ended."""
    if handle is None:
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))


class Wait:
    """A transaction that is waited for, so many seconds from its last answer on."""

    def __init__(self, handle: socket.socket, seconds: float) -> None:
        self.handle = handle
        self._seconds = seconds
        self.answered()

    def answered(self) -> None:
        self.until = clock.monotonic() + self._seconds


class Watch:
    """Cuts the connections of those whose time is over. Its thread is there while there is something to watch."""

    def __init__(self, every: float = 0.5) -> None:
        self._every = every
        self._lock = threading.Lock()
        self._waits: set[Wait] = set()
        self._thread: threading.Thread | None = None

    def add(self, wait: Wait) -> None:
        with self._lock:
            self._waits.add(wait)
            # A process that was forked has the threads of the first one by name only.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="database-watch", daemon=True)
                self._thread.start()

    def remove(self, wait: Wait) -> bool:
        """Whether it was in time."""
        with self._lock:
            in_time = wait in self._waits
            self._waits.discard(wait)
            return in_time

    def _look(self) -> None:
        while True:
            time.sleep(self._every)
            with self._lock:
                if not self._waits:
                    self._thread = None
                    return
                now = clock.monotonic()
                for wait in [one for one in self._waits if one.until <= now]:
                    self._waits.discard(wait)
                    with contextlib.suppress(OSError):  # it has ended by itself
                        wait.handle.shutdown(socket.SHUT_RDWR)


_WATCH = Watch()


@contextlib.contextmanager
def bounded(info: dict[Any, Any], seconds: float) -> Iterator[None]:
    """Cut the connection that has this `info` when the block waits longer for an answer. Raises SilentError then."""
    handle = info.get(SOCKET)
    if handle is None:
        yield
        return
    wait = info[_WAIT] = Wait(handle, seconds)
    _WATCH.add(wait)
    try:
        yield
    except DatabaseError as exc:
        if _WATCH.remove(wait):
            raise
        late = TimeoutError(f"no answer within {seconds:g} s")
        raise SilentError(None, None, late, connection_invalidated=True) from exc
    finally:
        _WATCH.remove(wait)
        info.pop(_WAIT, None)
