"""Whether a compute host is alive, by its service record."""

from __future__ import annotations

import enum
from typing import Any

from kilonova.base import clock
from kilonova.contract.context import RequestContext
from kilonova.db.objects import service


class Life(enum.StrEnum):
    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"
    UNSURE = "unsure"


def life(tx: Any, ctxt: RequestContext, host: str, down_time: float, watched: float) -> Life:
    """UP: heard of within `down_time` seconds; UNKNOWN: no such service record (any more).

    UNSURE: not heard of, but hosts report through conductors, and this one listens only since `watched` seconds.
    """
    record = service.get_by_args(tx, ctxt, host, "nova-compute")
    if record is None:
        return Life.UNKNOWN
    if record.forced_down:
        return Life.DOWN
    seen = clock.aware(record.last_seen_up or record.updated_at or record.created_at)
    if seen is not None and abs((clock.now() - seen).total_seconds()) <= down_time:
        return Life.UP
    return Life.DOWN if watched > down_time else Life.UNSURE
