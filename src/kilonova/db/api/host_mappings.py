"""Host mappings: which cell a compute host is in. Rows carry the cell's uuid and name as `cell_uuid`, `cell_name`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable

import sqlalchemy as sa

from kilonova.db import exact, query
from kilonova.db.api.tables import CELL_MAPPINGS, HOST_MAPPINGS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_WITH_CELL = sa.select(
    HOST_MAPPINGS, CELL_MAPPINGS.c.uuid.label("cell_uuid"), CELL_MAPPINGS.c.name.label("cell_name")
).join_from(HOST_MAPPINGS, CELL_MAPPINGS, HOST_MAPPINGS.c.cell_id == CELL_MAPPINGS.c.id)


def host_mapping_get(tx: Tx, host: str) -> Row | None:
    return query.row(tx, _WITH_CELL.where(exact.equal(tx.dialect.name, HOST_MAPPINGS.c.host, host)))


def host_mapping_list(tx: Tx, *, cell_id: int | None = None, hosts: Iterable[str] | None = None) -> list[Row]:
    """Mapped hosts by id: of one cell, or of these names, or all."""
    statement = _WITH_CELL.order_by(HOST_MAPPINGS.c.id)
    if cell_id is not None:
        statement = statement.where(HOST_MAPPINGS.c.cell_id == cell_id)
    if hosts is None:
        return query.rows(tx, statement)
    parts = (query.rows(tx, statement.where(HOST_MAPPINGS.c.host.in_(part))) for part in query.slices(hosts))
    return sorted(itertools.chain.from_iterable(parts), key=operator.itemgetter("id"))


def host_mapping_create(tx: Tx, host: str, cell_id: int) -> Row:
    """Map a host. Raises DuplicateError when it is mapped already."""
    return query.insert(tx, HOST_MAPPINGS, {"host": host, "cell_id": cell_id})


def host_mapping_delete(tx: Tx, host: str) -> bool:
    """Whether the host was mapped."""
    return tx.execute(HOST_MAPPINGS.delete().where(HOST_MAPPINGS.c.host == host)).rowcount > 0


def host_mapping_delete_by_cell(tx: Tx, cell_id: int) -> int:
    """Unmap every host of a cell; return how many."""
    return tx.execute(HOST_MAPPINGS.delete().where(HOST_MAPPINGS.c.cell_id == cell_id)).rowcount
