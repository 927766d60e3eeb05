"""Fills a cell with servers by SQL, alike on both sides: copies of one server that was really built."""

from __future__ import annotations

import datetime
import uuid

import sqlalchemy as sa

CELL_TABLES = {
    "instance_extra": "instance_uuid",
    "instance_info_caches": "instance_uuid",
    "instance_system_metadata": "instance_uuid",
    "instance_metadata": "instance_uuid",
    "block_device_mapping": "instance_uuid",
}
API_TABLES = {"instance_mappings": "instance_uuid", "request_specs": "instance_uuid"}


def _table(engine: sa.Engine, name: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), autoload_with=engine)


def _copies(row: sa.RowMapping, key: str, names: list[str]) -> list[dict[str, object]]:
    base = {k: v for k, v in row.items() if k != "id"}
    return [{**base, key: name} for name in names]


def _copy_children(tx: sa.Connection, engine: sa.Engine, tables: dict[str, str], model: str, names: list[str]) -> None:
    for name, key in tables.items():
        table = _table(engine, name)
        for row in tx.execute(sa.select(table).where(table.c[key] == model)).mappings().all():
            copies = _copies(row, key, names)
            if "uuid" in table.c:
                copies = [{**c, "uuid": str(uuid.uuid4())} for c in copies]
            tx.execute(sa.insert(table), copies)


def holds(cell_url: str, server: str) -> bool:
    """Whether the server is in that cell."""
    cell = sa.create_engine(cell_url)
    with cell.connect() as connection:
        instances = _table(cell, "instances")
        found = connection.execute(sa.select(instances.c.id).where(instances.c.uuid == server)).first()
    cell.dispose()
    return found is not None


def clone_server(api_url: str, cell_url: str, model: str, count: int) -> list[str]:
    """Add `count` copies of the server `model`; returns their uuids."""
    names = [str(uuid.uuid4()) for _ in range(count)]
    api, cell = sa.create_engine(api_url), sa.create_engine(cell_url)
    with cell.begin() as tx:
        instances = _table(cell, "instances")
        row = tx.execute(sa.select(instances).where(instances.c.uuid == model)).mappings().one()
        start = row["created_at"]
        copies = _copies(row, "uuid", names)
        for n, copy in enumerate(copies):
            copy["created_at"] = start - datetime.timedelta(seconds=n + 1)
            copy["display_name"] = copy["hostname"] = f"seed-{n}"
        tx.execute(sa.insert(instances), copies)
        _copy_children(tx, cell, CELL_TABLES, model, names)
    with api.begin() as tx:
        _copy_children(tx, api, API_TABLES, model, names)
    api.dispose()
    cell.dispose()
    return names


def remove(api_url: str, cell_url: str, names: list[str]) -> None:
    """Take the copies away again."""
    for url, tables, own in ((cell_url, CELL_TABLES, "instances"), (api_url, API_TABLES, None)):
        engine = sa.create_engine(url)
        with engine.begin() as tx:
            for name, key in tables.items():
                table = _table(engine, name)
                tx.execute(sa.delete(table).where(table.c[key].in_(names)))
            if own:
                table = _table(engine, own)
                tx.execute(sa.delete(table).where(table.c.uuid.in_(names)))
        engine.dispose()
