"""Online data migrations: filling in what older releases left empty, in batches, while services run.

Each takes the databases and how many rows it may change, and returns how many it found (at most so many) and how many
of those it filled in. What is done is not found again.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from kilonova.base import ids
from kilonova.db import query
from kilonova.db.api import aggregates
from kilonova.db.api.tables import INSTANCE_MAPPINGS, PROJECT_USER_QUOTAS, QUOTA_CLASSES, QUOTAS
from kilonova.db.cell import instances
from kilonova.db.cell import tables as cell
from kilonova.db.cells import Cell, Cells
from kilonova.db.engine import Database, Tx

Count = tuple[int, int]
"""Found, filled in."""

Migration = Callable[[Cells, cfg.ConfigOpts, int], Count]


def _databases(cells: Cells) -> Iterator[Database]:
    """The cells' databases, each once."""
    seen = {id(one.database): one.database for one in cells.all()}
    yield from seen.values()


def _in_cells(work: Callable[[Database, int], Count]) -> Migration:
    """Do the work in each cell until the batch is full."""

    def run(cells: Cells, _conf: cfg.ConfigOpts, limit: int) -> Count:
        found = done = 0
        for database in _databases(cells):
            if found >= limit:
                break
            one = work(database, limit - found)
            found, done = found + one[0], done + one[1]
        return found, done

    return run


def _uuids(table: sa.Table) -> Migration:
    """Rows without a uuid get one."""

    def fill(tx: Tx, limit: int) -> int:
        numbers = query.values(tx, sa.select(table.c.id).where(table.c.uuid.is_(None)).limit(limit))
        for number in numbers:
            where = (table.c.id == number, table.c.uuid.is_(None))
            tx.execute(table.update().where(*where).values(uuid=ids.new_uuid(), updated_at=table.c.updated_at))
        return len(numbers)

    def work(database: Database, limit: int) -> Count:
        count = database.run(fill, limit)
        return count, count

    return _in_cells(work)


def _availability_zones(cells: Cells, conf: cfg.ConfigOpts, limit: int) -> Count:
    """Instances on a host get the zone that the host is in."""
    table = cell.INSTANCES

    def fill(tx: Tx, room: int) -> int:
        where = (table.c.host.is_not(None), table.c.availability_zone.is_(None))
        found = tx.execute(sa.select(table.c.id, table.c.host).where(*where).limit(room)).all()
        for number, host in found:
            zone = zones.get(host, conf.default_availability_zone)
            tx.execute(table.update().where(table.c.id == number).values(availability_zone=zone))
        return len(found)

    zones = cells.api.query(aggregates.availability_zones_by_host)

    def work(database: Database, room: int) -> Count:
        count = database.run(fill, room)
        return count, count

    return _in_cells(work)(cells, conf, limit)


def _compute_ids(tx: Tx, limit: int) -> Count:
    """Instances on a node get the node's number; those whose node is unknown are found and stay."""
    table, node = cell.INSTANCES, cell.COMPUTE_NODES
    where = (table.c.compute_id.is_(None), table.c.host.is_not(None))
    found = tx.execute(sa.select(table.c.id, table.c.host, table.c.node).where(*where).limit(limit)).all()
    statement = sa.select(node.c.host, node.c.hypervisor_hostname, node.c.id).order_by(node.c.deleted.desc())
    nodes = {(host, name): number for host, name, number in tx.execute(statement)}
    done = 0
    for number, host, name in found:
        if (host, name) in nodes:
            tx.execute(table.update().where(table.c.id == number).values(compute_id=nodes[host, name]))
            done += 1
    return len(found), done


def _ratios(cells: Cells, conf: cfg.ConfigOpts, limit: int) -> Count:
    """Compute nodes without allocation ratios get those of the configuration."""
    table = cell.COMPUTE_NODES
    wanted = {
        f"{kind}_allocation_ratio": conf[f"{kind}_allocation_ratio"] or conf[f"initial_{kind}_allocation_ratio"]
        for kind in ("cpu", "ram", "disk")
    }

    def fill(tx: Tx, room: int) -> int:
        empty = {name: sa.or_(table.c[name].is_(None), table.c[name] == 0) for name in wanted}
        statement = sa.select(table.c.id).where(sa.or_(*empty.values()), table.c.deleted == 0).limit(room)
        numbers = query.values(tx, statement)
        for name, ratio in wanted.items():
            tx.execute(table.update().where(table.c.id.in_(numbers), empty[name]).values({name: ratio}))
        return len(numbers)

    def work(database: Database, room: int) -> Count:
        count = database.run(fill, room)
        return count, count

    return _in_cells(work)(cells, conf, limit)


def _queued_for_delete(cells: Cells, _conf: cfg.ConfigOpts, limit: int) -> Count:
    """Mappings learn whether their instance is deleted."""
    column = INSTANCE_MAPPINGS.c.queued_for_delete
    done = 0
    for one in cells.all():
        where = (column.is_(None), INSTANCE_MAPPINGS.c.cell_id == one.id)
        statement = sa.select(INSTANCE_MAPPINGS.c.instance_uuid).where(*where).limit(max(0, limit - done))
        uuids = cells.api.query(query.values, statement)
        gone = set(one.database.query(instances.instance_uuids, {"uuid": uuids, "deleted": True}))
        for queued in (True, False):
            chosen = [uuid for uuid in uuids if (uuid in gone) is queued]
            cells.api.run(_set_mappings, chosen, {"queued_for_delete": queued})
        done += len(uuids)
    return done, done


