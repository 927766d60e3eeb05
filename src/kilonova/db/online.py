"""Online data migrations: filling in what older releases left empty, in batches, while services run.

Each goes once through its rows, by their numbers: what is done, or cannot be done, is not looked at again in one run.
Reading holds no lock, and a batch is written in a short transaction of its own. What cannot be filled in (its node is
unknown, its cell does not answer) is found and stays, and stops nothing else.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
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
from kilonova.db.failures import LOST, DatabaseError
from kilonova.db.outcomes import DuplicateError

LOG = logging.getLogger(__name__)

BATCH = 500
"""Rows in one transaction."""

PAGE = 1000
"""Servers whose interfaces are compared at a time."""

Fill = Callable[[Tx, Sequence[sa.Row[Any]]], int]
"""Fills in what it can of these rows; how many."""


@dataclasses.dataclass
class Run:
    """One migration at work: how many rows it may fill in (None: all), how many it found and filled in so far."""

    cells: Cells
    conf: cfg.ConfigOpts
    limit: int | None = None
    found: int = 0
    done: int = 0
    troubles: list[str] = dataclasses.field(default_factory=list)
    """What kept a part of it from being done, for the operator."""

    @property
    def room(self) -> int:
        """How many rows to take next."""
        return BATCH if self.limit is None else max(0, min(BATCH, self.limit - self.done))

    def note(self, found: int, done: int) -> None:
        self.found += found
        self.done += done

    def failed(self, where: str, exc: Exception) -> None:
        """One database does not do its part; the others go on."""
        LOG.warning("%s: %s", where, exc, exc_info=not isinstance(exc, LOST))
        self.troubles.append(f"{where}: {str(exc).partition(chr(10))[0]}")


Migration = Callable[[Run], None]


def _pages(run: Run, database: Database, statement: sa.Select[Any]) -> Iterator[Sequence[sa.Row[Any]]]:
    """Rows of a statement, whose first column is their number, until as many as may be are filled in."""
    number, after = next(iter(statement.selected_columns)), 0
    while room := run.room:
        page = statement.where(number > after).order_by(number).limit(room)
        rows = database.query(lambda tx, page: tx.execute(page).all(), page)
        if not rows:
            return
        after = rows[-1][0]
        yield rows


def _in_cells(work: Callable[[Run, Database], None]) -> Migration:
    """Do the work in the database of each cell."""

    def migrate(run: Run) -> None:
        once: dict[int, Cell] = {}
        for one in run.cells.all():
            once.setdefault(id(one.database), one)
        for one in once.values():
            try:
                work(run, one.database)
            except (*LOST, DatabaseError) as exc:
                run.failed(_name(one), exc)

    return migrate


def _name(one: Cell) -> str:
    return f"Cell {one.name or ''} {one.uuid}"


def _filling(statement: sa.Select[Any], fill: Fill) -> Callable[[Run, Database], None]:
    def work(run: Run, database: Database) -> None:
        for rows in _pages(run, database, statement):
            run.note(len(rows), database.run(fill, rows))

    return work


def _uuids(table: sa.Table) -> Migration:
    """Rows without a uuid get one."""

    def fill(tx: Tx, rows: Sequence[sa.Row[Any]]) -> int:
        for row in rows:
            where = (table.c.id == row.id, table.c.uuid.is_(None))
            tx.execute(table.update().where(*where).values(uuid=ids.new_uuid(), updated_at=table.c.updated_at))
        return len(rows)

    return _in_cells(_filling(sa.select(table.c.id).where(table.c.uuid.is_(None)), fill))


def _availability_zones(run: Run) -> None:
    """Instances on a host get the zone that the host is in."""
    table = cell.INSTANCES
    zones = run.cells.api.query(aggregates.availability_zones_by_host)

    def fill(tx: Tx, rows: Sequence[sa.Row[Any]]) -> int:
        for row in rows:
            zone = zones.get(row.host, run.conf.default_availability_zone)
            tx.execute(table.update().where(table.c.id == row.id).values(availability_zone=zone))
        return len(rows)

    missing = (table.c.host.is_not(None), table.c.availability_zone.is_(None))
    _in_cells(_filling(sa.select(table.c.id, table.c.host).where(*missing), fill))(run)


def _compute_ids(run: Run, database: Database) -> None:
    """Instances on a node get the node's number; those whose node is unknown are found and stay."""
    table, node = cell.INSTANCES, cell.COMPUTE_NODES
    statement = sa.select(node.c.host, node.c.hypervisor_hostname, node.c.id).order_by(node.c.deleted.desc())
    known = database.query(lambda tx: {(host, name): number for host, name, number in tx.execute(statement)})

    def fill(tx: Tx, rows: Sequence[sa.Row[Any]]) -> int:
        placed = [row for row in rows if (row.host, row.node) in known]
        for row in placed:
            tx.execute(table.update().where(table.c.id == row.id).values(compute_id=known[row.host, row.node]))
        return len(placed)

    missing = (table.c.compute_id.is_(None), table.c.host.is_not(None))
    _filling(sa.select(table.c.id, table.c.host, table.c.node).where(*missing), fill)(run, database)


