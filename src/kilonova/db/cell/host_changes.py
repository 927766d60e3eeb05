"""What the scheduler follows: compute services, compute nodes and where instances are."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.db import query
from kilonova.db.cell.tables import COMPUTE_NODES, INSTANCE_SYSTEM_METADATA, INSTANCES, SERVICES
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_SERVICE = (
    "host",
    "disabled",
    "disabled_reason",
    "forced_down",
    "last_seen_up",
    "created_at",
    "version",
    "deleted",
)


def host_changes(tx: Tx, since: datetime.datetime | None) -> tuple[list[Row], list[Row], list[Row]]:
    """(nova-compute services, compute nodes, instances): all that live, or what changed or went since a naive UTC time.

    Instances carry uuid, host and deleted only. Three statements.
    """
    services = query.rows(
        tx,
        sa.select(*query.columns(SERVICES, _SERVICE)).where(
            SERVICES.c.binary == "nova-compute", _touched(SERVICES, since)
        ),
    )
    nodes = query.rows(tx, sa.select(COMPUTE_NODES).where(_touched(COMPUTE_NODES, since)))
    placed = sa.select(INSTANCES.c.uuid, INSTANCES.c.host, INSTANCES.c.deleted)
    if since is None:
        placed = placed.where(INSTANCES.c.deleted == 0, INSTANCES.c.host.is_not(None))
    else:
        # Only updated_at has an index, and an instance gets its host, and goes, by updates.
        placed = placed.where(INSTANCES.c.updated_at >= clock.naive(since))
    return services, nodes, query.rows(tx, placed)


def _touched(table: sa.Table, since: datetime.datetime | None) -> sa.ColumnElement[bool]:
    if since is None:
        return table.c.deleted == 0
    when = clock.naive(since)
    return sa.or_(table.c.updated_at >= when, table.c.created_at >= when, table.c.deleted_at >= when)


def instance_places(tx: Tx, uuids: list[str]) -> list[query.Row]:
    """`uuid`, `host` and `vm_state` of those of these instances that live."""
    columns = (INSTANCES.c.uuid, INSTANCES.c.host, INSTANCES.c.vm_state)
    return query.rows(tx, sa.select(*columns).where(INSTANCES.c.uuid.in_(uuids), INSTANCES.c.deleted == 0))


def image_properties(tx: Tx, uuids: list[str]) -> dict[str, dict[str, str]]:
    """{uuid: the properties of the image it was made from} of living instances, from their system metadata."""
    table = INSTANCE_SYSTEM_METADATA
    statement = sa.select(table.c.instance_uuid, table.c.key, table.c.value).where(
        table.c.instance_uuid.in_(uuids), table.c.key.startswith("image_", autoescape=True), table.c.deleted == 0
    )
    found: dict[str, dict[str, str]] = {uuid: {} for uuid in uuids}
    for row in query.rows(tx, statement):
        found[row["instance_uuid"]][row["key"].removeprefix("image_")] = row["value"]
    return found
