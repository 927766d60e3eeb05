"""Flows in SQL: what the API puts down in its own transaction, and the store from which conductors lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kilonova.base import clock
from kilonova.db import query as queries
from kilonova.db.engine import Database
from kilonova.db.failures import is_disconnect, is_retryable
from kilonova.db.flow_tables import KN_FLOW, KN_FLOW_EVENT
from kilonova.db.outcomes import DuplicateError
from kilonova.flow.store import (
    LIVE,
    Change,
    ChildRefused,
    EventKind,
    FlowEvent,
    FlowRow,
    LeaseLost,
    NewFlow,
    Scope,
    State,
    Unless,
)

F = KN_FLOW.c
_LIVE = [str(state) for state in LIVE]
_DETAIL_LIMIT = 16000
_WOKEN = 0
"""`wake_at` of a flow that was signalled. Taking the flow consumes it; rest is refused over it, so none is lost."""
_EVERY_COLUMN = sa.select(KN_FLOW)


def now_ms() -> int:
    """Milliseconds since 1970-01-01 UTC."""
    return clock.milliseconds()


# Functions over an open transaction.


def offer(tx: Any, flow: NewFlow) -> bool:
    """Put a flow down in state `offered`, inside the caller's transaction; False if the slot has an unfinished flow.

    A conductor takes it as soon as the cast that goes with it arrives, or by itself after `flow.grace` seconds.
    Raises DuplicateError, and the transaction is lost, when another one offers at the same moment.
    """
    taken = tx.execute(sa.select(F.id).where(F.active_key == flow.active_key)).first()
    if taken is not None:
        return False
    with queries.unique(KN_FLOW.name):
        tx.execute(sa.insert(KN_FLOW).values(_new_values(flow, now_ms())))
    return True


def find(tx: Any, flow_id: str) -> FlowRow | None:
    """The flow, whether or not it has ended."""
    return _get(tx, flow_id)


def active(tx: Any, subject_id: str, op: str | None = None) -> list[FlowRow]:
    """Flows of a subject that have not ended, oldest first."""
    query = _EVERY_COLUMN.where(F.subject_id == subject_id, F.active_key.is_not(None)).order_by(F.created_at)
    if op is not None:
        query = query.where(F.op == op)
    return [_row(found) for found in tx.execute(query)]


def active_subjects(tx: Any, subject_ids: Sequence[str], op: str | None = None) -> set[str]:
    """Which of the subjects have a flow (of that operation) that has not ended."""
    query = sa.select(F.subject_id).distinct().where(F.active_key.is_not(None))
    if op is not None:
        query = query.where(F.op == op)
    return _subjects(tx, query, subject_ids)


def known_subjects(tx: Any, subject_ids: Sequence[str]) -> set[str]:
    """Which of the subjects have, or had, a flow that is still kept."""
    return _subjects(tx, sa.select(F.subject_id).distinct(), subject_ids)


def _subjects(tx: Any, query: sa.Select[Any], among: Sequence[str]) -> set[str]:
    parts = (tx.execute(query.where(F.subject_id.in_(part))).scalars() for part in queries.slices(among))
    return {subject for part in parts for subject in part}


def wake(tx: Any, subject_id: str, op: str | None = None) -> int:
    """Make the subject's live flows due now."""
    query = sa.update(KN_FLOW).where(F.subject_id == subject_id, F.state.in_(_LIVE)).values(wake_at=_WOKEN)
    if op is not None:
        query = query.where(F.op == op)
    return int(tx.execute(query).rowcount)


def history(tx: Any, subject_id: str) -> list[FlowRow]:
    """Every flow kept of a subject, newest first."""
    query = _EVERY_COLUMN.where(F.subject_id == subject_id).order_by(F.created_at.desc())
    return [_row(found) for found in tx.execute(query)]


def events(tx: Any, flow_id: str) -> list[FlowEvent]:
    """The log of a flow, oldest first."""
    query = sa.select(KN_FLOW_EVENT).where(KN_FLOW_EVENT.c.flow_id == flow_id).order_by(KN_FLOW_EVENT.c.id)
    return [FlowEvent(**{**found._mapping, "kind": EventKind(found.kind)}) for found in tx.execute(query)]


def by_state(tx: Any, states: Sequence[State], limit: int = 1000) -> list[FlowRow]:
    """Flows in the given states, oldest first."""
    query = _EVERY_COLUMN.where(F.state.in_([str(state) for state in states])).order_by(F.created_at).limit(limit)
    return [_row(found) for found in tx.execute(query)]


def abandon(tx: Any, flow_id: str, *, who: str, why: str) -> bool:
    """End a flow without finishing or undoing it; who and why are kept. False if it had ended already."""
    if not who or not why:
        raise ValueError("abandoning a flow needs who and why")
    now = now_ms()
    query = sa.update(KN_FLOW).where(F.id == flow_id, F.active_key.is_not(None))
    values: dict[str, Any] = {"state": str(State.ABANDONED), "reason": why, "active_key": None, "sealed": None}
    values |= {"ended_at": now, "updated_at": now, "lease_until": 0, "lease_owner": None}
    changed = tx.execute(query.values(lease_epoch=F.lease_epoch + 1, **values)).rowcount
    if changed:
        _log(tx, [FlowEvent(flow_id, now, EventKind.ABANDONED, worker=who, detail=why)])
    return bool(changed)


