"""Cell mappings: the cells, with the URLs of their databases and buses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.api.tables import CELL_MAPPINGS, HOST_MAPPINGS, INSTANCE_MAPPINGS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

CELL0_UUID = "00000000-0000-0000-0000-000000000000"


def cell_mapping_list(tx: Tx, *, disabled: bool | None = None) -> list[Row]:
    """Every cell, cell0 included, by id; `disabled` narrows."""
    statement = sa.select(CELL_MAPPINGS).order_by(CELL_MAPPINGS.c.id)
    if disabled is not None:
        statement = statement.where(CELL_MAPPINGS.c.disabled == disabled)
    return query.rows(tx, statement)


def cell_mapping_uuids_of_project(tx: Tx, project_id: str) -> set[str]:
    """The cells in which a project has instances."""
    statement = (
        sa.select(CELL_MAPPINGS.c.uuid)
        .distinct()
        .join_from(INSTANCE_MAPPINGS, CELL_MAPPINGS, INSTANCE_MAPPINGS.c.cell_id == CELL_MAPPINGS.c.id)
        .where(INSTANCE_MAPPINGS.c.project_id == project_id)
    )
    return set(query.values(tx, statement))


def cell_mapping_get(tx: Tx, uuid: str) -> Row | None:
    return query.row(tx, sa.select(CELL_MAPPINGS).where(CELL_MAPPINGS.c.uuid == uuid))


def cell_mapping_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new cell. Raises DuplicateError."""
    return query.insert(tx, CELL_MAPPINGS, values)


def cell_mapping_update(tx: Tx, uuid: str, values: Mapping[str, Any]) -> bool:
    """Whether there is such a cell."""
    return tx.execute(CELL_MAPPINGS.update().where(CELL_MAPPINGS.c.uuid == uuid).values(**values)).rowcount > 0


def cell_mapping_delete(tx: Tx, uuid: str) -> bool:
    """Whether there was such a cell. Hosts and instances must be unmapped before."""
    return tx.execute(CELL_MAPPINGS.delete().where(CELL_MAPPINGS.c.uuid == uuid)).rowcount > 0


def cell_mapping_usage(tx: Tx, cell_id: int) -> tuple[int, int]:
    """How many hosts and how many instances are mapped to the cell."""
    hosts = sa.select(sa.func.count()).select_from(HOST_MAPPINGS).where(HOST_MAPPINGS.c.cell_id == cell_id)
    instances = sa.select(sa.func.count()).select_from(INSTANCE_MAPPINGS).where(INSTANCE_MAPPINGS.c.cell_id == cell_id)
    found = tx.execute(sa.select(hosts.scalar_subquery(), instances.scalar_subquery())).one()
    return found[0], found[1]
