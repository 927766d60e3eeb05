"""Where flows are kept: the rows, and what an engine may do with them.

A store is one database. Times are whole milliseconds since 1970-01-01 UTC: they
compare the same way in every database. Every write by whoever runs a flow
carries the lease epoch it took the flow with, so a worker that lost its lease
cannot write any more (:class:`LeaseLost`).

Columns of `kn_flow` are the fields of :class:`FlowRow`, those of `kn_flow_event` the fields of :class:`FlowEvent`.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec


class State(enum.StrEnum):
    """Where a flow is. `offered`: no conductor was told of it, though one may be looking; the last four are the end."""

    OFFERED = "offered"
    RUNNING = "running"
    RESTING = "resting"
    UNWINDING = "unwinding"
    DONE = "done"
    UNWOUND = "unwound"
    STUCK = "stuck"
    ABANDONED = "abandoned"


LIVE: tuple[State, ...] = (State.OFFERED, State.RUNNING, State.RESTING, State.UNWINDING)
"""States in which a conductor still has something to do; a stuck flow waits for an operator or for `stuck_flows`."""

ENDED: tuple[State, ...] = (State.DONE, State.UNWOUND, State.ABANDONED)


class EventKind(enum.StrEnum):
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRIED = "retried"
    RESTED = "rested"
    RESENT = "resent"
    UNDONE = "undone"
    UNDO_FAILED = "undo_failed"
    ENDED = "ended"
    ABANDONED = "abandoned"


class LeaseLost(Exception):
    """Somebody else holds the flow, or it ended: stop at once and write nothing."""


class ChildRefused(Exception):
    """A child flow could not be put down: its subject has an unfinished flow in that slot."""


class Scope(msgspec.Struct, frozen=True):
    """What a worker may take of one operation's flows: those that it knows every stage of, and can go on with now.

    `version`: the newest that it knows; `stages`: the positions that it knows (None: any). At the stages of `waiting`
    (None among them: before the first one) something is not there that they need: a flow that stands there is taken to
    be ended only, when it is unwinding or its deadline has passed.
    """

    op: str
    version: int = 1
    stages: Sequence[str] | None = None
    waiting: Sequence[str | None] = ()


class NewFlow(msgspec.Struct, frozen=True):
    """A flow to be put down.

    `grace` is the time in seconds left to whoever was sent the work by a cast, before a conductor takes it by itself.
    `slot` names what must be single: a subject has at most one unfinished flow per slot (default: the operation).
    `frame` is what the steps know, as JSON; `sealed` the part that nobody may read in the database (flow/seal.py).
    `version` is the lowest one of the operation that understands the frame.
    """

    op: str
    subject_id: str
    frame: Mapping[str, Any]
    grace: float = 0.0
    deadline: float | None = None
    request_id: str | None = None
    project_id: str | None = None
    parent_id: str | None = None
    slot: str | None = None
    sealed: str | None = None
    version: int = 1
    id: str = msgspec.field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def active_key(self) -> str:
        return f"{self.slot or self.op}:{self.subject_id}"


class FlowRow(msgspec.Struct, frozen=True):
    """One row of `kn_flow`.

    `position` names the step that is next (while unwinding: the step whose undo is next; None before the first step).
    `tries` counts failed tries of that step. `active_key` is unique and None once the flow has ended. `code_version` is
    the lowest version of the operation's code that may go on from here.
    """

    id: str
    op: str
    subject_id: str
    active_key: str | None
    parent_id: str | None
    state: State
    position: str | None
    frame: dict[str, Any]
    sealed: str | None
    reason: str | None
    tries: int
    code_version: int
    lease_owner: str | None
    lease_epoch: int
    lease_until: int
    wake_at: int
    deadline_at: int | None
    request_id: str | None
    project_id: str | None
    created_at: int
    updated_at: int
    ended_at: int | None


class FlowEvent(msgspec.Struct, frozen=True):
    """One row of `kn_flow_event`, the append-only log of a flow. `id` is None until stored."""

    flow_id: str
    at: int
    kind: EventKind
    step: str | None = None
    tries: int = 0
    duration_ms: int | None = None
    worker: str | None = None
    epoch: int = 0
    detail: str | None = None
    id: int | None = None


class Change(msgspec.Struct, frozen=True):
    """What a worker writes at a step's end. Fields left None stay; `frame` is JSON; `release` hands the lease back.

    A signal that came while the worker ran wins over `wake_at`: the flow is then due at once. State `offered` stays as
    it is stored: the cast may have arrived meanwhile.
    """

    state: State
    position: str | None
    wake_at: int | None = None
    tries: int = 0
    frame: str | None = None
    reason: str | None = None
    release: bool = False
    drop_sealed: bool = False
    code_version: int | None = None
    events: Sequence[FlowEvent] = ()
    children: Sequence[NewFlow] = ()


Unless = Callable[[Any, NewFlow], bool]
"""What stands in the way of a new flow, asked in the transaction that would put it down."""


class FlowStore(Protocol):
    """One database's flows. Each method is one short transaction; `name` tells the databases apart in logs."""

    name: str

    def offer(self, flow: NewFlow, unless: Unless | None = None) -> bool:
        """Put a flow down in state `offered`; False if its slot is taken, or `unless` says that something is."""

    def any_due(self, scopes: Sequence[Scope]) -> bool:
        """Whether `take_due` would find something, asked without a lock."""

    def take_due(self, owner: str, lease_ms: int, limit: int, scopes: Sequence[Scope]) -> list[FlowRow]:
        """Lease up to `limit` live flows whose `wake_at` and lease have passed, oldest first."""

    def take(self, flow_id: str, owner: str, lease_ms: int, scopes: Sequence[Scope] | None = None) -> FlowRow | None:
        """Lease one live flow now, whatever its `wake_at`; None if it is held, ended, unknown or beyond the scopes.

        Its cast has arrived here: it is `offered` no more.
        """

    def arrived(self, flow_id: str) -> bool:
        """The cast of a flow has arrived, and nobody is free for it: due now. False if it is not `offered`."""

    def renew(self, held: Mapping[str, int], lease_ms: int) -> set[str]:
        """Prolong leases of {flow id: epoch}; return the ids that are still held."""

    def write(self, flow_id: str, epoch: int, change: Callable[[Any], Change]) -> None:
        """Store a stage's end, its events and its children in one transaction.

        `change(tx)` may write other rows of the database first; it is called again if the transaction must be repeated.
        Raises LeaseLost or ChildRefused, and then nothing at all was written.
        """

    def may_repeat(self, exc: Exception) -> bool:
        """Whether an exception of the database only says that the transaction was lost, and `write` repeats it."""

    def log(self, event: FlowEvent) -> None:
        """Append an event outside of a step's end."""

    def get(self, flow_id: str) -> FlowRow | None: ...

    def active(self, subject_id: str, op: str | None = None) -> list[FlowRow]:
        """The subject's flows that have not ended (a stuck one has not)."""
