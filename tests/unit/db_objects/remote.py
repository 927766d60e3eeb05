"""A host on the bus of a conductor that serves objects."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from kilonova.base import ids
from kilonova.conductor.objects.service import ObjectService
from kilonova.conf import default_rpc, kilonova, quota, upgrade_levels
from kilonova.contract import context, objects
from kilonova.db.engine import Database
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import ConductorClient


class Host:
    """A host that has no database: calls object methods on the conductor."""

    def __init__(self, client: ConductorClient) -> None:
        self.client = client
        self.ctxt = context.admin()

    def call(self, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        versions = objects.manifest(name)
        return self.client.object_class_action_versions(self.ctxt, name, method, versions, list(args), kwargs)

    def act(self, obj: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        updates, result = self.client.object_action(self.ctxt, obj, method, list(args), kwargs)
        objects.apply_updates(obj, updates)
        return result


@pytest.fixture
def host(api_db: Database, cell_db: Database) -> Iterator[Host]:
    conf = cfg.ConfigOpts()
    conf.register_opts(default_rpc.OPTIONS)
    conf.register_opts(upgrade_levels.OPTIONS, group=upgrade_levels.GROUP)
    conf.register_opts(quota.OPTIONS, group=quota.GROUP)
    conf.register_opts(kilonova.OPTIONS, group=kilonova.GROUP)
    conf([])
    bus = Bus(conf, f"fake://{ids.new_uuid()}")
    cells: Any = types.SimpleNamespace(
        api=api_db, own=cell_db, scatter=lambda fn: {"c": fn(types.SimpleNamespace(database=cell_db))}
    )
    server = bus.serve("conductor", "c1", [ObjectService(cells, conf)])
    server.start()
    yield Host(ConductorClient(bus))
    server.stop()
    server.wait(5)
