"""Instances. Rows are dicts of the columns; `parts` asks for what hangs on them (instance_parts.py)."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.base import ids
from kilonova.db import failures, patterns, query, sorting
from kilonova.db.cell import instance_filters, instance_parts
from kilonova.db.cell.tables import (
    BLOCK_DEVICE_MAPPING,
    CONSOLE_AUTH_TOKENS,
    INSTANCE_ACTIONS,
    INSTANCE_ACTIONS_EVENTS,
    INSTANCE_EXTRA,
    INSTANCE_FAULTS,
    INSTANCE_ID_MAPPINGS,
    INSTANCE_INFO_CACHES,
    INSTANCE_METADATA,
    INSTANCE_SYSTEM_METADATA,
    INSTANCES,
    MIGRATIONS,
    SECURITY_GROUP_INSTANCE_ASSOCIATION,
    SHARE_MAPPING,
    TAGS,
    VIRTUAL_INTERFACES,
)
from kilonova.db.engine import Tx
from kilonova.db.outcomes import MarkerNotFoundError, Missing, Outcome, Stale, Updated
from kilonova.db.query import Row
from kilonova.db.sorting import Sort

_C = INSTANCES.c
Expect = Mapping[str, Any]
"""Columns and the values they may have: one value or a collection; None is NULL."""

COLUMNS = tuple(column.name for column in INSTANCES.columns if column.name not in ("internal_id", "cell_name"))
"""Every column that is in use."""

BRIEF = tuple(name for name in COLUMNS if name not in ("user_data", "key_data", "launched_on"))
"""The columns without the long texts."""

DEFAULT_SORT: Sort = (("created_at", "desc"), ("id", "desc"))

_WITH_INSTANCE = (
    SECURITY_GROUP_INSTANCE_ASSOCIATION,
    INSTANCE_INFO_CACHES,
    INSTANCE_METADATA,
    INSTANCE_FAULTS,
    INSTANCE_EXTRA,
    INSTANCE_SYSTEM_METADATA,
    BLOCK_DEVICE_MAPPING,
    MIGRATIONS,
    VIRTUAL_INTERFACES,
)
"""Tables whose rows go when the instance goes. Its actions stay: operators look there for what happened to it."""


def instance_get(
    tx: Tx,
    uuid: str,
    parts: Iterable[str] = (),
    *,
    deleted_too: bool = False,
    columns: Iterable[str] = COLUMNS,
) -> Row | None:
    """One instance."""
    statement = query.selection(INSTANCES, frozenset({*columns, "uuid"})).where(_C.uuid == uuid)
    if not deleted_too:
        statement = statement.where(_C.deleted == 0)
    found = query.row(tx, statement)
    if found is not None:
        instance_parts.attach(tx, [found], parts)
    return found


def instance_hold(tx: Tx, uuid: str, columns: Iterable[str]) -> Row | None:
    """One living instance, which no other transaction changes before this one ends."""
    statement = query.selection(INSTANCES, frozenset({*columns, "uuid"})).where(_C.uuid == uuid, _C.deleted == 0)
    return query.row(tx, statement.with_for_update())


def instance_list(
    tx: Tx,
    filters: Mapping[str, Any] | None = None,
    sort: Sort = DEFAULT_SORT,
    limit: int | None = None,
    marker: str | Mapping[str, Any] | None = None,
    parts: Iterable[str] = (),
    *,
    columns: Iterable[str] = BRIEF,
) -> list[Row]:
    """A page of instances.

    Where texts have weights (sorting.py), the rows have them too. Deleted ones are in it unless `filters` has
    `deleted: False`. `marker` is the uuid of the last one of the page
    before, or that one's sort values when it is in another cell. Raises MarkerNotFoundError, InvalidSortKeyError,
    InvalidFilterError.
    """
    if limit == 0:
        return []
    sort = complete_sort(sort)
    order, weights = sorting.ordered(tx, INSTANCES, sort), sorting.weights(tx, INSTANCES, sort)
    statement = query.selection(INSTANCES, frozenset({*columns, *(key for key, _ in sort), "uuid"}))
    with _filtering(tx, filters or {}):
        if _is_impossible(filters or {}):
            return []
        if marker is not None:
            statement = statement.where(sorting.after(tx, INSTANCES, sort, _marker(tx, marker, sort)))
        narrowed = _narrowed(tx, statement.order_by(*order), filters or {}, limit)
        if narrowed is None:
            return []
        found = query.rows(tx, narrowed.add_columns(*weights).limit(limit))
    instance_parts.attach(tx, found, parts)
    return found


def instance_list_in_use(
    tx: Tx,
    begin: datetime.datetime,
    end: datetime.datetime,
    project_id: str | None = None,
    *,
    limit: int | None = None,
    marker: Mapping[str, Any] | None = None,
    parts: Iterable[str] = (),
    columns: Iterable[str] = BRIEF,
) -> list[Row]:
    """A page of the instances that were there at some time of a period, deleted ones too, by project and uuid.

    `marker` has the `project_id` and `uuid` of the last one of the page before.
    """
    sort = (("project_id", "asc"), ("uuid", "asc"))
    statement = query.selection(INSTANCES, frozenset({*columns, "uuid", "project_id"})).where(
        # A server that moves between cells has a second, hidden record, which is bookkeeping.
        sa.or_(_C.terminated_at.is_(None), _C.terminated_at > begin),
        _C.launched_at < end,
        instance_filters.shown(),
    )
    if project_id is not None:
        statement = statement.where(_C.project_id == project_id)
    if marker is not None:
        statement = statement.where(sorting.after(tx, INSTANCES, sort, marker))
    found = query.rows(tx, statement.order_by(*sorting.ordered(tx, INSTANCES, sort)).limit(limit))
    instance_parts.attach(tx, found, parts)
    return found


def instance_uuids(tx: Tx, filters: Mapping[str, Any]) -> list[str]:
    """The uuids of all instances that match, in no order. Raises InvalidFilterError."""
    with _filtering(tx, filters):
        narrowed = _narrowed(tx, sa.select(_C.uuid), filters)
        return [] if narrowed is None else query.values(tx, narrowed)


def instance_uuids_by_host(tx: Tx, hosts: Iterable[str]) -> dict[str, list[str]]:
    """The uuids of the living instances by host."""
    found: dict[str, list[str]] = {host: [] for host in hosts}
    statement = sa.select(_C.host, _C.uuid).where(_C.deleted == 0)
    for part in query.slices(found):
        for host, uuid in tx.execute(statement.where(_C.host.in_(part))):
            found[host].append(uuid)
    return found


def instance_count(tx: Tx, filters: Mapping[str, Any]) -> int:
    """How many match. Raises InvalidFilterError."""
    with _filtering(tx, filters):
        narrowed = _narrowed(tx, sa.select(sa.func.count()).select_from(INSTANCES), filters)
        return 0 if narrowed is None else int(tx.execute(narrowed).scalar_one())


def instance_usage(
    tx: Tx, project_id: str, user_id: str | None = None, *, but: Sequence[str] = ()
) -> dict[str, dict[str, int]]:
    """What counts against quotas: `instances`, `cores`, `ram` (MiB) of `project`, and of `user` within it if given.

    `but`: instances that are left out.
    """
    statement = sa.select(
        sa.func.count(), sa.func.coalesce(sa.func.sum(_C.vcpus), 0), sa.func.coalesce(sa.func.sum(_C.memory_mb), 0)
    ).where(
        _C.project_id == project_id,
        *instance_filters.conditions({"deleted": False}, tx.dialect.name),
    )
    used = {"project": _usage(tx, statement, but)}
    if user_id is not None:
        used["user"] = _usage(tx, statement.where(_C.user_id == user_id), but)
    return used


def instances_among(tx: Tx, uuids: Iterable[str]) -> set[str]:
    """Those of the uuids that have a record here, deleted or not; no statement for none."""
    parts = (query.values(tx, sa.select(_C.uuid).where(_C.uuid.in_(part))) for part in query.slices(uuids))
    return {uuid for part in parts for uuid in part}


def instance_create(tx: Tx, values: Mapping[str, Any]) -> Row:
    """A new instance with its parts; returns its row.

    `values`: columns (a uuid is made when missing), and `metadata`, `system_metadata` (dicts), `tags` (list), `extra`
    (dict of JSON texts), `network_info` (JSON text of the info cache). Raises DuplicateError.
    """
    parts = {"metadata", "system_metadata", "tags", "extra", "network_info"}
    columns = {"uuid": ids.new_uuid(), **{k: v for k, v in values.items() if k not in parts}}
    uuid = columns["uuid"]
    created = query.insert(tx, INSTANCES, columns)
    tx.execute(
        INSTANCE_INFO_CACHES.insert().values(instance_uuid=uuid, network_info=values.get("network_info") or "[]")
    )
    tx.execute(INSTANCE_EXTRA.insert().values(instance_uuid=uuid, **(values.get("extra") or {})))
    tx.execute(INSTANCE_ID_MAPPINGS.insert().values(uuid=uuid))
    for name, table in (("metadata", INSTANCE_METADATA), ("system_metadata", INSTANCE_SYSTEM_METADATA)):
        pairs = (values.get(name) or {}).items()
        query.insert_many(tx, table, [{"instance_uuid": uuid, "key": k, "value": v} for k, v in pairs])
    query.insert_many(tx, TAGS, [{"resource_id": uuid, "tag": tag} for tag in dict.fromkeys(values.get("tags") or ())])
    return created


def instance_update(
    tx: Tx, uuid: str, values: Mapping[str, Any], expect: Expect | None = None, *, deleted_too: bool = False
) -> Outcome:
    """Write columns if the row is as expected. `Stale.current` has the expected columns as they are."""
    where = [_C.uuid == uuid, *_expected(expect or {})]
    if not deleted_too:
        where.append(_C.deleted == 0)
    if tx.execute(INSTANCES.update().where(*where).values(**query.clean(values))).rowcount:
        return Updated()
    return _why(tx, uuid, expect or {}, deleted_too=deleted_too)


def instance_extra_update(tx: Tx, uuid: str, values: Mapping[str, Any]) -> None:
    """Write columns of instance_extra (JSON texts), making the row if it is missing."""
    if not values:
        return
    statement = INSTANCE_EXTRA.update().where(INSTANCE_EXTRA.c.instance_uuid == uuid).values(**values)
    if not tx.execute(statement).rowcount:
        tx.execute(INSTANCE_EXTRA.insert().values(instance_uuid=uuid, **values))


def instance_info_cache_update(tx: Tx, uuid: str, network_info: str) -> None:
    """Write the info cache (JSON text), making the row if it is missing."""
    table = INSTANCE_INFO_CACHES
    statement = table.update().where(table.c.instance_uuid == uuid).values(network_info=network_info)
    if not tx.execute(statement).rowcount:
        query.insert(tx, table, {"instance_uuid": uuid, "network_info": network_info})


def instance_destroy(tx: Tx, uuid: str, expect: Expect | None = None) -> Outcome:
    """Mark the instance and what hangs on it as deleted, if the row is as expected; tags and console tokens go."""
    if not tx.execute(query.soft_deleted(INSTANCES, _C.uuid == uuid, *_expected(expect or {}))).rowcount:
        return _why(tx, uuid, expect or {}, deleted_too=False)
    for table in _WITH_INSTANCE:
        tx.execute(query.soft_deleted(table, table.c.instance_uuid == uuid))
    tx.execute(query.soft_deleted(INSTANCE_ID_MAPPINGS, INSTANCE_ID_MAPPINGS.c.uuid == uuid))
    tx.execute(TAGS.delete().where(TAGS.c.resource_id == uuid))
    tx.execute(CONSOLE_AUTH_TOKENS.delete().where(CONSOLE_AUTH_TOKENS.c.instance_uuid == uuid))
    return Updated()


def instance_purge(tx: Tx, uuid: str) -> bool:
    """Remove every trace of an instance, deleted or not; whether there was one."""
    actions = sa.select(INSTANCE_ACTIONS.c.id).where(INSTANCE_ACTIONS.c.instance_uuid == uuid)
    tx.execute(INSTANCE_ACTIONS_EVENTS.delete().where(INSTANCE_ACTIONS_EVENTS.c.action_id.in_(actions)))
    for table in (*_WITH_INSTANCE, INSTANCE_ACTIONS, CONSOLE_AUTH_TOKENS, SHARE_MAPPING):
        tx.execute(table.delete().where(table.c.instance_uuid == uuid))
    tx.execute(INSTANCE_ID_MAPPINGS.delete().where(INSTANCE_ID_MAPPINGS.c.uuid == uuid))
    tx.execute(TAGS.delete().where(TAGS.c.resource_id == uuid))
    return tx.execute(INSTANCES.delete().where(_C.uuid == uuid)).rowcount > 0


def instance_name_taken(tx: Tx, hostname: str, project_id: str | None = None) -> bool:
    """Whether a living instance (of the project) has this host name, whatever its case."""
    statement = sa.select(_C.id).where(sa.func.lower(_C.hostname) == hostname.lower(), _C.deleted == 0).limit(1)
    if project_id is not None:
        statement = statement.where(_C.project_id == project_id)
    return tx.execute(statement).first() is not None


def complete_sort(sort: Sort) -> list[tuple[str, str]]:
    """The sort with `created_at` and `id` behind it (in the direction of its first key), so that it is total."""
    keys = list(sort)
    direction = keys[0][1] if keys else "desc"
    have = {key for key, _ in keys}
    return keys + [(key, direction) for key in ("created_at", "id") if key not in have]


def _usage(tx: Tx, statement: sa.Select[Any], but: Sequence[str]) -> dict[str, int]:
    total = [int(number) for number in tx.execute(statement).one()]
    for part in query.slices(but):
        without = tx.execute(statement.where(_C.uuid.in_(part))).one()
        total = [number - int(less) for number, less in zip(total, without, strict=True)]
    return dict(zip(("instances", "cores", "ram"), total, strict=True))


@contextlib.contextmanager
def _filtering(tx: Tx, filters: Mapping[str, Any]) -> Iterator[None]:
    """What the database refuses of a filter, or needs too long for, is InvalidFilterError."""
    bound = patterns.limited(tx) if any(map(instance_filters.is_pattern, filters)) else contextlib.nullcontext()
    with failures.of_filters(filters), bound:
        yield


def _is_impossible(filters: Mapping[str, Any]) -> bool:
    """Whether one of the filters names nothing that there could be."""
    return any(isinstance(value, (list, tuple, set, frozenset)) and not value for value in filters.values())


def _narrowed(
    tx: Tx, statement: sa.Select[Any], filters: Mapping[str, Any], limit: int | None = None
) -> sa.Select[Any] | None:
    """The statement with the filters, of which `limit` rows are wanted; None when they cannot match anything."""
    if _is_impossible(filters):
        return None
    statement = statement.where(*instance_filters.conditions(filters, tx.dialect.name))
    if not any(filters.get(name) for name in instance_filters.ADDRESSES):
        return statement
    matching = _with_address(tx, statement, filters, limit)
    return statement.where(_C.uuid.in_(matching)) if matching else None


def _with_address(tx: Tx, narrowed: sa.Select[Any], filters: Mapping[str, Any], limit: int | None) -> list[str]:
    """The uuids of the first that match the statement whose fixed addresses match `ip` and `ip6`."""
    cache = INSTANCE_INFO_CACHES
    columns = narrowed.with_only_columns(_C.uuid, cache.c.network_info)
    statement = columns.join_from(INSTANCES, cache, cache.c.instance_uuid == _C.uuid)
    asked = [
        (version, patterns.matcher(name, filters[name]))
        for name, version in instance_filters.ADDRESSES.items()
        if filters.get(name)
    ]
    found: list[str] = []
    for uuid, text in tx.execute(statement):
        if len(found) == limit:
            break
        addresses = _addresses(text)
        # With both filters either may match, as in the API.
        if any(v == version and pattern.match(a) for version, pattern in asked for v, a in addresses):
            found.append(uuid)
    return found


def _addresses(network_info: str | None) -> list[tuple[int, str]]:
    return [
        (subnet.get("version", 4), ip["address"])
        for vif in json.loads(network_info or "[]")
        for subnet in (vif.get("network") or {}).get("subnets") or []
        for ip in subnet.get("ips") or []
    ]


def _marker(tx: Tx, marker: str | Mapping[str, Any], sort: Sort) -> Mapping[str, Any]:
    if not isinstance(marker, str):
        return marker
    found = query.row(tx, sa.select(*query.columns(INSTANCES, (key for key, _ in sort))).where(_C.uuid == marker))
    if found is None:
        raise MarkerNotFoundError(marker)
    return found


def _expected(expect: Expect) -> list[sa.ColumnElement[bool]]:
    return [instance_filters.any_of(_C[name], value) for name, value in expect.items()]


def _why(tx: Tx, uuid: str, expect: Expect, *, deleted_too: bool) -> Outcome:
    # A locking read: under repeatable reads a plain one would show the row as this transaction first saw it.
    statement = sa.select(_C.uuid, *query.columns(INSTANCES, expect)).where(_C.uuid == uuid).with_for_update(read=True)
    found = query.row(tx, statement if deleted_too else statement.where(_C.deleted == 0))
    return Missing() if found is None else Stale({name: found[name] for name in expect})


def instance_uuids_without_system_metadata(
    tx: Tx, key: str, limit: int | None = None, *, but_in_states: Iterable[str] = ()
) -> list[str]:
    """Living instances, but for those in these states, that lack a key in their system metadata."""
    table = INSTANCE_SYSTEM_METADATA
    has = sa.exists().where(table.c.instance_uuid == _C.uuid, table.c.key == key, table.c.deleted == 0)
    counted = sa.or_(_C.vm_state.is_(None), _C.vm_state.not_in(list(but_in_states)))
    statement = sa.select(_C.uuid).where(_C.deleted == 0, counted, sa.not_(has))
    return query.values(tx, statement.order_by(_C.id).limit(limit))


def instance_flavors(
    tx: Tx, *, project_id: str | None = None, limit: int | None = None, after: int = 0
) -> list[tuple[int, str | None]]:
    """A page of the living instances by number: (number, the flavors kept with it as JSON text)."""
    statement = sa.select(_C.id, INSTANCE_EXTRA.c.flavor).outerjoin_from(
        INSTANCES, INSTANCE_EXTRA, INSTANCE_EXTRA.c.instance_uuid == _C.uuid
    )
    statement = statement.where(_C.deleted == 0, _C.id > after).order_by(_C.id).limit(limit)
    if project_id is not None:
        statement = statement.where(_C.project_id == project_id)
    return [(number, text) for number, text in tx.execute(statement)]