def _ratios(run: Run) -> None:
    """Compute nodes without allocation ratios get those of the configuration."""
    table, conf = cell.COMPUTE_NODES, run.conf
    wanted = {
        f"{kind}_allocation_ratio": conf[f"{kind}_allocation_ratio"] or conf[f"initial_{kind}_allocation_ratio"]
        for kind in ("cpu", "ram", "disk")
    }
    empty = {name: sa.or_(table.c[name].is_(None), table.c[name] == 0) for name in wanted}

    def fill(tx: Tx, rows: Sequence[sa.Row[Any]]) -> int:
        numbers = [row.id for row in rows]
        for name, ratio in wanted.items():
            tx.execute(table.update().where(table.c.id.in_(numbers), empty[name]).values({name: ratio}))
        return len(rows)

    missing = (sa.or_(*empty.values()), table.c.deleted == 0)
    _in_cells(_filling(sa.select(table.c.id).where(*missing), fill))(run)


def _queued_for_delete(run: Run) -> None:
    """Mappings learn whether their instance is deleted."""
    table = INSTANCE_MAPPINGS
    for one in run.cells.all():
        missing = (table.c.queued_for_delete.is_(None), table.c.cell_id == one.id)
        for rows in _pages(run, run.cells.api, sa.select(table.c.id, table.c.instance_uuid).where(*missing)):
            uuids = [row.instance_uuid for row in rows]
            try:
                gone = set(one.database.query(instances.instance_uuids, {"uuid": uuids, "deleted": True}))
            except (*LOST, DatabaseError) as exc:
                run.failed(_name(one), exc)
                break
            for queued in (True, False):
                chosen = [uuid for uuid in uuids if (uuid in gone) is queued]
                run.cells.api.run(_set_mappings, chosen, {"queued_for_delete": queued})
            run.note(len(rows), len(rows))


def _user_ids(run: Run) -> None:
    """Mappings get their instance's user; those in no cell are found and stay."""
    table = INSTANCE_MAPPINGS
    by_id, lost = {one.id: one for one in run.cells.all()}, set[int]()
    statement = sa.select(table.c.id, table.c.instance_uuid, table.c.cell_id).where(table.c.user_id.is_(None))
    for rows in _pages(run, run.cells.api, statement):
        uuids: dict[int, list[str]] = collections.defaultdict(list)
        for row in rows:
            uuids[row.cell_id].append(row.instance_uuid)
        run.note(len(rows), 0)
        for number in uuids.keys() & by_id.keys() - lost:
            try:
                users = _users(by_id[number], uuids[number])
            except (*LOST, DatabaseError) as exc:
                run.failed(_name(by_id[number]), exc)
                lost.add(number)
                continue
            for user, theirs in users.items():
                run.cells.api.run(_set_mappings, theirs, {"user_id": user})
                run.note(0, len(theirs))


def _users(one: Cell, uuids: Sequence[str]) -> Mapping[str, list[str]]:
    users: dict[str, list[str]] = collections.defaultdict(list)
    table = cell.INSTANCES
    where = (table.c.uuid.in_(uuids), table.c.user_id.is_not(None))
    for row in one.database.query(query.rows, sa.select(table.c.uuid, table.c.user_id).where(*where)):
        users[row["user_id"]].append(row["uuid"])
    return users


def _set_mappings(tx: Tx, uuids: Sequence[str], values: Mapping[str, Any]) -> None:
    if uuids:
        tx.execute(INSTANCE_MAPPINGS.update().where(INSTANCE_MAPPINGS.c.instance_uuid.in_(uuids)).values(**values))


class Interface(msgspec.Struct):
    """What a record of an interface needs of the info cache."""

    id: str
    address: str | None = None


_INTERFACES = msgspec.json.Decoder(list[Interface])


def _virtual_interfaces(run: Run, database: Database) -> None:
    """Instances get a record of each interface that their info cache knows."""
    after = 0
    while run.room:
        after, missing, unreadable = database.query(_missing_interfaces, after)
        run.note(unreadable, 0)
        while missing and run.room:
            batch, missing = missing[: run.room], missing[run.room :]
            run.note(len(batch), _put_interfaces(database, batch))
        if not after:
            return


