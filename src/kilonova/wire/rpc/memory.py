"""A message bus inside one process, for services that live together.

It behaves as a broker does: messages are JSON while they travel, so nothing is shared between sender and receiver; a
topic's servers take turns; a cast to nobody is lost. Work starts at once on the receiver's own threads: nothing polls.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import logging
import threading
import traceback
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from oslo_serialization import jsonutils

from kilonova.base import clock, log, present
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.wire.rpc import errors, serializer
from kilonova.wire.rpc.endpoints import Endpoint
from kilonova.wire.rpc.serializer import Decoder
from kilonova.wire.rpc.transport import Address, Message, Transport

LOG = logging.getLogger(__name__)


class Exchange:
    """The servers of one in-memory bus, by topic."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._servers: dict[str, list[MemoryServer]] = defaultdict(list)
        self._turn = itertools.count()

    def join(self, server: MemoryServer) -> None:
        """Add a server that takes messages from now on."""
        with self._changed:
            self._servers[server.topic].append(server)
            self._changed.notify_all()

    def leave(self, server: MemoryServer) -> None:
        """Remove a server."""
        with self._changed:
            if server in self._servers[server.topic]:
                self._servers[server.topic].remove(server)

    def servers(self, to: Address) -> list[MemoryServer]:
        """The servers that a message to this address reaches now."""
        with self._changed:
            found = [s for s in self._servers[to.topic] if to.server in (None, s.name)]
            if to.fanout or not found:
                return found
            return [found[next(self._turn) % len(found)]]

    def wait_for(self, to: Address, timeout: float) -> MemoryServer | None:
        """The server for a call; one that is about to start is waited for."""
        deadline = clock.monotonic() + timeout
        while not (found := self.servers(to)):
            with self._changed:
                left = deadline - clock.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(min(left, 0.5))
        return found[0]


_exchanges: dict[str, Exchange] = defaultdict(Exchange)
_lock = threading.Lock()


def exchange(name: str) -> Exchange:
    """The bus of that name in this process."""
    with _lock:
        return _exchanges[name]


class MemoryTransport(Transport):
    """Sends to the servers of one exchange."""

    def __init__(self, name: str, decoder: Decoder, workers: int = 64) -> None:
        self._exchange = exchange(name)
        self._decoder = decoder
        self._workers = workers

    def call(
        self, context: RequestContext, to: Address, message: Message, timeout: float, monitor: float | None = None
    ) -> Any:
        """See Transport."""
        began = clock.monotonic()
        server = self._exchange.wait_for(to, timeout)
        if server is None:
            raise errors.RpcTimeout(f"nobody serves {to.topic} ({to.server or 'any server'})")
        future = server.deliver(_packed(context, message))
        try:
            answer = json.loads(future.result(max(0.0, timeout - (clock.monotonic() - began))))
        except concurrent.futures.TimeoutError:
            raise errors.RpcTimeout(f"no answer to {message.method} from {server.name} in {timeout} s") from None
        except concurrent.futures.CancelledError:
            raise errors.RpcTimeout(f"{server.name} stopped before it took {message.method}") from None
        if "failure" in answer:
            raise _raised(answer["failure"])
        return self._decoder.decode(context, answer["result"])

    def cast(self, context: RequestContext, to: Address, message: Message) -> None:
        """See Transport."""
        packed = _packed(context, message)
        servers = self._exchange.servers(to)
        if not servers:
            LOG.warning("cast %s to %s (%s) is lost: nobody serves it", message.method, to.topic, to.server or "any")
        for server in servers:
            server.deliver(packed)

    def server(self, topic: str, name: str, endpoints: Sequence[Endpoint], decoder: Decoder) -> MemoryServer:
        """See Transport."""
        return MemoryServer(self._exchange, topic, name, endpoints, decoder, self._workers)


