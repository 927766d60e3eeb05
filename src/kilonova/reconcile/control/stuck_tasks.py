"""A task holds a server and nothing happens: its cast was lost. It is sent again under its own request id.

A host that has the request answers the repeat from its journal, so nothing is done twice. Deletions get a flow, which
also does without a host. So does a record that says "deleted" and is there all the same: its host died before it had
removed it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.contract import context
from kilonova.contract.states import VM, Task
from kilonova.db import flows
from kilonova.db.cell import explanations
from kilonova.db.cells import CellDown
from kilonova.db.objects import instance as instances
from kilonova.db.objects import service
from kilonova.db.query import Row
from kilonova.flow import offers
from kilonova.flow.seal import Seal
from kilonova.reconcile.control import pages
from kilonova.reconcile.control.known import World
from kilonova.reconcile.loop import Loop, Suspect

SENT_AGAIN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    Task.POWERING_OFF: ("stop_instance", {"clean_shutdown": True}),
    Task.POWERING_ON: ("start_instance", {}),
    Task.REBOOTING: ("reboot_instance", {"block_device_info": None, "reboot_type": "SOFT"}),
    Task.REBOOTING_HARD: ("reboot_instance", {"block_device_info": None, "reboot_type": "HARD"}),
}
"""task_state as the API sets it -> the cast that was to follow."""

PATIENCE = 4
"""A cast is late after so many times [kilonova] flow_resend."""


class StuckTasks(Loop):
    name = "stuck_tasks"

    def __init__(self, world: World) -> None:
        self._world = world

    def find(self) -> Iterable[tuple[str, Row]]:
        """(cell, server) for every task that has not moved for a while and has no flow."""
        conf = self._world.conf.kilonova
        since = clock.naive_now() - datetime.timedelta(seconds=max(conf.reconcile_grace, PATIENCE * conf.flow_resend))
        answers = self._world.cells.scatter(lambda cell: [] if cell.is_cell0 else cell.database.query(_held, since))
        return [(cell, row) for cell, answer in answers.items() if not isinstance(answer, CellDown) for row in answer]

    def judge(self, found: Iterable[tuple[str, Row]]) -> Sequence[Suspect]:
        return [
            Suspect(
                f"{row['uuid']} {row['updated_at']}",
                f"server {row['uuid']} is held by {row['task_state'] or row['vm_state']}",
                (cell, row),
            )
            for cell, row in found
        ]

    def repair(self, suspect: Suspect) -> None:
        cell, row = suspect.data
        if _is_deletion(row):
            new = offers.delete_offer(
                Seal.from_conf(self._world.conf), context.admin(), instance_uuid=row["uuid"], cast=False, grace=0.0
            )
            self._world.cells.cell(cell).database.run(flows.offer, new)
        else:
            self._send_again(self._world.place(cell), row)

    def _send_again(self, place: Any, row: Row) -> None:
        method, args = SENT_AGAIN[row["task_state"]]
        request = place.database.query(explanations.last_request, row["uuid"])
        ctxt = context.admin()
        if request is not None:
            ctxt.request_id = request
        server = place.database.query(instances.load, row["uuid"])
        if server.host and server.task_state == row["task_state"]:
            getattr(self._world.compute(place), method)(ctxt, instance=server, **args)


def _held(tx: Any, since: datetime.datetime) -> list[Row]:
    tasks = [*SENT_AGAIN, Task.DELETING]
    rows = pages.first(
        lambda after: explanations.servers_in_task(tx, tasks, since, after=after), lambda page: _undriven(tx, page)
    )
    return rows + pages.first(
        lambda after: explanations.servers_in_state(tx, VM.DELETED, since, after=after),
        lambda page: _undriven(tx, [row for row in page if row["task_state"] is None]),
    )


def _undriven(tx: Any, rows: list[Row]) -> list[Row]:
    active = flows.active_subjects(tx, [each["uuid"] for each in rows])
    heard = {each["host"] for each in _recent_computes(tx, {row["host"] for row in rows if row["host"]})}
    return [row for row in rows if row["uuid"] not in active and (_is_deletion(row) or row["host"] in heard)]


def _is_deletion(row: Row) -> bool:
    return row["task_state"] == Task.DELETING or row["vm_state"] == VM.DELETED


def _recent_computes(tx: Any, hosts: set[str]) -> list[Any]:
    """Services of the hosts; one that was not heard of for minutes, or never, gets nothing sent again."""
    fresh = clock.naive_now() - datetime.timedelta(minutes=5)
    rows = service.rows_by_hosts(tx, hosts) if hosts else []
    computes = [row for row in rows if row["binary"] == "nova-compute"]
    return [row for row in computes if (heard := row["last_seen_up"] or row["updated_at"]) and heard > fresh]
