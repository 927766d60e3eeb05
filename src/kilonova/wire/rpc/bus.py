"""The message bus of a service: sends to and serves Nova's interfaces, over a broker or inside the process."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, Final

from oslo_config import cfg

from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import compute, compute_task, compute_v5, conductor, scheduler
from kilonova.contract.rpc.table import Api
from kilonova.wire.rpc.endpoints import endpoints
from kilonova.wire.rpc.serializer import Decoder
from kilonova.wire.rpc.transport import Address, Message, RpcServer, Transport

SERVED: Mapping[str, tuple[Api, ...]] = {
    "compute": (compute.API, compute_v5.API),
    "conductor": (conductor.API, compute_task.API),
    "scheduler": (scheduler.API,),
}
"""What a service of that kind serves on its topic."""


class Bus:
    """One message bus, and by `at` those of other cells.

    `url` is an oslo.messaging URL; None is that of the configuration. `fake://` is a bus inside the process, shared by
    all who name the same URL there. `compute_cap` says what `[upgrade_levels] compute = auto` comes to.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, url: str | None = None, compute_cap: Callable[[], str | None] | None = None
    ) -> None:
        self.conf = conf
        self.compute_cap = compute_cap
        _register(conf)
        self.url = url or conf.transport_url
        self._decoder = Decoder(self._backport)
        self._made: Transport | None = None
        self._others: dict[str, Bus] = {}
        self._lock = threading.RLock()

    @property
    def transport(self) -> Transport:
        """The connection to the bus, made when first needed."""
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made

    def at(self, url: str | None) -> Bus:
        """The bus at another URL (that of a cell); None or our own URL is this one."""
        if url is None or _name(url) == _name(self.url):
            return self
        with self._lock:
            if url not in self._others:
                self._others[url] = Bus(self.conf, url, self.compute_cap)
            return self._others[url]

    def call(
        self,
        context: RequestContext,
        to: Address,
        message: Message,
        timeout: float | None = None,
        monitor: float | None = None,
    ) -> Any:
        """Ask and wait, by default rpc_response_timeout seconds. Errors: see Transport.call."""
        patience = self.conf.rpc_response_timeout if timeout is None else timeout
        return self.transport.call(context, to, message, patience, monitor)

    def cast(self, context: RequestContext, to: Address, message: Message) -> None:
        """Tell, and do not wait. Errors: see Transport.cast."""
        self.transport.cast(context, to, message)

    def serve(
        self, api: str, server: str, handlers: Sequence[object], topic: str | None = None, alt: bool = True
    ) -> Servers:
        """A server of one kind of service ("compute", "conductor", "scheduler") under a server name, not yet started.

        A method `m` of the interface is carried out by the first handler that has it, called as
        `handler.m(ctxt, **arguments)`. A future that it returns is answered with its outcome once that is there; until
        then no thread of the server waits for it.

        A compute service also serves the topic on which hosts answer each other while they shut down, unless `topic`
        names another or `alt` is false.
        """
        apis = SERVED[api]
        offered = endpoints(apis, handlers)
        topics = [topic or apis[0].topic]
        if alt and topic is None and apis[0].alt_topic:
            topics.append(apis[0].alt_topic)
        return Servers([self.transport.server(t, server, offered, self._decoder) for t in topics])

    def close(self) -> None:
        """Close the connections of this bus and of those reached through it."""
        with self._lock:
            for bus in self._others.values():
                bus.close()
            if self._made is not None:
                self._made.close()

    def _connect(self) -> Transport:
        if self.url and self.url.partition(":")[0] == "fake":
            from kilonova.wire.rpc.memory import MemoryTransport

            return MemoryTransport(_name(self.url), self._decoder, self.conf.executor_thread_pool_size)

        from kilonova.wire.rpc.amqp import AmqpTransport

        return AmqpTransport(self.conf, self.url, self._decoder)

    def _backport(self, context: RequestContext, primitive: dict[str, Any], versions: Mapping[str, str]) -> Any:
        args = {"objinst": primitive, "object_versions": dict(versions)}
        api = conductor.API
        message = Message("object_backport_versions", args, "3.0", api.namespace)
        return self.call(context, Address(api.topic), message)


class Servers:
    """Several topics served as one; the first is the one on which new work comes."""

    def __init__(self, servers: Sequence[RpcServer]) -> None:
        self.servers = servers

    def start(self) -> None:
        for server in self.servers:
            server.start()

    def refuse(self) -> None:
        """Take no more new work. What others say to the work under way still arrives, on the other topic."""
        self.servers[0].stop()

    def stop(self) -> None:
        _together([server.stop for server in self.servers])

    def wait(self, timeout: float | None = None) -> None:
        _together([functools.partial(server.wait, timeout) for server in self.servers])


def _together(jobs: Sequence[Callable[[], object]]) -> None:
    """Do all at once: a broker's server takes a second to notice that it is to stop."""
    threads = [threading.Thread(target=job, daemon=True) for job in jobs[1:]]
    for thread in threads:
        thread.start()
    jobs[0]()
    for thread in threads:
        thread.join()


def _name(url: str | None) -> str:
    return (url or "").rstrip("/")


_SCHEMES: Final = ("fake", "rabbit")
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")


def wrong(conf: cfg.ConfigOpts) -> Iterator[str]:
    """What makes the configured URL none, without any of it: there is a password in it."""
    scheme, found, rest = (Bus(conf).url or "rabbit://").partition("://")
    if not found or scheme not in (*_SCHEMES, *metadata.entry_points(group="oslo.messaging.drivers").names):
        yield "[DEFAULT] transport_url: it begins with the kind of the bus, as in rabbit://user:password@host:5672/"
        return
    if not all(_HOST.fullmatch(each.rpartition("@")[2]) for each in rest.partition("/")[0].split(",")):
        yield "[DEFAULT] transport_url: a port is no number; in a password @ and / are written as %40 and %2F"


def _register(conf: cfg.ConfigOpts) -> None:
    """Options of oslo.messaging that we read ourselves, and its defaults as Nova's services have them."""
    import oslo_messaging
    from oslo_messaging import server as oslo_server
    from oslo_messaging.rpc import client as oslo_client

    oslo_messaging.set_transport_defaults("nova")
    oslo_messaging.TransportURL.parse(conf, "fake://")
    conf.register_opts(oslo_client._client_opts)
    conf.register_opts(oslo_server._pool_opts)
