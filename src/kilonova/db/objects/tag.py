"""Tags of servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db import exact, query
from kilonova.db.cell.tables import TAGS


def read(tx: sa.Connection, uuids: Iterable[str]) -> dict[str, list[objects.Tag]]:
    """Tags by server, for all in one statement."""
    found: dict[str, list[objects.Tag]] = {}
    statement = sa.select(TAGS).where(TAGS.c.resource_id.in_(list(uuids))).order_by(TAGS.c.tag)
    for uuid, name in tx.execute(statement):
        one = objects.Tag(resource_id=uuid, tag=name)
        one.obj_reset_changes()
        found.setdefault(uuid, []).append(one)
    return found


def get_by_resource_id(tx: sa.Connection, ctxt: Any, resource_id: str) -> objects.TagList:
    return objects.TagList(objects=read(tx, [resource_id]).get(resource_id, []))


def create_one(tx: sa.Connection, ctxt: Any, tag: objects.Tag) -> None:
    put_all(tx, tag.resource_id, [*_names(tx, tag.resource_id), tag.tag])
    tag.obj_reset_changes()


def create(tx: sa.Connection, ctxt: Any, resource_id: str, tags: Iterable[str]) -> objects.TagList:
    """Make the server's tags exactly `tags`."""
    put_all(tx, resource_id, tags)
    return get_by_resource_id(tx, ctxt, resource_id)


def put_all(tx: sa.Connection, resource_id: str, tags: Iterable[str]) -> None:
    """Make the server's tags exactly these. Raises DuplicateError for two that MySQL does not tell apart."""
    wanted, present = set(tags), set(_names(tx, resource_id))
    query.no_clash(TAGS, sorted(wanted), ())
    if gone := present - wanted:
        named = exact.among(tx.dialect.name, TAGS.c.tag, gone)
        tx.execute(sa.delete(TAGS).where(TAGS.c.resource_id == resource_id, named))
    if new := wanted - present:
        query.insert_many(tx, TAGS, [{"resource_id": resource_id, "tag": name} for name in sorted(new)])


def destroy_all(tx: sa.Connection, ctxt: Any, resource_id: str) -> None:
    tx.execute(sa.delete(TAGS).where(TAGS.c.resource_id == resource_id))


def destroy(tx: sa.Connection, ctxt: Any, resource_id: str, name: str) -> None:
    """Raises InstanceTagNotFound."""
    done = tx.execute(sa.delete(TAGS).where(*_is(tx, resource_id, name)))
    if not done.rowcount:
        raise exceptions.InstanceTagNotFound(instance_id=resource_id, tag=name)


def exists(tx: sa.Connection, ctxt: Any, resource_id: str, name: str) -> bool:
    statement = sa.select(TAGS.c.tag).where(*_is(tx, resource_id, name))
    return tx.execute(statement).first() is not None


def _names(tx: sa.Connection, resource_id: str) -> list[str]:
    return list(tx.execute(sa.select(TAGS.c.tag).where(TAGS.c.resource_id == resource_id)).scalars())


def _is(tx: sa.Connection, resource_id: str, name: str) -> list[exact.Condition]:
    return [TAGS.c.resource_id == resource_id, exact.equal(tx.dialect.name, TAGS.c.tag, name)]
