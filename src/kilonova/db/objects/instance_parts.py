"""Changes to single parts of an instance that need no comparison with its state."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.contract import exceptions, objects
from kilonova.db import exact
from kilonova.db.cell.tables import INSTANCE_EXTRA, INSTANCE_INFO_CACHES, INSTANCE_METADATA
from kilonova.db.objects import hydrate, instance


def delete_metadata_key(tx: sa.Connection, ctxt: Any, server: objects.Instance, key: str) -> None:
    """Take one key out of the metadata, here and in `server`."""
    of = (INSTANCE_METADATA.c.instance_uuid == server.uuid, exact.equal(tx.dialect.name, INSTANCE_METADATA.c.key, key))
    hydrate.soft_delete(tx, INSTANCE_METADATA, *of)
    others = "metadata" in server.obj_what_changed()
    server.metadata.pop(key, None)
    if not others:
        server.obj_reset_changes(["metadata"])


def drop_migration_context(tx: sa.Connection, ctxt: Any, server: objects.Instance) -> None:
    """Forget the resources of a move that has ended."""
    tx.execute(
        sa.update(INSTANCE_EXTRA).where(INSTANCE_EXTRA.c.instance_uuid == server.uuid).values(migration_context=None)
    )
    server.migration_context = None
    server.obj_reset_changes(["migration_context"])


def create_numa_topology(tx: sa.Connection, ctxt: Any, topology: objects.InstanceNUMATopology) -> None:
    """Store the topology with its instance. Raises InstanceNotFound."""
    done = tx.execute(
        sa.update(INSTANCE_EXTRA)
        .where(INSTANCE_EXTRA.c.instance_uuid == topology.instance_uuid)
        .values(numa_topology=hydrate.dump(topology))
    )
    if not done.rowcount:
        raise exceptions.InstanceNotFound(instance_id=topology.instance_uuid)
    topology.obj_reset_changes()


def get_info_cache(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> objects.InstanceInfoCache:
    """Raises InstanceInfoCacheNotFound."""
    table = INSTANCE_INFO_CACHES
    row = tx.execute(sa.select(table).where(table.c.instance_uuid == instance_uuid)).mappings().first()
    if row is None:
        raise exceptions.InstanceInfoCacheNotFound(instance_uuid=instance_uuid)
    return instance.info_cache_object(row)


def refresh_info_cache(tx: sa.Connection, ctxt: Any, cache: objects.InstanceInfoCache) -> None:
    """Raises InstanceInfoCacheNotFound."""
    fresh = get_info_cache(tx, ctxt, cache.instance_uuid)
    for name in type(cache).fields:
        if cache.obj_attr_is_set(name) and fresh.obj_attr_is_set(name):
            setattr(cache, name, getattr(fresh, name))
    cache.obj_reset_changes()


def delete_info_cache(tx: sa.Connection, ctxt: Any, cache: objects.InstanceInfoCache) -> None:
    hydrate.soft_delete(tx, INSTANCE_INFO_CACHES, INSTANCE_INFO_CACHES.c.instance_uuid == cache.instance_uuid)
