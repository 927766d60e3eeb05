"""Request specs: what was asked of the scheduler for each instance. `spec` is the JSON text of the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db import query
from kilonova.db.api.tables import REQUEST_SPECS
from kilonova.db.engine import Tx
from kilonova.db.query import Row

_C = REQUEST_SPECS.c


def request_spec_get(tx: Tx, instance_uuid: str) -> Row | None:
    return query.row(tx, sa.select(REQUEST_SPECS).where(_C.instance_uuid == instance_uuid))


_BY_UUIDS = sa.select(REQUEST_SPECS).where(_C.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))


def request_spec_list(tx: Tx, instance_uuids: Iterable[str]) -> list[Row]:
    """The specs of these instances, in no order."""
    return query.rows(tx, _BY_UUIDS, {"uuids": list(instance_uuids)})


def request_spec_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new spec. Raises DuplicateError."""
    return query.insert(tx, REQUEST_SPECS, values)


def request_spec_create_many(tx: Tx, new: Iterable[Mapping[str, Any]]) -> None:
    """New specs by one statement. Raises DuplicateError."""
    query.insert_many(tx, REQUEST_SPECS, list(new))


def request_spec_update(tx: Tx, instance_uuid: str, values: Mapping[str, Any]) -> bool:
    """Whether there is such a spec."""
    return tx.execute(REQUEST_SPECS.update().where(_C.instance_uuid == instance_uuid).values(**values)).rowcount > 0


def request_spec_delete(tx: Tx, instance_uuid: str) -> bool:
    """Whether there was such a spec."""
    return tx.execute(REQUEST_SPECS.delete().where(_C.instance_uuid == instance_uuid)).rowcount > 0


def request_spec_delete_many(tx: Tx, instance_uuids: Iterable[str]) -> int:
    """Remove these; return how many there were."""
    return tx.execute(REQUEST_SPECS.delete().where(_C.instance_uuid.in_(list(instance_uuids)))).rowcount
