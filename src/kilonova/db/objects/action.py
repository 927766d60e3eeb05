"""Instance actions and their events: who asked for what, and how each part ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db.cell.tables import INSTANCE_ACTIONS, INSTANCE_ACTIONS_EVENTS
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row, column_value
from kilonova.db.query import changed_before, changed_since, fitting


def from_row(row: Row) -> objects.InstanceAction:
    return hydrate.fill(objects.InstanceAction(), row)


def event_from_row(row: Row) -> objects.InstanceActionEvent:
    return hydrate.fill(objects.InstanceActionEvent(), row)


def _find(tx: sa.Connection, instance_uuid: str, request_id: str) -> Row | None:
    table = INSTANCE_ACTIONS
    query = hydrate.select_alive(table, table.c.instance_uuid == instance_uuid, table.c.request_id == request_id)
    return tx.execute(query.order_by(table.c.id).limit(1)).mappings().first()


def action_start(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, action_name: str, want_result: bool = True
) -> objects.InstanceAction | None:
    row = hydrate.insert(
        tx,
        INSTANCE_ACTIONS,
        {
            "request_id": ctxt.request_id,
            "instance_uuid": instance_uuid,
            "user_id": ctxt.user_id,
            "project_id": ctxt.project_id,
            "action": action_name,
            "start_time": column_value(ctxt.timestamp),
            "updated_at": column_value(ctxt.timestamp),
        },
    )
    return from_row(row) if want_result else None


def action_finish(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, want_result: bool = True
) -> objects.InstanceAction | None:
    """Raises InstanceActionNotFound."""
    table = INSTANCE_ACTIONS
    done = tx.execute(
        sa.update(table)
        .where(table.c.instance_uuid == instance_uuid, table.c.request_id == ctxt.request_id)
        .values(finish_time=clock.naive_now())
    )
    if done.rowcount != 1:
        raise exceptions.InstanceActionNotFound(request_id=ctxt.request_id, instance_uuid=instance_uuid)
    found = _find(tx, instance_uuid, ctxt.request_id)
    return from_row(found) if want_result and found else None


def create(tx: sa.Connection, ctxt: Any, action: objects.InstanceAction) -> None:
    hydrate.fill(action, hydrate.insert(tx, INSTANCE_ACTIONS, hydrate.changed_columns(action, INSTANCE_ACTIONS)))


def finish(tx: sa.Connection, ctxt: Any, action: objects.InstanceAction) -> None:
    action.obj_reset_changes()
    action_finish(tx, ctxt, action.instance_uuid, want_result=False)


def get_by_request_id(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, request_id: str
) -> objects.InstanceAction | None:
    row = _find(tx, instance_uuid, request_id)
    return from_row(row) if row else None


def get_by_instance_uuid(
    tx: sa.Connection,
    ctxt: Any,
    instance_uuid: str,
    limit: int | None = None,
    marker: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> objects.InstanceActionList:
    """Newest first."""
    table = INSTANCE_ACTIONS
    query = hydrate.select_alive(table, table.c.instance_uuid == instance_uuid)
    for name, changed in (("changes-since", changed_since), ("changes-before", changed_before)):
        if filters and filters.get(name):
            query = query.where(changed(table, column_value(filters[name])))
    if marker:
        last = _find(tx, instance_uuid, marker)
        if last is None:
            raise exceptions.MarkerNotFound(marker=marker)
        query = query.where(table.c.id < last["id"])
    rows = tx.execute(query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit)).mappings()
    return objects.InstanceActionList(objects=[from_row(row) for row in rows])


def event_start(
    tx: sa.Connection,
    ctxt: Any,
    instance_uuid: str,
    event_name: str,
    want_result: bool = True,
    host: str | None = None,
) -> objects.InstanceActionEvent | None:
    """Raises InstanceActionNotFound."""
    action = _action(tx, ctxt, instance_uuid)
    values = {"action_id": action["id"], "event": event_name, "host": host, "start_time": clock.naive_now()}
    row = hydrate.insert(tx, INSTANCE_ACTIONS_EVENTS, values)
    _touch(tx, action["id"], {})
    return event_from_row(row) if want_result else None


def _action(tx: sa.Connection, ctxt: Any, instance_uuid: str) -> Row:
    action = _find(tx, instance_uuid, ctxt.request_id) or (_last(tx, instance_uuid) if _internal(ctxt) else None)
    if action is None:
        raise exceptions.InstanceActionNotFound(request_id=ctxt.request_id, instance_uuid=instance_uuid)
    return action


def _internal(ctxt: Any) -> bool:
    """A context of the service itself, as after a restart, continues the newest action."""
    return bool(ctxt.is_admin and not ctxt.project_id)


def _last(tx: sa.Connection, instance_uuid: str) -> Row | None:
    table = INSTANCE_ACTIONS
    query = hydrate.select_alive(table, table.c.instance_uuid == instance_uuid)
    return tx.execute(query.order_by(table.c.id.desc()).limit(1)).mappings().first()


def _touch(tx: sa.Connection, action_id: int, values: Mapping[str, Any]) -> None:
    table = INSTANCE_ACTIONS
    tx.execute(sa.update(table).where(table.c.id == action_id).values(**{"updated_at": clock.naive_now(), **values}))


def event_finish(
    tx: sa.Connection, ctxt: Any, instance_uuid: str, event_name: str, want_result: bool = True
) -> objects.InstanceActionEvent | None:
    return event_finish_with_failure(tx, ctxt, instance_uuid, event_name, want_result=want_result)


def event_finish_with_failure(
    tx: sa.Connection,
    ctxt: Any,
    instance_uuid: str,
    event_name: str,
    exc_val: str | None = None,
    exc_tb: str | None = None,
    want_result: bool = True,
) -> objects.InstanceActionEvent | None:
    """End the newest open event of that name; with `exc_tb` or `exc_val` as an Error, else as a Success."""
    action = _action(tx, ctxt, instance_uuid)
    failed = exc_tb is not None or exc_val is not None
    table = INSTANCE_ACTIONS_EVENTS
    same = (table.c.action_id == action["id"], table.c.event == event_name)
    row = tx.execute(hydrate.select_alive(table, *same).order_by(table.c.id.desc()).limit(1)).mappings().first()
    if row is None:
        raise exceptions.InstanceActionEventNotFound(action_id=action["id"], event=event_name)
    values = {
        "finish_time": clock.naive_now(),
        "result": "Error" if failed else "Success",
        "traceback": fitting(exc_tb),
        "details": fitting(exc_val),
    }
    tx.execute(sa.update(table).where(table.c.id == row["id"]).values(**values))
    _touch(tx, action["id"], {"message": "Error"} if failed else {})
    return event_from_row({**row, **values}) if want_result else None


def event_finish_object(tx: sa.Connection, ctxt: Any, event: objects.InstanceActionEvent) -> None:
    finish_event_object(tx, ctxt, event, None, None)


def finish_event_object(
    tx: sa.Connection, ctxt: Any, event: objects.InstanceActionEvent, exc_val: str | None, exc_tb: str | None
) -> None:
    """`finish` and `finish_with_failure` of an event that the caller holds."""
    failed = exc_tb is not None or exc_val is not None
    values = {
        "finish_time": clock.naive_now(),
        "result": "Error" if failed else "Success",
        "traceback": fitting(exc_tb),
        "details": fitting(exc_val),
    }
    table = INSTANCE_ACTIONS_EVENTS
    tx.execute(sa.update(table).where(table.c.id == event.id).values(**values))
    _touch(tx, event.action_id, {"message": "Error"} if failed else {})
    hydrate.fill(event, values)


def event_create(
    tx: sa.Connection, ctxt: Any, event: objects.InstanceActionEvent, instance_uuid: str, request_id: str
) -> None:
    action = _find(tx, instance_uuid, request_id)
    if action is None:
        raise exceptions.InstanceActionNotFound(request_id=request_id, instance_uuid=instance_uuid)
    values = hydrate.changed_columns(event, INSTANCE_ACTIONS_EVENTS) | {"action_id": action["id"]}
    hydrate.fill(event, hydrate.insert(tx, INSTANCE_ACTIONS_EVENTS, values))


def event_get_by_id(tx: sa.Connection, ctxt: Any, action_id: int, event_id: int) -> objects.InstanceActionEvent | None:
    table = INSTANCE_ACTIONS_EVENTS
    query = hydrate.select_alive(table, table.c.action_id == action_id, table.c.id == event_id)
    row = tx.execute(query).mappings().first()
    return event_from_row(row) if row else None


def events_get_by_action(tx: sa.Connection, ctxt: Any, action_id: int) -> objects.InstanceActionEventList:
    """Newest first."""
    table = INSTANCE_ACTIONS_EVENTS
    query = hydrate.select_alive(table, table.c.action_id == action_id)
    rows = tx.execute(query.order_by(table.c.created_at.desc(), table.c.id.desc())).mappings()
    return objects.InstanceActionEventList(objects=[event_from_row(row) for row in rows])
