"""The whole control plane in one process, its databases on a server, its bus in memory or on a broker."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from tests.ops.control_plane import CELL, ControlPlane
from tests.real.database_fixtures import new_databases

from kilonova.db.api import cell_mappings
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.migrations import sync


class OnServers(ControlPlane):
    """Its databases are the given ones (API, cell0, cell1), and so is its bus where one is given."""

    def __init__(
        self, folder: pathlib.Path, templates: pathlib.Path, urls: Sequence[str], bus: str | None = None
    ) -> None:
        self.urls, self._given_bus = urls, bus
        super().__init__(folder, templates)

    def _bus_address(self) -> str:
        return self._given_bus or super()._bus_address()

    def _configure(self, templates: pathlib.Path) -> Any:
        conf = super()._configure(templates)
        conf.set_override("connection", self.urls[0], group="api_database")
        conf.set_override("connection", self.urls[2], group="database")
        return conf

    def _map_cells(self) -> None:
        super()._map_cells()
        for uuid, url in ((CELL0_UUID, self.urls[1]), (CELL, self.urls[2])):
            self.parts.cells.api.run(cell_mappings.cell_mapping_update, uuid, {"database_connection": url})
        self.parts.cells.refresh()


@contextlib.contextmanager
def on_servers(
    server: str, folder: pathlib.Path, templates: pathlib.Path, bus: str | None = None
) -> Iterator[ControlPlane]:
    """A control plane on new databases of a server, dropped at the end."""
    with new_databases(server, ("api", "cell0", "cell1")) as urls:
        for url, make in zip(urls, (sync.sync_api, sync.sync_main, sync.sync_main), strict=True):
            database = Database(url)
            make(database)
            database.dispose()
        made = OnServers(folder, templates, urls, bus)
        yield made
        made.close()
        made.parts.cells.dispose()
