"""Whether conductors of Nova's take from the same queue: they are asked on the bus, where each says what it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg

from kilonova.base import clock
from kilonova.contract import context, exceptions
from kilonova.db.cell import services
from kilonova.db.cells import LOST, Cell, CellDown, Cells
from kilonova.wire.rpc.clients import BaseClient
from kilonova.wire.rpc.endpoints import SERVICE_NAME
from kilonova.wire.rpc.errors import RpcError, RpcUnreachable

LOG = logging.getLogger(__name__)

BINARY = "nova-conductor"
TOPIC = "conductor"

REMEMBER = 5.0
"""Seconds for which an answer is good."""

LOOK_EVERY = 30.0
"""Seconds between two looks that nobody asks for; they tell whose conductor it is that is silent later."""

PING_TIMEOUT = 3.0

DATABASE_TIMEOUT = 10.0

IN_TURN = 4
"""Pings to one queue: its consumers take turns, and two services may use one host name."""


class Peers:
    """The conductors on this conductor's own bus, whatever their number, names and kinds.

    A service record is the same for both kinds, and stays when one replaces the other; an answer does not lie. A
    conductor that is silent although its record is fresh counts as Nova's unless it answered as ours before: it may be
    too busy to answer. So do those of a database that cannot be read and never was.
    """

    def __init__(self, conf: cfg.ConfigOpts, cells: Cells, bus: Any) -> None:
        self._conf = conf
        self._cells = cells
        self._bus = bus
        self._ours: set[str] = set()
        self._hosts: dict[str, set[str]] = {}
        """Cell -> conductors with a fresh record when its database last answered."""
        self._lock = threading.Lock()
        self._near = True
        self._asked_at: float | None = None

    def near(self, since: float | None = None) -> bool:
        """Whether one of Nova's is, or may be, there now, asked after `since` (monotonic) in any case.

        Takes up to some seconds when conductors are silent.
        """
        with self._lock:
            now = clock.monotonic()
            if self._asked_at is None or self._asked_at < max(since or 0.0, now - REMEMBER):
                found = self._look()
                if found != self._near or self._asked_at is None:
                    LOG.info("conductors of Nova's take from our queue: %s", "perhaps or surely" if found else "no")
                self._near, self._asked_at = found, now
            return self._near

    def _look(self) -> bool:
        try:
            return any(kind != SERVICE_NAME for kind in self._said(None)) or self._is_one_by_name()
        except (*LOST, RpcUnreachable) as exc:
            LOG.warning("whose conductors take from our queue could not be found out: %s", exc)
            return True

    def _is_one_by_name(self) -> bool:
        answers = self._cells.scatter(self._living, self._sharing(), DATABASE_TIMEOUT)
        self._hosts |= {cell: found for cell, found in answers.items() if not isinstance(found, CellDown)}
        if any(cell not in self._hosts for cell in answers):
            return True
        hosts = {host for cell in answers for host in self._hosts[cell]}
        self._ours &= hosts
        # Each is asked, also after one of Nova's is found: who is ours is remembered.
        return bool([host for host in sorted(hosts) if self._is_peer(host)])

    def _sharing(self) -> list[Cell]:
        """Cells in whose databases conductors of this bus report: that of the API level, and those on the same bus."""
        return [cell for cell in self._cells.all() if cell.is_cell0 or self._bus.at(cell.transport_url) is self._bus]

    def _living(self, cell: Cell) -> set[str]:
        found = cell.database.query(services.service_list, binary=BINARY)
        down_time = self._conf.service_down_time
        return {row["host"] for row in found if services.is_up({**row, "forced_down": False}, down_time)}

    def _is_peer(self, host: str) -> bool:
        kinds = set(self._said(host))
        if kinds == {SERVICE_NAME}:
            self._ours.add(host)
        elif kinds:
            self._ours.discard(host)
        return host not in self._ours

    def _said(self, host: str | None) -> Iterator[str]:
        """What the consumers of a host's queue, or of the common one, say they are, in turn, until one is silent."""
        client = BaseClient(self._bus, TOPIC)
        for number in range(IN_TURN):
            try:
                yield client.ping(context.admin(), number, timeout=PING_TIMEOUT, host=host)["service"]
            except RpcUnreachable:
                raise
            except (RpcError, exceptions.NovaException) as exc:
                LOG.debug("conductor %s does not answer: %s", host or "(any)", exc)
                return
