"""Instance mappings: which cell an instance is in. `cell_id` is None while it is only a build request.

Rows carry the cell's uuid as `cell_uuid`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.api.tables import CELL_MAPPINGS, INSTANCE_MAPPINGS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_C = INSTANCE_MAPPINGS.c
_WITH_CELL = sa.select(INSTANCE_MAPPINGS, CELL_MAPPINGS.c.uuid.label("cell_uuid")).outerjoin_from(
    INSTANCE_MAPPINGS, CELL_MAPPINGS, _C.cell_id == CELL_MAPPINGS.c.id
)

_BY_UUID = _WITH_CELL.where(_C.instance_uuid == sa.bindparam("uuid"))


def instance_mapping_get(tx: Tx, instance_uuid: str) -> Row | None:
    found = query.rows(tx, _BY_UUID, {"uuid": instance_uuid})
    return found[0] if found else None


def instance_mapping_list(tx: Tx, instance_uuids: Iterable[str]) -> list[Row]:
    """The mappings of these instances, in no order."""
    parts = (query.rows(tx, _WITH_CELL.where(_C.instance_uuid.in_(part))) for part in query.slices(instance_uuids))
    return list(itertools.chain.from_iterable(parts))


def instance_mapping_list_by_project(
    tx: Tx, project_id: str, *, user_id: str | None = None, queued_for_delete: bool | None = None
) -> list[Row]:
    """The mappings of a project's instances."""
    statement = _WITH_CELL.where(_C.project_id == project_id)
    if user_id is not None:
        statement = statement.where(_C.user_id == user_id)
    if queued_for_delete is not None:
        statement = statement.where(_queued(queued_for_delete))
    return query.rows(tx, statement)


def instance_mapping_later_uuids(tx: Tx, project_id: str, instance_uuids: Iterable[str]) -> list[str]:
    """The instances of a project that were accepted after all of these; all of it where none of these is known."""
    newest = sa.select(sa.func.max(_C.id)).where(_C.instance_uuid.in_(list(instance_uuids)))
    after = tx.execute(newest).scalar() or 0
    statement = sa.select(_C.instance_uuid).where(_C.id > after, _C.project_id == project_id)
    return list(tx.execute(statement).scalars())


def instance_mapping_list_by_cell(tx: Tx, cell_id: int | None, *, limit: int | None = None) -> list[Row]:
    """The mappings to a cell (None: those that are in no cell yet)."""
    where = _C.cell_id.is_(None) if cell_id is None else _C.cell_id == cell_id
    return query.rows(tx, _WITH_CELL.where(where).order_by(_C.id).limit(limit))


def instance_mapping_list_in_down_cells(
    tx: Tx, cell_uuids: Iterable[str], *, project_id: str | None = None, limit: int | None = None
) -> list[Row]:
    """The instances of cells that do not answer, those queued for deletion left out."""
    statement = _WITH_CELL.where(CELL_MAPPINGS.c.uuid.in_(list(cell_uuids)), _queued(False)).order_by(_C.id)
    if project_id is not None:
        statement = statement.where(_C.project_id == project_id)
    return query.rows(tx, statement.limit(limit))


def instance_mapping_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new mapping: `instance_uuid`, `project_id`, `user_id`, `cell_id`. Raises DuplicateError."""
    return query.insert(tx, INSTANCE_MAPPINGS, {"queued_for_delete": False, **values})


def instance_mapping_create_many(tx: Tx, new: Iterable[Mapping[str, Any]]) -> None:
    """New mappings by one statement. Raises DuplicateError."""
    query.insert_many(tx, INSTANCE_MAPPINGS, [{"queued_for_delete": False, "cell_id": None, **one} for one in new])


def instance_mapping_update(tx: Tx, instance_uuid: str, values: Mapping[str, Any]) -> bool:
    """Whether there is such a mapping."""
    statement = INSTANCE_MAPPINGS.update().where(_C.instance_uuid == instance_uuid).values(**values)
    return tx.execute(statement).rowcount > 0


def instance_mapping_set_cell(tx: Tx, instance_uuid: str, cell_uuid: str) -> bool:
    """Put the instance into a cell; whether there is such a mapping."""
    cell = sa.select(CELL_MAPPINGS.c.id).where(CELL_MAPPINGS.c.uuid == cell_uuid).scalar_subquery()
    statement = INSTANCE_MAPPINGS.update().where(_C.instance_uuid == instance_uuid).values(cell_id=cell)
    return tx.execute(statement).rowcount > 0


def instance_mapping_delete(tx: Tx, instance_uuid: str) -> bool:
    """Whether there was such a mapping."""
    return tx.execute(INSTANCE_MAPPINGS.delete().where(_C.instance_uuid == instance_uuid)).rowcount > 0


def instance_mapping_delete_many(tx: Tx, instance_uuids: Iterable[str]) -> int:
    """Remove these; return how many there were."""
    return tx.execute(INSTANCE_MAPPINGS.delete().where(_C.instance_uuid.in_(list(instance_uuids)))).rowcount


def instance_mapping_delete_by_cell(tx: Tx, cell_id: int) -> int:
    """Remove every mapping to a cell; return how many."""
    return tx.execute(INSTANCE_MAPPINGS.delete().where(_C.cell_id == cell_id)).rowcount


def instance_mapping_count(tx: Tx, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """How many instances count against the quota of `project`, and of `user` within it if given."""
    alive = _queued(False)
    total = sa.select(sa.func.count()).select_from(INSTANCE_MAPPINGS).where(_C.project_id == project_id, alive)
    counted = {"project": tx.execute(total).scalar_one()}
    if user_id is not None:
        counted["user"] = tx.execute(total.where(_C.user_id == user_id)).scalar_one()
    return counted


def _queued(queued: bool) -> sa.ColumnElement[bool]:
    # Rows of before the column was filled have NULL there.
    if queued:
        return _C.queued_for_delete.is_(True)
    return sa.or_(_C.queued_for_delete.is_(False), _C.queued_for_delete.is_(None))