def revive(tx: Any, flow_id: str) -> bool:
    """Let a stuck flow go on where it stood: with its undo, or forward if nothing of it has failed."""
    found = _get(tx, flow_id)
    if found is None:
        return False
    state = State.UNWINDING if "failure" in found.frame else State.RUNNING
    query = sa.update(KN_FLOW).where(F.id == flow_id, F.state == str(State.STUCK))
    values = {"state": str(state), "tries": 0, "wake_at": _WOKEN, "updated_at": now_ms()}
    return bool(tx.execute(query.values(values)).rowcount)


class FlowTable:
    """The FlowStore of one database (protocol and meaning: flow/store.py)."""

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.name = name

    def offer(self, flow: NewFlow, unless: Unless | None = None) -> bool:
        try:
            return self.database.run(_offer_unless, flow, unless)
        except DuplicateError:
            return False

    def any_due(self, scopes: Sequence[Scope]) -> bool:
        return self.database.query(_any_due, scopes)

    def take_due(self, owner: str, lease_ms: int, limit: int, scopes: Sequence[Scope]) -> list[FlowRow]:
        return self.database.run(_take_due, owner, lease_ms, limit, scopes)

    def take(self, flow_id: str, owner: str, lease_ms: int, scopes: Sequence[Scope] | None = None) -> FlowRow | None:
        return self.database.run(_take, flow_id, owner, lease_ms, scopes)

    def arrived(self, flow_id: str) -> bool:
        return self.database.run(_arrived, flow_id)

    def renew(self, held: Mapping[str, int], lease_ms: int) -> set[str]:
        return self.database.run(_renew, held, lease_ms)

    def write(self, flow_id: str, epoch: int, change: Callable[[Any], Change]) -> None:
        self.database.run(_write, flow_id, epoch, change)

    def may_repeat(self, exc: Exception) -> bool:
        return is_retryable(exc) or is_disconnect(exc)

    def log(self, event: FlowEvent) -> None:
        self.database.run(_log, [event])

    def get(self, flow_id: str) -> FlowRow | None:
        return self.database.query(_get, flow_id)

    def active(self, subject_id: str, op: str | None = None) -> list[FlowRow]:
        return self.database.query(active, subject_id, op)


def _offer_unless(tx: Any, flow: NewFlow, unless: Unless | None) -> bool:
    return (unless is None or not unless(tx, flow)) and offer(tx, flow)


def _any_due(tx: Any, scopes: Sequence[Scope]) -> bool:
    return tx.execute(_due(scopes, 1)).first() is not None


def _take_due(tx: Any, owner: str, lease_ms: int, limit: int, scopes: Sequence[Scope]) -> list[FlowRow]:
    found = [_row(each) for each in tx.execute(_locking(tx, _due(scopes, limit)))]
    return [taken for row in found if (taken := _lease(tx, row, owner, lease_ms)) is not None]


def _take(tx: Any, flow_id: str, owner: str, lease_ms: int, scopes: Sequence[Scope] | None) -> FlowRow | None:
    now = now_ms()
    free = _EVERY_COLUMN.where(F.id == flow_id, F.state.in_(_LIVE), F.lease_until <= now)
    if scopes is not None:
        free = free.where(_within(scopes, now))
    found = tx.execute(_locking(tx, free)).first()
    return None if found is None else _lease(tx, _row(found), owner, lease_ms, called=True)


def _arrived(tx: Any, flow_id: str) -> bool:
    query = sa.update(KN_FLOW).where(F.id == flow_id, F.state == str(State.OFFERED))
    values = {"state": str(State.RUNNING), "wake_at": _WOKEN, "updated_at": now_ms()}
    return bool(tx.execute(query.values(values)).rowcount)


def _renew(tx: Any, held: Mapping[str, int], lease_ms: int) -> set[str]:
    kept = set()
    for flow_id, epoch in held.items():
        # A lease that has run out and that nobody took is still ours: the epoch tells.
        query = sa.update(KN_FLOW).where(F.id == flow_id, F.lease_epoch == epoch, F.lease_until > 0)
        if tx.execute(query.values(lease_until=now_ms() + lease_ms)).rowcount:
            kept.add(flow_id)
    return kept


def _write(tx: Any, flow_id: str, epoch: int, change: Callable[[Any], Change]) -> None:
    made = change(tx)
    query = sa.update(KN_FLOW).where(F.id == flow_id, F.lease_epoch == epoch)
    if not tx.execute(query.values(_changed_values(made, now_ms()))).rowcount:
        raise LeaseLost(flow_id)
    for child in made.children:
        if not offer(tx, child):
            raise ChildRefused(f"{child.op} of {child.subject_id} is under way already")
    _log(tx, made.events)


def _get(tx: Any, flow_id: str) -> FlowRow | None:
    found = tx.execute(_EVERY_COLUMN.where(F.id == flow_id)).first()
    return None if found is None else _row(found)


