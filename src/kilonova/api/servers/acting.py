"""Acting on a server: who may, whether its state allows it, and taking its task state as the lock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kilonova.api import hosts
from kilonova.api.servers import find
from kilonova.api.services import Services
from kilonova.contract import exceptions, objects
from kilonova.contract.cards import Guard, Op
from kilonova.db.cell import instances
from kilonova.db.cells import Cell
from kilonova.db.engine import Tx
from kilonova.db.objects import action as actions
from kilonova.db.objects import instance as instance_rows
from kilonova.db.outcomes import Missing, Stale
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import Fault, conflict

COLUMNS: Final = (
    "uuid",
    "project_id",
    "user_id",
    "host",
    "vm_state",
    "task_state",
    "launched_at",
    "locked",
    "locked_by",
)
EVERYTHING: Final = frozenset(instance_rows.ALL) - {"fault", "services", "ec2_ids"}
"""What goes along with a server to its host: all that it could ask for."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server that is in a cell, as it was when the request was judged."""

    uuid: str
    record: Mapping[str, Any]
    cell: Cell

    @property
    def owner(self) -> dict[str, Any]:
        """What policy rules compare the caller with."""
        return {"project_id": self.record["project_id"], "user_id": self.record["user_id"]}

    def load(self) -> objects.Instance:
        """The server as its host gets it. Raises InstanceNotFound."""
        return self.cell.database.query(instance_rows.load, self.uuid, EVERYTHING)


def locate(call: Call[Services], uuid: str, rule: str) -> find.Found:
    """The server, in a cell or not, for whoever passes `rule`. Raises InstanceNotFound and `Fault`."""
    return find.permitted(call, uuid, rule, columns=COLUMNS)


def target(call: Call[Services], uuid: str, rule: str, op: Op, guard: Guard | None = None) -> Target:
    """The server, when the caller may act on it and it is in a state for it. Raises `Fault` 403, 404, 409."""
    found = locate(call, uuid, rule)
    check(call, found, op, guard or op.guard)
    if found.cell is None:
        raise _in_state(op, uuid, "vm_state", found.record["vm_state"])
    return Target(uuid, found.record, found.cell)


def check(call: Call[Services], found: find.Found, op: Op, guard: Guard) -> None:
    """Raise 409 unless the server takes the operation now."""
    record = found.record
    if guard.lock_checked and record["locked"] and not call.context.is_admin:
        raise conflict(exceptions.InstanceIsLocked(instance_uuid=record["uuid"]).format_message())
    if not guard.any_state:
        _check_states(record, op, guard)
    if guard.host_required and not record["host"]:
        raise conflict(exceptions.InstanceNotReady(instance_id=record["uuid"]).format_message())
    if guard.host_must_be_up and found.cell is not None:
        check_up(call, found.cell, record["host"])


def check_up(call: Call[Services], cell: Cell, host: str) -> None:
    """Raise 409 when the host is not heard of."""
    if not hosts.is_up(call.services.conf, cell, host):
        raise conflict(exceptions.ServiceUnavailable().format_message())


def _check_states(record: Mapping[str, Any], op: Op, guard: Guard) -> None:
    uuid, task = record["uuid"], record["task_state"]
    if guard.vm is not None and record["vm_state"] not in guard.vm:
        raise _in_state(op, uuid, "vm_state", record["vm_state"])
    if (guard.task is not None and task not in guard.task) or task in guard.rejected_task:
        raise _in_state(op, uuid, "task_state", task)
    if guard.must_have_launched and not record["launched_at"]:
        raise conflict(f"Instance {uuid} is in an invalid state for '{_word(op)}'")


def _in_state(op: Op, uuid: str, attr: str, state: str | None) -> Fault:
    return conflict(f"Cannot '{_word(op)}' instance {uuid} while it is in {attr} {state}")


def _word(op: Op) -> str:
    return (op.routes[0].action or op.name.replace("_", " ")).removeprefix("os-")


@contextlib.contextmanager
def taken(
    call: Call[Services], chosen: Target, op: Op, guard: Guard, task: str | None = None, **more: Any
) -> Iterator[objects.Instance]:
    """Set the task state and record the action, in one transaction; the block hands the server on.

    The states that were judged are the ones that the write expects. When the block raises, the task state of before is
    put back. Raises `Fault` 409 when another request was quicker or there is no host to hand it to, InstanceNotFound.
    """
    if not chosen.record["host"]:
        raise conflict(exceptions.InstanceNotReady(instance_id=chosen.uuid).format_message())
    wanted = task or op.task
    values = {"task_state": wanted, **more}
    database = chosen.cell.database
    instance = database.run(_take, call, chosen, op, guard, values)
    try:
        yield instance
    except Exception:
        before = {"task_state": chosen.record["task_state"]}
        database.run(instances.instance_update, chosen.uuid, before, {"task_state": [wanted]})
        raise


def _take(
    tx: Tx, call: Call[Services], chosen: Target, op: Op, guard: Guard, values: dict[str, Any]
) -> objects.Instance:
    record = chosen.record
    expect = {"vm_state": [record["vm_state"]], "task_state": [record["task_state"]]}
    outcome = instances.instance_update(tx, chosen.uuid, values, expect)
    if isinstance(outcome, Missing):
        raise exceptions.InstanceNotFound(instance_id=chosen.uuid)
    if isinstance(outcome, Stale):
        attr = "vm_state" if outcome.current["vm_state"] != record["vm_state"] else "task_state"
        raise _in_state(op, chosen.uuid, attr, outcome.current[attr])
    record_action(tx, call, chosen.uuid, op)
    return instance_rows.load(tx, chosen.uuid, EVERYTHING)


def record_action(tx: Tx, call: Call[Services], uuid: str, op: Op) -> None:
    """The entry that tells who asked for what."""
    if op.action is not None:
        actions.action_start(tx, call.context, uuid, op.action, want_result=False)