def _user_ids(cells: Cells, _conf: cfg.ConfigOpts, limit: int) -> Count:
    """Mappings get their instance's user; those in no cell are found and stay."""
    statement = sa.select(INSTANCE_MAPPINGS.c.instance_uuid, INSTANCE_MAPPINGS.c.cell_id)
    found = cells.api.query(query.rows, statement.where(INSTANCE_MAPPINGS.c.user_id.is_(None)).limit(limit))
    by_cell: dict[int, list[str]] = collections.defaultdict(list)
    for row in found:
        by_cell[row["cell_id"]].append(row["instance_uuid"])
    done = 0
    for one in cells.all():
        users = _users(one, by_cell.get(one.id, []))
        for user, uuids in users.items():
            cells.api.run(_set_mappings, uuids, {"user_id": user})
            done += len(uuids)
    return len(found), done


def _users(one: Cell, uuids: Sequence[str]) -> Mapping[str, list[str]]:
    users: dict[str, list[str]] = collections.defaultdict(list)
    table = cell.INSTANCES
    if uuids:
        statement = sa.select(table.c.uuid, table.c.user_id).where(
            table.c.uuid.in_(uuids), table.c.user_id.is_not(None)
        )
        for row in one.database.query(query.rows, statement):
            users[row["user_id"]].append(row["uuid"])
    return users


def _set_mappings(tx: Tx, uuids: Sequence[str], values: Mapping[str, Any]) -> None:
    if uuids:
        tx.execute(INSTANCE_MAPPINGS.update().where(INSTANCE_MAPPINGS.c.instance_uuid.in_(uuids)).values(**values))


def _virtual_interfaces(tx: Tx, limit: int) -> Count:
    """Instances get a record of each interface that their info cache knows, with the tag of an older record of it."""
    cache, table = cell.INSTANCE_INFO_CACHES, cell.VIRTUAL_INTERFACES
    statement = sa.select(cache.c.instance_uuid, cache.c.network_info).where(
        cache.c.deleted == 0, cache.c.network_info.is_not(None), cache.c.network_info != "[]"
    )
    wanted = {
        (uuid, vif["id"]): vif["address"] for uuid, text in tx.execute(statement).all() for vif in json.loads(text)
    }
    known = tx.execute(sa.select(table.c.instance_uuid, table.c.uuid).where(table.c.deleted == 0)).all()
    missing = [pair for pair in wanted if pair not in {tuple(row) for row in known}][:limit]
    new = [{"instance_uuid": uuid, "uuid": port, "address": f"{wanted[uuid, port]}/{port}"} for uuid, port in missing]
    query.insert_many(tx, table, new)
    return len(new), len(new)


def _move_limits(source: sa.Table, target: sa.Table, key: tuple[str, ...]) -> Migration:
    """Limits of a cell's database move to the API database; where that has one already, it counts."""

    def put(tx: Tx, rows: Sequence[query.Row]) -> None:
        for row in rows:
            where = [target.c[name] == row[name] for name in key]
            if not tx.execute(sa.select(target.c.id).where(*where)).first():
                query.insert(tx, target, {name: row[name] for name in (*key, "hard_limit")})

    def run(cells: Cells, _conf: cfg.ConfigOpts, limit: int) -> Count:
        database = cells.own
        statement = sa.select(source).where(source.c.deleted == 0).limit(limit)
        rows = database.query(query.rows, statement)
        cells.api.run(put, rows)
        database.run(_remove, source, [row["id"] for row in rows])
        return len(rows), len(rows)

    return run


def _remove(tx: Tx, table: sa.Table, numbers: Sequence[int]) -> None:
    if numbers:
        tx.execute(table.delete().where(table.c.id.in_(numbers)))


def _quota_limits(cells: Cells, conf: cfg.ConfigOpts, limit: int) -> Count:
    moves = (
        _move_limits(cell.QUOTAS, QUOTAS, ("project_id", "resource")),
        _move_limits(cell.PROJECT_USER_QUOTAS, PROJECT_USER_QUOTAS, ("project_id", "user_id", "resource")),
    )
    found = done = 0
    for move in moves:
        if done < limit:
            one = move(cells, conf, limit - done)
            found, done = found + one[0], done + one[1]
    return found, done


MIGRATIONS: dict[str, Migration] = {
    "migrate_quota_limits_to_api_db": _quota_limits,
    "migrate_quota_classes_to_api_db": _move_limits(cell.QUOTA_CLASSES, QUOTA_CLASSES, ("class_name", "resource")),
    "migration_migrate_to_uuid": _uuids(cell.MIGRATIONS),
    "populate_uuids": _uuids(cell.BLOCK_DEVICE_MAPPING),
    "populate_missing_availability_zones": _availability_zones,
    "populate_queued_for_delete": _queued_for_delete,
    "migrate_empty_ratio": _ratios,
    "fill_virtual_interface_list": _in_cells(lambda database, room: database.run(_virtual_interfaces, room)),
    "populate_user_id": _user_ids,
    "populate_dev_uuids": _uuids(cell.PCI_DEVICES),
    "populate_instance_compute_id": _in_cells(lambda database, room: database.run(_compute_ids, room)),
}
"""By name, in their order."""
