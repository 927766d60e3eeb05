"""What a step sees of its flow, and the lease under which it works."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kilonova.base import clock
from kilonova.flow.store import EventKind, FlowEvent, FlowRow, FlowStore, LeaseLost, NewFlow, State


@dataclasses.dataclass(eq=False)
class Lease:
    """A flow held by this process. Times are monotonic: `until` lies before the end that the database knows, `began` is
    when the present stage did.
    """

    store: FlowStore
    row: FlowRow
    until: float
    began: float = dataclasses.field(default_factory=clock.monotonic)
    lost: bool = False

    @property
    def epoch(self) -> int:
        return self.row.lease_epoch

    def held(self) -> bool:
        return not self.lost and clock.monotonic() < self.until


class Run:
    """One flow in the hands of one worker.

    `frame` is the flow's memory: JSON data, stored at the end of each stage. `secrets` are never stored in clear.
    `world` is what the flows of this process were given to work with. `tx` is open only within an atomic step.
    `failure` says, while undoing, what went wrong: {"class", "message", "code", "details"}.
    """

    def __init__(self, lease: Lease, world: Any, secrets: Mapping[str, Any], worker: str) -> None:
        self.lease = lease
        self.row = lease.row
        self._stored = self._begun = msgspec.json.encode(lease.row.frame)
        self.frame: dict[str, Any] = lease.row.frame
        self.secrets = dict(secrets)
        self.world = world
        self.worker = worker
        self.stage = lease.row.position or ""
        self.tx: Any = None
        self.children: list[NewFlow] = []
        self._children_before = 0
        self.unwritten: list[FlowEvent] = []
        """Ends of light steps that go into the log with the next write."""
        self.drop_sealed = False

    @property
    def subject_id(self) -> str:
        return self.row.subject_id

    @property
    def failure(self) -> dict[str, Any] | None:
        return self.frame.get("failure")

    @property
    def uncalled(self) -> bool:
        """Whether the flow was taken because its grace is over: no cast of it is known to have arrived here."""
        return self.lease.row.state is State.OFFERED

    @property
    def tries(self) -> int:
        """Failed tries of this stage before this one."""
        return self.row.tries

    @property
    def seconds_left(self) -> float | None:
        """Until the flow's deadline; negative when it has passed, None without one."""
        return None if self.row.deadline_at is None else self.row.deadline_at / 1000 - clock.seconds()

    def guard(self) -> None:
        """Raise LeaseLost unless the flow is surely still ours; called before anything is sent to another service."""
        if not self.lease.held():
            raise LeaseLost(self.row.id)

    def note(self, kind: EventKind, detail: str) -> None:
        """Append to the flow's log."""
        self.lease.store.log(self.event(kind, detail))

    def spawn(self, child: NewFlow) -> None:
        """Put down a child flow together with the end of this stage."""
        self.children.append(msgspec.structs.replace(child, parent_id=self.row.id))

    def forget_secrets(self) -> None:
        """Drop the sealed part from the database with the end of this stage."""
        self.drop_sealed = True

    # For the engine.

    def changed_frame(self) -> str | None:
        """The frame as JSON when it is not as stored."""
        present = msgspec.json.encode(self.frame)
        return None if present == self._stored else present.decode()

    def begin_again(self) -> None:
        """Forget what an atomic step left in memory before its transaction is repeated."""
        self.frame = msgspec.json.decode(self._begun)
        self.drop_children()

    def drop_children(self) -> None:
        """Forget the children of this stage: it did not come to its end."""
        del self.children[self._children_before :]

    def stored(self) -> None:
        self._stored = self._begun = msgspec.json.encode(self.frame)

    def event(self, kind: EventKind, detail: str | None = None, duration: float | None = None) -> FlowEvent:
        return FlowEvent(
            self.row.id,
            clock.milliseconds(),
            kind,
            step=self.stage,
            tries=self.row.tries,
            duration_ms=None if duration is None else int(duration * 1000),
            worker=self.worker,
            epoch=self.lease.epoch,
            detail=detail,
        )

    def moved(self, state: State, position: str | None, tries: int, version: int) -> None:
        """Follow what was written."""
        self.row = msgspec.structs.replace(self.row, state=state, position=position, tries=tries, code_version=version)
        self.stored()
        self.children.clear()
        self._children_before = 0
        self.unwritten.clear()

    def moved_lightly(self, position: str, done: FlowEvent) -> None:
        """Go on to the next stage; what this one did to the frame is written with the next end."""
        self.row = msgspec.structs.replace(self.row, state=State.RUNNING, position=position, tries=0)
        self._begun = msgspec.json.encode(self.frame)
        self._children_before = len(self.children)
        self.unwritten.append(done)


Describe = Callable[[BaseException], dict[str, Any]]


def describe(exc: BaseException) -> dict[str, Any]:
    """An exception as data for the frame. Rooms that know more (codes, user texts) pass their own to the engine."""
    text = "".join(traceback.format_exception(exc))
    return {"class": type(exc).__name__, "message": str(exc) or type(exc).__name__, "code": 500, "details": text}
