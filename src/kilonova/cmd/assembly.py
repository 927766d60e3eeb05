"""Puts the rooms together: what a process of each kind consists of."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.clients.bundle import Clients
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.versions import AutomaticCap, Lowest

if TYPE_CHECKING:
    from kilonova.cmd.process import Service
    from kilonova.db.cells import Cells


@dataclasses.dataclass
class Parts:
    """What the services of one process share; each is made when first used."""

    conf: cfg.ConfigOpts
    reloading: list[Callable[[], object]] = dataclasses.field(default_factory=list)
    """What services do when the configuration was read again."""

    @functools.cached_property
    def compute_cap(self) -> AutomaticCap:
        return AutomaticCap(self._lowest_compute)

    @functools.cached_property
    def bus(self) -> Bus:
        return Bus(self.conf, compute_cap=self.compute_cap)

    def _lowest_compute(self) -> Lowest:
        """Of the compute services in all cells where their databases are known, else in our own."""
        if not (self.conf.api_database.connection or self.conf.database.connection):
            from kilonova.compute.store import RpcStore
            from kilonova.contract import context

            asked = RpcStore(self.bus, self.conf.host).call(
                context.admin(), "Service", "get_minimum_version", "nova-compute"
            )
            return Lowest(asked)
        from kilonova.db.cell import services

        def lowest(database: Any) -> int | None:
            found: int | None = database.query(services.service_minimum_version, ["nova-compute"])["nova-compute"]
            return found

        if not self.cells.has_api:
            return Lowest(lowest(self.cells.own))
        asked = self.cells.scatter(lambda cell: lowest(cell.database), self.cells.all(include_cell0=False)).values()
        known = [answer for answer in asked if isinstance(answer, int)]
        return Lowest(min(known, default=None), sure=all(answer is None or answer in known for answer in asked))

    @functools.cached_property
    def clients(self) -> Clients:
        return Clients.from_conf(self.conf)

    @functools.cached_property
    def cells(self) -> Cells:
        from kilonova.db.cells import Cells

        return Cells(self.conf)

    def reload(self) -> None:
        """Look again at what is asked for once: how new the compute services are, and which cells there are; then tell
        the services."""
        made = vars(self)
        if "compute_cap" in made:
            self.compute_cap.forget()
        if "cells" in made and self.cells.has_api:
            self.cells.refresh()
        for tell in self.reloading:
            tell()

    def close(self) -> None:
        """Connections to the bus and to databases."""
        made = vars(self)
        if "bus" in made:
            self.bus.close()
        if "cells" in made:
            self.cells.dispose()


def api(parts: Parts) -> Any:
    """The compute API as a WSGI application."""
    from kilonova.api.app import make_app

    return make_app(parts.conf, parts.cells, parts.bus, parts.clients)


def metadata(parts: Parts) -> Any:
    """The metadata service as a WSGI application."""
    from kilonova.metadata.app import make_app

    return make_app(parts.conf, parts.cells, parts.clients)


def api_server(parts: Parts) -> Service:
    from kilonova.db import own_tables
    from kilonova.wire.http.server import serve

    parts.cells.wait_for_api()
    own_tables.require_api(parts.cells)
    conf = parts.conf
    return serve(
        api(parts),
        conf.osapi_compute_listen,
        conf.osapi_compute_listen_port,
        conf.kilonova.api_threads,
        body=conf.oslo_middleware.max_request_body_size,
    )


def metadata_server(parts: Parts) -> Service:
    from kilonova.wire.http.server import plain, serve

    parts.cells.wait_for_api()
    conf = parts.conf
    return serve(
        metadata(parts),
        conf.metadata_listen,
        conf.metadata_listen_port,
        conf.kilonova.metadata_threads,
        refusal=plain,
    )


def scheduler(parts: Parts) -> Service:
    from kilonova.scheduler.service import Service

    parts.cells.wait()
    return Service(parts.conf, parts.cells, parts.bus, parts.clients, parts.conf.host)


def conductor(parts: Parts, alone: bool = True) -> list[Service]:
    """The conductor and its repair loops. `alone`: it has the process to itself."""
    from kilonova.conductor import service
    from kilonova.db import own_tables

    parts.cells.wait()
    own_tables.require(parts.cells)
    on_lapse = service.die if alone else service.fence
    made = service.Service(
        parts.conf, parts.cells, parts.bus, parts.clients, parts.conf.host, on_lapse=on_lapse, recheck=_recheck(parts)
    )
    if not parts.cells.has_api:
        return [made]
    from kilonova.reconcile.control import loops

    repair = loops.make(made.world)
    parts.reloading.append(repair.reload)
    return [made, repair]


def _recheck(parts: Parts) -> Callable[[Any, Any, Sequence[str]], None]:
    """The API's quota check, for the conductor to make once more when parallel requests are on record."""
    from kilonova.api import quota

    def recheck(ctxt: Any, spec: Any, uuids: Sequence[str]) -> None:
        each = {"cores": spec.flavor.vcpus, "ram": spec.flavor.memory_mb}
        quota.recheck_servers(parts.cells, parts.conf, ctxt, uuids, each)

    return recheck


def computes(parts: Parts) -> list[Service]:
    """One agent for each host that the process stands for."""
    return [compute(parts, host, directory) for host, directory in directories(parts.conf).items()]


def directories(conf: cfg.ConfigOpts) -> dict[str, pathlib.Path]:
    """Each host that the process stands for, with its own directory."""
    root = pathlib.Path(conf.state_path)
    return {host: root / host for host in conf.kilonova.hosts} or {conf.host: root}


def compute(parts: Parts, host: str, state_path: pathlib.Path, **options: Any) -> Service:
    """The agent of one host."""
    from kilonova.compute import service
    from kilonova.metadata.configdrive import Documents
    from kilonova.reconcile.host import loops

    made = service.make(
        parts.conf,
        parts.bus,
        host,
        parts.clients,
        state_path,
        documents=Documents(parts.conf),
        loops=loops.make,
        **options,
    )
    parts.reloading.append(made.reload)
    return made


def whole(parts: Parts) -> list[Callable[[], list[Service]]]:
    """Every service, in the order in which they need one another; each made when those before it run."""
    return [
        lambda: conductor(parts, alone=False),
        lambda: [scheduler(parts)],
        lambda: computes(parts),
        lambda: [api_server(parts), metadata_server(parts)],
    ]
