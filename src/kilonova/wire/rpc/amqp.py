"""A message broker, spoken to by oslo.messaging (RabbitMQ and whatever else has a driver)."""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_messaging._metrics import client as metrics
from oslo_messaging._tracing import client as tracing
from oslo_messaging.rpc import dispatcher

from kilonova.base import log, present
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.wire.rpc import errors, later, serializer
from kilonova.wire.rpc.endpoints import Endpoint, Method
from kilonova.wire.rpc.serializer import Decoder
from kilonova.wire.rpc.transport import Address, Message, RpcServer, Transport

LOG = logging.getLogger(__name__)

CONNECTION_RETRIES = 6
"""Tries to reach a broker that is away before a message is given up; by default 1 + 3 + 5 + ... = 36 seconds.

Nova tries for ever: a request then hangs as long as the broker is down, and its caller cannot put a server's state
back.
"""

STOP_SECONDS = 3.0
"""So long a server is waited for that is told to take no more, and a connection that is to be closed. While the broker
is away they try to reach it, and what else ends a service must not wait for that.
"""


class AmqpTransport(Transport):
    """One broker; connections are made when first needed and shared by all threads."""

    def __init__(self, conf: cfg.ConfigOpts, url: str | None, decoder: Decoder) -> None:
        # oslo.messaging reads these from our configuration but registers them only on its global one.
        conf.register_opts(metrics.oslo_messaging_metrics, group="oslo_messaging_metrics")
        conf.register_opts(tracing.oslo_messaging_tracing, group="oslo_messaging_tracing")
        self._transport = messaging.get_rpc_transport(conf, url=url, allowed_remote_exmods=[])
        hosts = messaging.TransportURL.parse(conf, url).hosts
        # oslo.messaging says that a connection failed, not where to.
        LOG.info("the message bus is at %s", ", ".join(f"{host.hostname}:{host.port or 5672}" for host in hosts))
        self._serializer = _Serializer(decoder)
        self._clients: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def call(
        self, context: RequestContext, to: Address, message: Message, timeout: float, monitor: float | None = None
    ) -> Any:
        """See Transport."""
        client = self._client(to.topic, message)
        options: dict[str, Any] = {"timeout": timeout} | ({"call_monitor_timeout": monitor} if monitor else {})
        prepared = client.prepare(server=to.server, version=message.version, retry=CONNECTION_RETRIES, **options)
        try:
            return prepared.call(context, message.method, **message.args)
        except (exceptions.NovaException, NotImplementedError):
            raise
        except Exception as exc:
            raise _failed(exc) from exc

    def cast(self, context: RequestContext, to: Address, message: Message) -> None:
        """See Transport."""
        client = self._client(to.topic, message)
        prepared = client.prepare(
            server=to.server, version=message.version, fanout=to.fanout or None, retry=CONNECTION_RETRIES
        )
        try:
            prepared.cast(context, message.method, **message.args)
        except Exception as exc:
            if _is_lost_connection(exc) or isinstance(exc, messaging.MessagingTimeout):
                raise errors.RpcUnreachable(str(exc)) from exc
            raise

    def server(self, topic: str, name: str, endpoints: Sequence[Endpoint], decoder: Decoder) -> RpcServer:
        """See Transport."""
        served = messaging.get_rpc_server(
            self._transport,
            messaging.Target(topic=topic, server=name),
            [_OsloEndpoint(endpoint) for endpoint in endpoints],
            serializer=_Serializer(decoder),
            access_policy=dispatcher.DefaultRPCAccessPolicy,
            server_cls=_OsloServer,
        )
        return _AmqpServer(served)

    def close(self) -> None:
        """See Transport."""
        _at_most(STOP_SECONDS, self._transport.cleanup, "rpc-close")

    def _client(self, topic: str, message: Message) -> Any:
        major = message.version.partition(".")[0]
        key = (topic, message.namespace, major)
        with self._lock:
            if key not in self._clients:
                target = messaging.Target(topic=topic, namespace=message.namespace, version=f"{major}.0")
                self._clients[key] = messaging.get_rpc_client(self._transport, target, serializer=self._serializer)
            return self._clients[key]


