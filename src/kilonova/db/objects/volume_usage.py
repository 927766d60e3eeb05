"""How much a volume was used: counters of the present attachment, and totals of those before."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import objects
from kilonova.db.cell.tables import VOLUME_USAGE_CACHE as TABLE
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row

COUNTERS = ("reads", "read_bytes", "writes", "write_bytes")
OWNER = ("instance_uuid", "project_id", "user_id", "availability_zone")


def save(tx: sa.Connection, ctxt: Any, usage: objects.VolumeUsage, update_totals: bool = False) -> None:
    """Take over the counters of a volume that is attached; with `update_totals` the attachment ends.

    A guest that was restarted counts from zero: counters smaller than before mean that the old ones go to the totals.
    """
    counted = {name: getattr(usage, f"curr_{name}") for name in COUNTERS}
    values: dict[str, Any] = {name: getattr(usage, name) for name in OWNER}
    row = tx.execute(sa.select(TABLE).where(TABLE.c.volume_id == usage.volume_id)).mappings().first()
    known = _known(row)
    restarted = any(counted[name] < known[f"curr_{name}"] for name in COUNTERS)
    for name in COUNTERS:
        gained = (known[f"curr_{name}"] if restarted else 0) + (counted[name] if update_totals else 0)
        values[f"tot_{name}"] = known[f"tot_{name}"] + gained
        values[f"curr_{name}"] = 0 if update_totals else counted[name]
    values["tot_last_refreshed" if update_totals else "curr_last_refreshed"] = clock.naive_now()
    hydrate.fill(usage, _stored(tx, usage.volume_id, row, values))


def _known(row: Row | None) -> dict[str, int]:
    names = [f"{kind}_{name}" for kind in ("curr", "tot") for name in COUNTERS]
    return {name: (row[name] if row else 0) or 0 for name in names}


def _stored(tx: sa.Connection, volume_id: str, row: Row | None, values: dict[str, Any]) -> Row:
    if row is None:
        return hydrate.insert(tx, TABLE, {"volume_id": volume_id, **values})
    tx.execute(sa.update(TABLE).where(TABLE.c.id == row["id"]).values(**values))
    return tx.execute(sa.select(TABLE).where(TABLE.c.id == row["id"])).mappings().one()
