"""The service record of a process with a database of its own, and the heartbeat that keeps it up."""

from __future__ import annotations

import logging
import threading

import sqlalchemy as sa

from kilonova.base import clock, ids, log
from kilonova.contract.objects import SERVICE_VERSION
from kilonova.db import query
from kilonova.db.away import is_away
from kilonova.db.cell.tables import SERVICES
from kilonova.db.engine import Database, Tx
from kilonova.db.outcomes import DuplicateError

LOG = logging.getLogger(__name__)


class Heartbeat:
    """Makes the record at `start()` and counts its reports every `interval` seconds (0 or less: never again)."""

    def __init__(self, database: Database, host: str, binary: str, topic: str, *, interval: float) -> None:
        self._database = database
        self._host = host
        self._binary = binary
        self._topic = topic
        self._interval = interval
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        try:
            self._database.run(service_announce, self._host, self._binary, self._topic)
        except DuplicateError:
            # Another process of the same name was faster; its record is ours.
            self._database.run(service_announce, self._host, self._binary, self._topic)
        if self._interval > 0:
            self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{self._binary}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(5)

    def _beat(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                if not self._database.run(service_beat, self._host, self._binary):
                    self._database.run(service_announce, self._host, self._binary, self._topic)
            except Exception as exc:  # noqa: BLE001 - it is told, and the next beat comes
                what = f"heartbeat of {self._binary} on {self._host} was not written"
                log.failed(LOG, what, exc, foreseen=is_away(exc))


def service_announce(tx: Tx, host: str, binary: str, topic: str) -> None:
    """The record of a service that starts, made or brought up to date. Raises DuplicateError in a race."""
    now = clock.naive_now()
    values = {"version": SERVICE_VERSION, "topic": topic, "last_seen_up": now, "updated_at": now}
    if not tx.execute(_living(host, binary).values(report_count=SERVICES.c.report_count + 1, **values)).rowcount:
        fresh = {"host": host, "binary": binary, "uuid": ids.new_uuid(), "report_count": 0, "disabled": False}
        query.insert(tx, SERVICES, fresh | values | {"forced_down": False})


def service_beat(tx: Tx, host: str, binary: str) -> bool:
    """One report; False when the record was removed."""
    now = clock.naive_now()
    values = {"report_count": SERVICES.c.report_count + 1, "last_seen_up": now, "updated_at": now}
    return tx.execute(_living(host, binary).values(**values)).rowcount > 0


def _living(host: str, binary: str) -> sa.Update:
    return SERVICES.update().where(SERVICES.c.host == host, SERVICES.c.binary == binary, SERVICES.c.deleted == 0)
