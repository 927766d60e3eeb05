"""How an accepted operation is carried out: journal, lane, action event, fault, task state.

The order is that of Nova's agents: a failure is recorded as the instance's fault, ends the action's event with an
error, and gives the task state back, unless something else took the instance over.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kilonova.base import ids, log, present
from kilonova.clients.patience import patient
from kilonova.compute.journal import book, payloads
from kilonova.compute.lanes import Closed, Preempted, Turn
from kilonova.contract import context, exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Task

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)


@dataclasses.dataclass
class Work:
    """One operation under way. `args` are the RPC's arguments by name."""

    agent: Agent
    ctxt: RequestContext
    instance: objects.Instance
    args: Mapping[str, Any]
    turn: Turn
    entry: book.Entry
    resumed: bool = False
    """An earlier run of the agent began it."""

    def step(self, name: str) -> None:
        """Note how far the operation has come; gives way here when a delete waits. Raises Preempted."""
        self.agent.journal.step(self.entry, name)
        self.turn.check()

    def check_wanted(self) -> None:
        """Asked while another service is waited for. Raises Preempted for a delete, Closed when the agent ends."""
        if self.agent.events.closed:
            raise Closed
        self.turn.check()


@dataclasses.dataclass(frozen=True)
class Operation:
    """An RPC method that changes an instance. `perform` returns a word for the journal."""

    method: str
    event: str
    perform: Callable[[Work], str]
    kind: str | None = None
    preempts: bool = False
    frees: bool = False
    """Makes room on the host: it begins on a full disk, too, where nothing can be written down. Whoever asked for it
    asks again until it is done."""
    retryable: bool = True
    """A repeat (same request, same instance) of one that failed begins again; else only if it came to no step."""
    reverts: bool = True
    """Gives the task state back on failure; a build and a delete decide that themselves."""
    recover: Callable[[Work], str] | None = None
    """How one that a dead agent left open is taken up; `perform` when unset."""
    repeat: Callable[[Work], None] | None = None
    """What to do when the same request comes again after it was done; nothing when unset."""


class Runner:
    """Accepts operations and runs them on their lanes."""

    def __init__(self, agent: Agent, operations: Mapping[str, Operation]) -> None:
        self._agent = agent
        self._operations = operations
        self._lock = threading.Lock()
        self._inside: dict[int, concurrent.futures.Future[Any]] = {}

    def accept(
        self,
        operation: Operation,
        ctxt: RequestContext,
        instance: objects.Instance,
        args: Mapping[str, Any],
        resumed: bool = False,
    ) -> concurrent.futures.Future[Any]:
        """Journal and queue it; a repeat of what was accepted before gets that one's outcome.

        `resumed`: it was begun by a run of the agent that left no entry.
        """
        payload = payloads.pack(ctxt, args)
        key = book.Key(ctxt.request_id, operation.method, instance.uuid, _migration(args))
        entry = self._write_down(operation, key, payload)
        if entry.fresh:
            return self._queue(operation, ctxt, instance, args, entry, resumed)
        LOG.info(
            "%s of instance %s in request %s is %s already",
            operation.method,
            instance.uuid,
            ctxt.request_id,
            entry.state,
        )
        with self._lock:
            running = self._inside.get(entry.id)
        if running is not None:
            return running
        if (repeat := operation.repeat) is None:
            return _finished(entry.result)

        def again(turn: Turn) -> str | None:
            repeat(Work(self._agent, ctxt, instance, args, turn, entry))
            return entry.result

        return self._agent.lanes.submit(instance.uuid, again)

    def _write_down(self, operation: Operation, key: book.Key, payload: Mapping[str, Any]) -> book.Entry:
        journal = self._agent.journal
        try:
            entry = journal.accept(key, payload)
            if not entry.fresh and entry.state == book.FAILED and (operation.retryable or entry.step is None):
                entry = journal.reopen(entry, payload)
            return entry
        except book.FullError as exc:
            if not operation.frees:
                raise
            LOG.error("%s of instance %s begins all the same: %s", operation.method, key.instance_uuid, exc)
            return journal.unwritten(key)

    def of_our_own(
        self, method: str, instance: objects.Instance, args: Mapping[str, Any], resumed: bool
    ) -> concurrent.futures.Future[Any]:
        """Accept an operation under a new request id."""
        ctxt = context.admin()
        ctxt.request_id = ids.new_request_id()
        return self.accept(self._operations[method], ctxt, instance, {"instance": instance, **args}, resumed)

    def resume(self, operation: Operation, entry: book.Entry) -> concurrent.futures.Future[Any]:
        """Take up an operation that an earlier run of the agent left open."""
        assert entry.payload is not None
        ctxt, args = payloads.unpack(entry.payload)
        return self._queue(operation, ctxt, args["instance"], args, entry, resumed=True)

    def wait(self, timeout: float) -> bool:
        """Wait for what is queued; True when all ended in time."""
        with self._lock:
            pending = list(self._inside.values())
        return not concurrent.futures.wait(pending, timeout).not_done

    def _queue(
        self,
        operation: Operation,
        ctxt: RequestContext,
        instance: objects.Instance,
        args: Mapping[str, Any],
        entry: book.Entry,
        resumed: bool = False,
    ) -> concurrent.futures.Future[Any]:
        def job(turn: Turn) -> str:
            with present.working(ctxt):
                return self._perform(operation, Work(self._agent, ctxt, instance, args, turn, entry, resumed))

        if operation.preempts:
            # Before it is queued: the operation itself allows waiting again, and may begin at once.
            self._agent.events.refuse(instance.uuid)
        with self._lock:
            future = self._agent.lanes.submit(instance.uuid, job, kind=operation.kind, preempt=operation.preempts)
            self._inside[entry.id] = future
        future.add_done_callback(lambda _: self._leave(entry.id))
        return future

    def _leave(self, ident: int) -> None:
        with self._lock:
            self._inside.pop(ident, None)

    def _perform(self, operation: Operation, work: Work) -> str:
        journal = self._agent.journal
        perform = (operation.recover if work.resumed else None) or operation.perform
        try:
            with recorded(work, operation), patient(self._agent.conf.kilonova.service_patience, work.check_wanted):
                result = perform(work)
        except Overtaken as exc:
            why = str(exc.__cause__) or "preempted"
            LOG.info("%s of instance %s ended early: %s", operation.method, work.instance.uuid, why)
            journal.finish(work.entry, book.DONE, "gone")
            return "gone"
        except Exception as exc:
            trace = log.trace(exc)
            LOG.error("%s of instance %s failed: %s", operation.method, work.instance.uuid, exc, exc_info=trace)
            journal.finish(work.entry, book.FAILED, f"{type(exc).__name__}: {exc}")
            raise
        journal.finish(work.entry, book.DONE, result)
        return result