def _missing_interfaces(tx: Tx, after: int) -> tuple[int, list[query.Row], int]:
    """What is missing of a page of info caches behind a number: the page's last number (0: there is no more), the
    records to be made, and how many cannot be."""
    cache, table = cell.INSTANCE_INFO_CACHES, cell.VIRTUAL_INTERFACES
    present = (cache.c.deleted == 0, cache.c.network_info.is_not(None), cache.c.network_info != "[]")
    statement = sa.select(cache.c.id, cache.c.instance_uuid, cache.c.network_info).where(cache.c.id > after, *present)
    page = tx.execute(statement.order_by(cache.c.id).limit(PAGE)).all()
    wanted, unreadable = dict[tuple[str, str], str](), 0
    for _, uuid, text in page:
        try:
            interfaces = _INTERFACES.decode(text)
        except msgspec.MsgspecError as exc:
            LOG.warning("the info cache of server %s cannot be read: %s", uuid, exc)
            unreadable += 1
            continue
        wanted |= {(uuid, one.id): one.address for one in interfaces if one.address}
    known = sa.select(table.c.instance_uuid, table.c.uuid).where(
        table.c.deleted == 0, table.c.instance_uuid.in_([row.instance_uuid for row in page])
    )
    there = {tuple(row) for row in tx.execute(known)} if page else set()
    missing = [
        {"instance_uuid": uuid, "uuid": port, "address": f"{address}/{port}"}
        for (uuid, port), address in wanted.items()
        if (uuid, port) not in there
    ]
    return (page[-1].id if len(page) == PAGE else 0), missing, unreadable


def _put_interfaces(database: Database, new: Sequence[query.Row]) -> int:
    """How many could be put in: a port that two caches name is the first one's."""
    try:
        database.run(query.insert_many, cell.VIRTUAL_INTERFACES, new)
    except DuplicateError:
        if len(new) == 1:
            LOG.warning("port %s of server %s has another record", new[0]["uuid"], new[0]["instance_uuid"])
            return 0
        return sum(_put_interfaces(database, [one]) for one in new)
    return len(new)


def _move_limits(source: sa.Table, target: sa.Table, key: tuple[str, ...]) -> Migration:
    """Limits of a cell's database move to the API database; where that has one already, it counts."""

    def put(tx: Tx, rows: Sequence[sa.Row[Any]]) -> None:
        for row in rows:
            where = [target.c[name] == getattr(row, name) for name in key]
            if not tx.execute(sa.select(target.c.id).where(*where)).first():
                query.insert(tx, target, {name: getattr(row, name) for name in (*key, "hard_limit")})

    def migrate(run: Run) -> None:
        chosen = (source.c[name] for name in (*key, "hard_limit"))
        for rows in _pages(run, run.cells.own, sa.select(source.c.id, *chosen).where(source.c.deleted == 0)):
            run.cells.api.run(put, rows)
            run.cells.own.run(_remove, source, [row.id for row in rows])
            run.note(len(rows), len(rows))

    return migrate


def _remove(tx: Tx, table: sa.Table, numbers: Sequence[int]) -> None:
    tx.execute(table.delete().where(table.c.id.in_(numbers)))


def _quota_limits(run: Run) -> None:
    _move_limits(cell.QUOTAS, QUOTAS, ("project_id", "resource"))(run)
    _move_limits(cell.PROJECT_USER_QUOTAS, PROJECT_USER_QUOTAS, ("project_id", "user_id", "resource"))(run)


MIGRATIONS: dict[str, Migration] = {
    "migrate_quota_limits_to_api_db": _quota_limits,
    "migrate_quota_classes_to_api_db": _move_limits(cell.QUOTA_CLASSES, QUOTA_CLASSES, ("class_name", "resource")),
    "migration_migrate_to_uuid": _uuids(cell.MIGRATIONS),
    "populate_uuids": _uuids(cell.BLOCK_DEVICE_MAPPING),
    "populate_missing_availability_zones": _availability_zones,
    "populate_queued_for_delete": _queued_for_delete,
    "migrate_empty_ratio": _ratios,
    "fill_virtual_interface_list": _in_cells(_virtual_interfaces),
    "populate_user_id": _user_ids,
    "populate_dev_uuids": _uuids(cell.PCI_DEVICES),
    "populate_instance_compute_id": _in_cells(_compute_ids),
}
"""By name, in their order."""