def _new_values(flow: NewFlow, now: int) -> dict[str, Any]:
    return {
        "id": flow.id,
        "op": flow.op,
        "subject_id": flow.subject_id,
        "active_key": flow.active_key,
        "parent_id": flow.parent_id,
        "state": str(State.OFFERED),
        "position": None,
        "frame": queries.json_text(dict(flow.frame)),
        "sealed": flow.sealed,
        "reason": None,
        "tries": 0,
        "code_version": flow.version,
        "lease_owner": None,
        "lease_epoch": 0,
        "lease_until": 0,
        "wake_at": now + int(flow.grace * 1000),
        "deadline_at": None if flow.deadline is None else now + int(flow.deadline * 1000),
        "request_id": flow.request_id,
        "project_id": flow.project_id,
        "created_at": now,
        "updated_at": now,
        "ended_at": None,
    }


def _changed_values(change: Change, now: int) -> dict[str, Any]:
    values: dict[str, Any] = {"position": change.position, "tries": change.tries, "updated_at": now}
    if change.state is not State.OFFERED:
        values["state"] = str(change.state)
    if change.wake_at is not None:
        values["wake_at"] = sa.case((F.wake_at == _WOKEN, _WOKEN), else_=change.wake_at)
    for name in ("frame", "code_version"):
        if getattr(change, name) is not None:
            values[name] = getattr(change, name)
    if change.frame is not None:
        values["frame"] = queries.escaped(change.frame)
    if change.reason is not None:
        values["reason"] = queries.fitting(change.reason)
    ended = change.state in (State.DONE, State.UNWOUND)
    if ended:
        values |= {"active_key": None, "ended_at": now}
    if ended or change.drop_sealed:
        values["sealed"] = None
    if change.release:
        values |= {"lease_until": 0, "lease_owner": None}
    return values


def _due(scopes: Sequence[Scope], limit: int) -> sa.Select[Any]:
    now = now_ms()
    due = (F.state.in_(_LIVE), F.wake_at <= now, F.lease_until <= now, _within(scopes, now))
    return _EVERY_COLUMN.where(*due).order_by(F.wake_at).limit(limit)


def _within(scopes: Sequence[Scope], now: int) -> sa.ColumnElement[bool]:
    """Flows that a worker may take; the meaning is that of Scope."""
    return sa.or_(sa.false(), *(_within_one(scope, now) for scope in scopes))


def _within_one(scope: Scope, now: int) -> sa.ColumnElement[bool]:
    parts = [F.op == scope.op, F.code_version <= scope.version]
    if scope.stages is not None:
        parts.append(_stands_at([*scope.stages, None]))
    if scope.waiting:
        to_be_ended = sa.or_(F.state == str(State.UNWINDING), F.deadline_at <= now)
        parts.append(sa.or_(to_be_ended, sa.not_(_stands_at(scope.waiting))))
    return sa.and_(*parts)


def _stands_at(places: Sequence[str | None]) -> sa.ColumnElement[bool]:
    """Whether a flow stands at one of these stages; None: before the first. Never NULL."""
    named = sa.and_(F.position.is_not(None), F.position.in_([place for place in places if place is not None]))
    return sa.or_(F.position.is_(None), named) if None in places else named


def _locking(tx: Any, query: sa.Select[Any]) -> sa.Select[Any]:
    """SQLite has one writer and needs no row locks; elsewhere two conductors pass each other by."""
    return query if tx.dialect.name == "sqlite" else query.with_for_update(skip_locked=True)


def _lease(tx: Any, row: FlowRow, owner: str, lease_ms: int, *, called: bool = False) -> FlowRow | None:
    now = now_ms()
    lease: dict[str, Any] = {
        "lease_owner": owner,
        "lease_epoch": row.lease_epoch + 1,
        "lease_until": now + lease_ms,
        "wake_at": now,
    }
    state = State.RUNNING if called and row.state is State.OFFERED else row.state
    if state is not row.state:
        lease["state"] = str(state)
    query = sa.update(KN_FLOW).where(F.id == row.id, F.lease_epoch == row.lease_epoch)
    if not tx.execute(query.values(lease)).rowcount:
        return None
    return msgspec.structs.replace(row, **(lease | {"state": state}))


def _row(found: Any) -> FlowRow:
    values = dict(found._mapping)
    values["frame"] = msgspec.json.decode(values["frame"])
    values["state"] = State(values["state"])
    return FlowRow(**values)


def _log(tx: Any, entries: Sequence[FlowEvent]) -> None:
    if not entries:
        return
    rows = [
        {
            "flow_id": event.flow_id,
            "at": event.at,
            "kind": str(event.kind),
            "step": event.step,
            "tries": event.tries,
            "duration_ms": event.duration_ms,
            "worker": event.worker,
            "epoch": event.epoch,
            "detail": None if event.detail is None else event.detail[:_DETAIL_LIMIT],
        }
        for event in entries
    ]
    tx.execute(sa.insert(KN_FLOW_EVENT), rows)
