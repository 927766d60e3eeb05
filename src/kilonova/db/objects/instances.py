"""Lists of instances for services."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db import failures, sorting
from kilonova.db.cell.tables import INSTANCES as TABLE
from kilonova.db.objects import hydrate, instance
from kilonova.db.objects.hydrate import Row
from kilonova.db.query import AT_ONCE, changed_before, changed_since, slices


def _list(tx: sa.Connection, rows: list[Row], expected: Collection[str] | None) -> objects.InstanceList:
    wanted = instance.DEFAULT if expected is None else expected
    return objects.InstanceList(objects=instance.load_many(tx, rows, wanted))


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    return list(tx.execute(hydrate.select_alive(TABLE, *conditions).order_by(TABLE.c.id)).mappings())


def get_by_uuid(
    tx: sa.Connection, ctxt: Any, uuid: str, expected_attrs: Collection[str] | None = None, use_slave: bool = False
) -> objects.Instance:
    """Raises InstanceNotFound."""
    expected = ("info_cache",) if expected_attrs is None else expected_attrs
    return instance.load(tx, uuid, expected, read_deleted=ctxt.read_deleted != "no")


def get_by_id(
    tx: sa.Connection, ctxt: Any, inst_id: int, expected_attrs: Collection[str] | None = None
) -> objects.Instance:
    """Raises InstanceNotFound."""
    rows = _rows(tx, TABLE.c.id == inst_id)
    if not rows:
        raise exceptions.InstanceNotFound(instance_id=inst_id)
    return instance.load_many(tx, rows, ("info_cache",) if expected_attrs is None else expected_attrs)[0]


def get_by_host(
    tx: sa.Connection, ctxt: Any, host: str, expected_attrs: Collection[str] | None = None, use_slave: bool = False
) -> objects.InstanceList:
    return _list(tx, _rows(tx, TABLE.c.host == host), expected_attrs)


def get_by_host_and_node(
    tx: sa.Connection, ctxt: Any, host: str, node: str, expected_attrs: Collection[str] | None = None
) -> objects.InstanceList:
    return _list(tx, _rows(tx, TABLE.c.host == host, TABLE.c.node == node), expected_attrs)


def get_by_host_and_not_type(
    tx: sa.Connection, ctxt: Any, host: str, type_id: int | None = None, expected_attrs: Collection[str] | None = None
) -> objects.InstanceList:
    return _list(tx, _rows(tx, TABLE.c.host == host, TABLE.c.instance_type_id != type_id), expected_attrs)


def get_all(tx: sa.Connection, ctxt: Any, expected_attrs: Collection[str] | None = None) -> objects.InstanceList:
    return _list(tx, _rows(tx), expected_attrs)


def get_hung_in_rebooting(
    tx: sa.Connection, ctxt: Any, reboot_window: int, expected_attrs: Collection[str] | None = None
) -> objects.InstanceList:
    before = clock.naive_now() - datetime.timedelta(seconds=reboot_window)
    rows = _rows(
        tx, TABLE.c.task_state.in_(("rebooting", "reboot_started", "reboot_pending")), changed_before(TABLE, before)
    )
    return _list(tx, rows, expected_attrs)


def _uuids(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[str]:
    return list(tx.execute(sa.select(TABLE.c.uuid).where(TABLE.c.deleted == 0, *conditions)).scalars())


def get_uuids_by_host(tx: sa.Connection, ctxt: Any, host: str) -> list[str]:
    return _uuids(tx, TABLE.c.host == host)


def get_uuids_by_host_and_node(tx: sa.Connection, ctxt: Any, host: str, node: str) -> list[str]:
    return _uuids(tx, TABLE.c.host == host, TABLE.c.node == node)


def get_uuids_by_hosts(tx: sa.Connection, ctxt: Any, hosts: Collection[str]) -> dict[str, list[str]]:
    query = sa.select(TABLE.c.host, TABLE.c.uuid).where(TABLE.c.deleted == 0)
    found: dict[str, list[str]] = {}
    for part in slices(hosts):
        for host, uuid in tx.execute(query.where(TABLE.c.host.in_(part))):
            found.setdefault(host, []).append(uuid)
    return found


def get_count_by_vm_state(tx: sa.Connection, ctxt: Any, project_id: str, user_id: str, vm_state: str) -> int:
    query = (
        sa.select(sa.func.count())
        .select_from(TABLE)
        .where(
            TABLE.c.deleted == 0,
            TABLE.c.project_id == project_id,
            TABLE.c.user_id == user_id,
            TABLE.c.vm_state == vm_state,
        )
    )
    return int(tx.execute(query).scalar_one())


def get_by_security_group_id(tx: sa.Connection, ctxt: Any, security_group_id: int) -> objects.InstanceList:
    """Raises NotImplementedError, as it does everywhere since security groups are Neutron's."""
    raise NotImplementedError("security groups and who is in them are Neutron's")


