"""Answers that come later: a method that returned a future holds none of the server's threads until it is done.

oslo.messaging answers a call on the thread that carried it out. Its server hands each message to `_process_incoming`,
where the message is given another way of answering.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from oslo_messaging.rpc.server import RPCServer

from kilonova.base import log
from kilonova.wire.rpc import errors, serializer

LOG = logging.getLogger(__name__)

ANSWERERS = 4
"""Threads that send such answers: the one that ends the work has better things to do than to wait for a broker."""


class Promise:
    """A future as the answer of a method; `expects` says which of its errors are ordinary."""

    def __init__(self, future: concurrent.futures.Future[Any], expects: Callable[[Exception], bool]) -> None:
        self.future = future
        self.expects = expects


class LaterServer(RPCServer):
    """Sends the outcome of a promise when it is there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._answerers = concurrent.futures.ThreadPoolExecutor(ANSWERERS, thread_name_prefix="rpc-answer")

    def close_later(self) -> None:
        """The server ends: answers that are not sent yet are not awaited any more."""
        self._answerers.shutdown(wait=False)

    def _process_incoming(self, incoming: Sequence[Any]) -> None:
        super()._process_incoming([_Patient(message, self._answerers) for message in incoming])


class _Patient:
    """A message that can be answered with a promise."""

    def __init__(self, message: Any, answerers: concurrent.futures.Executor) -> None:
        self._message = message
        self._answerers = answerers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        if not isinstance(reply, Promise):
            self._message.reply(reply, failure)
            return
        done = threading.Event()
        if self._message.client_timeout:
            threading.Thread(target=self._keep_alive, args=(done,), name="rpc-alive", daemon=True).start()
        reply.future.add_done_callback(lambda _: self._done(reply, done))

    def _keep_alive(self, done: threading.Event) -> None:
        """A caller that wants to hear that its call is worked on hears so twice in its time."""
        while not done.wait(max(1.0, int(self._message.client_timeout) / 2)):
            try:
                self._message.heartbeat()
            except Exception as exc:  # noqa: BLE001 - a caller that is out of reach gives up by itself
                LOG.debug("a caller does not hear that its call is worked on: %s", exc)
                return

    def _done(self, promise: Promise, done: threading.Event) -> None:
        done.set()
        error = None if promise.future.cancelled() else promise.future.exception()
        if isinstance(error, Exception):
            ordinary = promise.expects(error)
            level = logging.DEBUG if ordinary else logging.ERROR
            LOG.log(level, "a call failed: %s", error, exc_info=None if ordinary else log.trace(error))
        try:
            self._answerers.submit(self._answer, promise)
        except RuntimeError:
            LOG.info("an answer is not sent, the server has ended")

    def _answer(self, promise: Promise) -> None:
        """A promise that was broken (the server's work was dropped) has no answer: its caller asks again."""
        if promise.future.cancelled():
            return
        try:
            if (exc := promise.future.exception()) is None:
                self._message.reply(serializer.encode(promise.future.result()))
                return
            if not isinstance(exc, Exception):
                # The process ends, and the work is taken up by the next one: nobody can say yet how it went.
                return
            known = errors.for_wire(exc)
            self._message.reply(failure=(type(known), known, known.__traceback__))
        except Exception:
            LOG.exception("an answer could not be sent")
