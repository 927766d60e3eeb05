"""How long is kept what is over: frames of ended flows, their history, turns that nobody takes any more.

It has nothing to do with repair: what is switched off there goes on here. Of many conductors one does it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from oslo_config import cfg

from kilonova.db import ended_flows, flows, group_hosts, turns
from kilonova.db.engine import Database
from kilonova.db.loops import LoopLeases

LOG = logging.getLogger(__name__)

EVERY: Final = 60.0
"""Seconds between two passes."""

NAME: Final = "ended_flows"
"""Of its lease, among those of the repair loops."""

TRANSACTIONS: Final = 20
"""Of one kind in one database and pass: what is more waits for the next pass, and nobody for long."""

_DAY_MS: Final = 86_400_000

Forget = Callable[[Any, int], int]


class Keeping:
    """`databases` are those that have flows; the first one has the lease and, with `turns`, the turns."""

    def __init__(
        self, conf: cfg.ConfigOpts, databases: Callable[[], list[Database]], first: Database, owner: str
    ) -> None:
        self._conf = conf
        self._databases = databases
        self._first = first
        self._leases = LoopLeases(first, owner)

    def run(self) -> None:
        """One pass. A database that is away keeps what it has until it is back."""
        if self._leases.take(NAME, 3 * EVERY) is None:
            return
        now, options = flows.now_ms(), self._conf.kilonova
        for database in self._databases():
            _all(database, ended_flows.flows_purge, now - options.flow_keep_days * _DAY_MS)
            _all(database, ended_flows.frames_cut, now - int(options.flow_keep_frames * 1000))
        _all(self._first, turns.turns_forget, now - _DAY_MS)
        # A build that is not at its end by then never comes to it.
        _all(self._first, group_hosts.group_hosts_forget, now - _DAY_MS - int(options.build_deadline * 1000))

    def stop(self) -> None:
        """Another process may go on at once."""
        try:
            self._leases.give_back(NAME)
        except Exception as exc:  # noqa: BLE001 - the database may be away; the lease ends by itself
            LOG.info("%s is left to others when its lease ends: %s", NAME, exc)


def _all(database: Database, forget: Forget, before_ms: int) -> None:
    try:
        for _ in range(TRANSACTIONS):
            if not database.run(forget, before_ms):
                return
    except Exception as exc:  # noqa: BLE001 - others must not wait for a database that is away
        LOG.warning("%s keeps what is over: %s", database.name, exc)