class MemoryServer:
    """Carries out messages on threads of its own."""

    def __init__(
        self,
        exchange: Exchange,
        topic: str,
        name: str,
        endpoints: Sequence[Endpoint],
        decoder: Decoder,
        workers: int,
    ) -> None:
        self.topic = topic
        self.name = name
        self._exchange = exchange
        self._endpoints = endpoints
        self._decoder = decoder
        self._workers = workers
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._under_way: set[concurrent.futures.Future[str]] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """See RpcServer."""
        self._pool = concurrent.futures.ThreadPoolExecutor(self._workers, f"rpc-{self.topic}-{self.name}")
        self._exchange.join(self)

    def stop(self) -> None:
        """See RpcServer."""
        self._exchange.leave(self)

    def wait(self, timeout: float | None = None) -> None:
        """See RpcServer."""
        with self._lock:
            pending = list(self._under_way)
        concurrent.futures.wait(pending, timeout)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def deliver(self, packed: str) -> concurrent.futures.Future[str]:
        """Take a message; the future gives the answer as JSON."""
        assert self._pool is not None
        answer: concurrent.futures.Future[str] = concurrent.futures.Future()
        with self._lock:
            self._under_way.add(answer)
        answer.add_done_callback(self._done)
        try:
            taken = self._pool.submit(self._carry_out, packed, answer)
        except RuntimeError:
            _never(answer)
        else:
            # One that is dropped from the pool's queue has no answer any more, nor one that cannot be read.
            taken.add_done_callback(lambda each: _never(answer) if each.cancelled() or each.exception() else None)
        return answer

    def _done(self, future: concurrent.futures.Future[str]) -> None:
        with self._lock:
            self._under_way.discard(future)

    def _carry_out(self, packed: str, answer: concurrent.futures.Future[str]) -> None:
        message = json.loads(packed)
        with present.working(serializer.decode_context(message["context"])) as context:
            self._answer(context, message, answer)

    def _answer(self, context: RequestContext, message: dict[str, Any], answer: concurrent.futures.Future[str]) -> None:
        try:
            endpoint = self._endpoint(message)
            args = {name: self._decoder.decode(context, value) for name, value in message["args"].items()}
            result = endpoint.methods[message["method"]](context, **args)
        except Exception as exc:  # noqa: BLE001 - whatever a method raises is its answer
            answer.set_result(self._failed(message["method"], exc))
            return
        if isinstance(result, concurrent.futures.Future):
            result.add_done_callback(lambda done: self._answer_later(message["method"], done, answer))
        else:
            answer.set_result(self._answered(message["method"], result))

    def _answer_later(
        self, method: str, done: concurrent.futures.Future[Any], answer: concurrent.futures.Future[str]
    ) -> None:
        if done.cancelled():
            _never(answer)
        elif (exc := done.exception()) is None:
            answer.set_result(self._answered(method, done.result()))
        elif isinstance(exc, Exception):
            answer.set_result(self._failed(method, exc))
        else:
            # The process ends, and the work is taken up by the next one: nobody can say yet how it went.
            _never(answer)

    def _answered(self, method: str, result: Any) -> str:
        try:
            return jsonutils.dumps({"result": serializer.encode(result)})
        except Exception as exc:  # noqa: BLE001 - an answer that cannot be sent is an error of the method
            return self._failed(method, exc)

    def _failed(self, method: str, exc: Exception) -> str:
        _log(method, self._endpoints, exc)
        return _failure(exc)

    def _endpoint(self, message: dict[str, Any]) -> Endpoint:
        for endpoint in self._endpoints:
            if endpoint.understands(message["namespace"], message["version"]) and message["method"] in endpoint.methods:
                return endpoint
        raise errors.RpcUnsupported(f"{message['method']} {message['version']} is not served by {self.topic}")


def _packed(context: RequestContext, message: Message) -> str:
    return jsonutils.dumps(
        {
            "context": serializer.encode_context(context),
            "method": message.method,
            "namespace": message.namespace,
            "version": message.version,
            "args": serializer.encode(message.args),
        }
    )


def _never(answer: concurrent.futures.Future[str]) -> None:
    """There will be no answer: whoever waits for it hears so."""
    if answer.cancel():
        answer.set_running_or_notify_cancel()


def _log(method: str, endpoints: Sequence[Endpoint], exc: Exception) -> None:
    if any(endpoint.expects(method, exc) for endpoint in endpoints):
        LOG.debug("%s answered %s: %s", method, type(exc).__name__, exc)
    else:
        LOG.error("%s failed: %s", method, exc, exc_info=log.trace(exc))


def _failure(exc: Exception) -> str:
    failure = {
        "class": type(exc).__name__,
        "message": str(exc),
        "kwargs": getattr(exc, "kwargs", {}),
        "traceback": "".join(traceback.format_exception(exc)),
    }
    return jsonutils.dumps({"failure": failure}, default=_text)


def _text(value: Any) -> str:
    return str(value)


def _raised(failure: dict[str, Any]) -> Exception:
    if failure["class"] == errors.RpcUnsupported.__name__:
        return errors.RpcUnsupported(failure["message"])
    if hasattr(exceptions, failure["class"]):
        values = failure["kwargs"] if isinstance(failure["kwargs"], dict) else {}
        return errors.from_wire(failure["class"], failure["message"], failure["traceback"], values)
    return errors.from_wire(failure["class"], failure["message"], failure["traceback"])