class _AmqpServer:
    def __init__(self, served: Any) -> None:
        self._served = served

    def start(self) -> None:
        self._served.start()

    def stop(self) -> None:
        _at_most(STOP_SECONDS, self._served.stop, "rpc-stop")

    def wait(self, timeout: float | None = None) -> None:
        self._served.close_later()
        # oslo.messaging can wait for its own lock with a bound, but not for running methods: a thread can.
        _at_most(timeout, self._served.work_ended, "rpc-wait")
        _at_most(STOP_SECONDS, self._served.wait, "rpc-end")


def _at_most(seconds: float | None, job: Callable[[], object], name: str) -> None:
    waiting = threading.Thread(target=job, name=name, daemon=True)
    waiting.start()
    waiting.join(seconds)


class _Serializer(messaging.Serializer):
    """Our encoding under oslo.messaging's interface."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def serialize_entity(self, ctxt: RequestContext, entity: Any) -> Any:
        if isinstance(entity, later.Promise):
            return entity
        return serializer.encode(entity)

    def deserialize_entity(self, ctxt: RequestContext, entity: Any) -> Any:
        return self._decoder.decode(ctxt, entity)

    def serialize_context(self, ctxt: RequestContext) -> dict[str, Any]:
        return serializer.encode_context(ctxt)

    def deserialize_context(self, ctxt: Mapping[str, Any]) -> RequestContext:
        context = serializer.decode_context(ctxt)
        present.become(context)
        return context


class _OsloServer(later.LaterServer):
    """oslo.messaging's server, whose threads work for a message's context and after it for nobody."""

    def work_ended(self) -> None:
        """Wait for the methods that run, and for nothing that the broker has to say."""
        if self._work_executor is not None:
            self._work_executor.shutdown(wait=True)

    def _process_incoming(self, incoming: Any) -> None:
        with present.working(None):
            super()._process_incoming(incoming)


class _OsloEndpoint:
    """An endpoint as oslo.messaging's dispatcher looks at it: a target, and methods as attributes."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.target = messaging.Target(version=endpoint.api.version, namespace=endpoint.api.namespace)
        for name, method in endpoint.methods.items():
            setattr(self, name, _answering(method, functools.partial(endpoint.expects, name)))


def _answering(method: Method, expects: Callable[[Exception], bool]) -> Callable[..., Any]:
    """Exceptions leave under names that peers know; expected ones without a traceback in the log."""

    @functools.wraps(method)
    def call(ctxt: RequestContext, **kwargs: Any) -> Any:
        try:
            result = method(ctxt, **kwargs)
            return later.Promise(result, expects) if isinstance(result, concurrent.futures.Future) else result
        except Exception as exc:
            expected = expects(exc)
            known = errors.for_wire(exc)
            if expected or log.trace(exc) is None:
                # oslo.messaging logs all others with their traceback.
                if not expected:
                    LOG.error("%s failed: %s", method.__name__, exc)
                raise messaging.ExpectedException from known
            raise

    return call


def _failed(exc: Exception) -> Exception:
    """What a failed call means to us."""
    if isinstance(exc, messaging.MessagingTimeout):
        return errors.RpcTimeout(str(exc))
    if isinstance(exc, messaging.RemoteError):
        return _answered(exc)
    if isinstance(exc, messaging.RPCDispatcherError):
        return errors.RpcUnsupported(str(exc))
    if _is_lost_connection(exc):
        return errors.RpcUnreachable(str(exc))
    return errors.RpcRemoteError(type(exc).__name__.removesuffix("_Remote"), str(exc))


def _is_lost_connection(exc: Exception) -> bool:
    """Whether the broker could not be reached: drivers let their libraries' own exceptions through.

    Built-in exceptions of a remote method come back as themselves, with the remote traceback in their text.
    """
    if isinstance(exc, messaging.MessageDeliveryFailure | messaging.MessageUndeliverable):
        return True
    if "Traceback (most recent call last)" in str(exc):
        return False
    return isinstance(exc, OSError) or type(exc).__module__.partition(".")[0] in ("amqp", "kombu")


def _answered(exc: Any) -> Exception:
    kind, message = str(exc.exc_type), str(exc.value)
    if kind in ("UnsupportedVersion", "NoSuchMethod"):
        return errors.RpcUnsupported(message)
    lines = exc.traceback if isinstance(exc.traceback, list) else [str(exc.traceback or "")]
    return errors.from_wire(kind, message, "".join(lines), errors.noted_values(lines))