@contextlib.contextmanager
def recorded(work: Work, operation: Operation) -> Iterator[None]:
    """The action's event around the body; on failure the fault, and the task state given back. Raises Overtaken."""
    with event(work, operation.event):
        try:
            yield
        except Exception as exc:
            if _overtaken(work, exc):
                raise Overtaken from exc
            _record_fault(work, exc)
            if operation.reverts and not isinstance(exc, exceptions.UnexpectedTaskStateError):
                revert_task_state(work)
            raise


def _overtaken(work: Work, error: Exception) -> bool:
    """Whether a delete was faster. That the guest alone is missing on its host is a failure like others."""
    if isinstance(error, Preempted):
        return True
    if not isinstance(error, exceptions.InstanceNotFound):
        return False
    try:
        work.agent.store.instance(work.ctxt, work.instance.uuid, ())
    except exceptions.InstanceNotFound:
        return True
    return False


@contextlib.contextmanager
def event(work: Work, name: str) -> Iterator[None]:
    """The step of the instance's action that this is; an action that is not there (any more) is not missed."""
    agent, ctxt, uuid = work.agent, work.ctxt, work.instance.uuid
    error: BaseException | None = None
    # What an earlier run of the agent began is the same event still.
    started = work.resumed or _without_action(lambda: agent.store.event_start(ctxt, uuid, name, agent.host))
    try:
        yield
    except BaseException as exc:
        failed = exc.__cause__ if isinstance(exc, Overtaken) else exc
        error = None if isinstance(failed, Preempted) else failed
        raise
    finally:
        if started and not isinstance(error, Closed):
            told = str(error) if isinstance(error, Explained) else None
            _without_action(lambda: agent.store.event_finish(ctxt, uuid, name, error, told))


def _without_action(call: Callable[[], None]) -> bool:
    """Operations that no user asked for (at start-up, by a repair loop) have no action to report to.

    An event that cannot be recorded keeps no operation from being performed.
    """
    try:
        call()
    except (exceptions.InstanceActionNotFound, exceptions.InstanceActionEventNotFound, exceptions.InstanceNotFound):
        return False
    except Exception:
        LOG.exception("an event could not be recorded")
        return False
    return True


def _record_fault(work: Work, error: Exception) -> None:
    if isinstance(error, Explained):
        return
    try:
        work.agent.store.fault(work.ctxt, work.instance.uuid, work.agent.host, error)
    except exceptions.NotFound:
        LOG.debug("instance %s is gone, its fault is not recorded", work.instance.uuid)


def revert_task_state(work: Work) -> None:
    """Let the user act on the instance again, unless a delete has it by now."""
    store, instance = work.agent.store, work.instance
    instance.obj_reset_changes()
    instance.task_state = None
    try:
        now = store.instance(work.ctxt, instance.uuid, ()).task_state
        if now not in (Task.DELETING, Task.SOFT_DELETING):
            store.save(work.ctxt, instance, expected=now)
    except (exceptions.InstanceNotFound, exceptions.UnexpectedTaskStateError) as exc:
        LOG.info("task state of instance %s is not given back: %s", instance.uuid, exc)
    work.agent.tracker.update(instance)


class Overtaken(Exception):
    """A delete was faster. `__cause__` is what the operation noticed of it."""


class Explained(Exception):
    """The operation failed, and its fault is on record already. The message is for users, `__cause__` what failed."""


def _migration(args: Mapping[str, Any]) -> str:
    migration = args.get("migration")
    return str(migration.uuid) if migration is not None and migration.obj_attr_is_set("uuid") else ""


def _finished(result: Any) -> concurrent.futures.Future[Any]:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_result(result)
    return future
