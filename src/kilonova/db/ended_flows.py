"""Flows that have ended: for a while whole, then as history, then not at all."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.flow_tables import KN_FLOW, KN_FLOW_EVENT
from kilonova.flow.store import ENDED

F = KN_FLOW.c

AT_ONCE: Final = 500
"""Flows in one transaction."""

HISTORY: Final = ("answer", "attempt")
"""What of a frame is asked for later: what a request was answered, which try it was."""

_CUT: Final = -1
"""`wake_at` of an ended flow whose frame is cut: by the index on it (with the state) the others are found."""


def frames_cut(tx: Any, ended_before_ms: int, limit: int = AT_ONCE) -> int:
    """Leave only the history of flows that ended before a time; returns how many there were."""
    whole = sa.select(F.id, F.frame).where(
        F.state.in_([str(state) for state in ENDED]), F.wake_at > _CUT, F.ended_at < ended_before_ms
    )
    found = tx.execute(whole.limit(limit)).all()
    for flow_id, frame in found:
        known = msgspec.json.decode(frame)
        kept = query.json_text({name: known[name] for name in HISTORY if name in known})
        tx.execute(sa.update(KN_FLOW).where(F.id == flow_id).values(frame=kept, sealed=None, wake_at=_CUT))
    return len(found)


def flows_purge(tx: Any, ended_before_ms: int, limit: int = AT_ONCE) -> int:
    """Forget flows that ended before a time, with their logs; returns how many."""
    ids = list(tx.execute(sa.select(F.id).where(F.ended_at < ended_before_ms).limit(limit)).scalars())
    if ids:
        tx.execute(sa.delete(KN_FLOW_EVENT).where(KN_FLOW_EVENT.c.flow_id.in_(ids)))
        tx.execute(sa.delete(KN_FLOW).where(F.id.in_(ids)))
    return len(ids)