def get_by_grantee_security_group_ids(
    tx: sa.Connection, ctxt: Any, security_group_ids: Collection[int]
) -> objects.InstanceList:
    """Raises NotImplementedError, as it does everywhere since security groups are Neutron's."""
    raise NotImplementedError("security groups and who is in them are Neutron's")


EQUAL = (
    "project_id",
    "user_id",
    "host",
    "node",
    "vm_state",
    "task_state",
    "uuid",
    "image_ref",
    "reservation_id",
    "cleaned",
)


def get_by_filters(
    tx: sa.Connection,
    ctxt: Any,
    filters: Mapping[str, Any],
    sort_key: str = "created_at",
    sort_dir: str = "desc",
    limit: int | None = None,
    marker: str | None = None,
    expected_attrs: Collection[str] | None = None,
    use_slave: bool = False,
    sort_keys: list[str] | None = None,
    sort_dirs: list[str] | None = None,
) -> objects.InstanceList:
    """What hosts ask for: equality on columns, `deleted`, `soft_deleted`, and `changes-since`.

    Raises Invalid for a filter that is none of these.
    """
    order = list(zip(sort_keys or [sort_key], sort_dirs or [sort_dir], strict=False))
    parts = [_ordered(tx, ctxt, part, order) for part in _parts(filters)]
    rows = list(itertools.chain.from_iterable(parts))
    if len(parts) > 1:
        rows.sort(key=sorting.key([*order, ("id", "asc")]))
    if marker:
        places = [n for n, row in enumerate(rows) if row["uuid"] == marker]
        if not places:
            raise exceptions.MarkerNotFound(marker=marker)
        rows = rows[places[0] + 1 :]
    return _list(tx, rows[:limit], expected_attrs)


def _ordered(
    tx: sa.Connection, ctxt: Any, filters: Mapping[str, Any], order: Sequence[tuple[str, str]]
) -> Sequence[Row]:
    query = sa.select(TABLE).where(*_conditions(ctxt, dict(filters)))
    for key, direction in order:
        query = query.order_by(getattr(TABLE.c[key], direction)())
    return tx.execute(query.order_by(TABLE.c.id)).mappings().all()


def _parts(filters: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The filters, in several parts where they name more servers than one statement does: those of a whole host."""
    uuids = filters.get("uuid")
    if not isinstance(uuids, list | tuple | set | frozenset) or len(uuids) <= AT_ONCE:
        return [filters]
    return [{**filters, "uuid": part} for part in slices(uuids)]


def _conditions(ctxt: Any, filters: dict[str, Any]) -> list[sa.ColumnElement[bool]]:
    if name := failures.unfit(filters):
        raise exceptions.Invalid(f"no database takes the value of the filter by {name}")
    found = [_deleted(ctxt, filters.pop("deleted", None), filters.pop("soft_deleted", False))]
    if (since := filters.pop("changes-since", None)) is not None:
        found.append(changed_since(TABLE, hydrate.column_value(since)))
    for name, value in filters.items():
        if name not in EQUAL:
            raise exceptions.Invalid(f"a filter by {name} is not served here")
        if isinstance(value, bool):
            value = int(value)  # Nova's truth values are numbers here, which PostgreSQL compares with numbers only
        several = isinstance(value, list | tuple | set | frozenset)
        found.append(TABLE.c[name].in_(list(value)) if several else TABLE.c[name] == value)
    return found


def _deleted(ctxt: Any, deleted: bool | None, soft_deleted: bool) -> sa.ColumnElement[bool]:
    if deleted is None:
        return sa.true() if ctxt.read_deleted == "yes" else TABLE.c.deleted == 0
    if deleted:
        gone = TABLE.c.deleted == TABLE.c.id
        return sa.or_(gone, TABLE.c.vm_state == "soft-delete") if soft_deleted else gone
    return TABLE.c.deleted == 0
