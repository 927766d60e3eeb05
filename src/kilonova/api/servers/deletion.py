"""Deleting a server in every state: a build request is withdrawn, a record in a cell gets a flow that sees its end."""

from __future__ import annotations

import logging

from kilonova.api import hosts
from kilonova.api.servers import acting, find
from kilonova.api.services import Services
from kilonova.contract import exceptions, objects
from kilonova.contract.cards import Guard, Op
from kilonova.contract.states import Task
from kilonova.db import flows
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cell import instances
from kilonova.db.cells import Cell
from kilonova.db.engine import Tx
from kilonova.db.objects import bdm
from kilonova.db.objects import instance as instance_rows
from kilonova.db.outcomes import Missing
from kilonova.flow import offers
from kilonova.wire.http.call import Call

LOG = logging.getLogger(__name__)

ROUNDS = 3
"""A build request may become a record while it is looked at; more often than this it cannot."""


def delete(call: Call[Services], uuid: str, rule: str, op: Op, guard: Guard) -> None:
    """Raises `Fault` 403, 404, 409, InstanceNotFound."""
    for _ in range(ROUNDS):
        found = acting.locate(call, uuid, rule)
        acting.check(call, found, op, guard)
        if found.cell is not None:
            _end(call, found, found.cell, op)
            return
        if call.services.cells.api.run(_withdraw, uuid):
            return
    raise exceptions.InstanceNotFound(instance_id=uuid)


def _withdraw(tx: Tx, uuid: str) -> bool:
    """Of the API that withdraws the request and the conductor that makes a record of it, one wins.

    The flow of the build finds the request gone and gives back what it had taken, reserved volumes too.
    """
    if not build_requests.build_request_delete(tx, uuid):
        return False
    instance_mappings.instance_mapping_update(tx, uuid, {"queued_for_delete": True})
    return True


def _end(call: Call[Services], found: find.Found, cell: Cell, op: Op) -> None:
    uuid, host = found.record["uuid"], found.record["host"]
    asked = bool(host) and hosts.is_up(call.services.conf, cell, host)
    instance, devices = cell.database.run(_record, call, uuid, op, asked)
    call.services.cells.api.run(instance_mappings.instance_mapping_update, uuid, {"queued_for_delete": True})
    if not asked:
        return
    try:
        call.services.compute(cell).terminate_instance(call.context, instance=instance, bdms=devices)
    except Exception:
        # The flow is recorded and reminds the host.
        LOG.exception("the deletion of server %s could not be cast to %s", uuid, host)


def _record(
    tx: Tx, call: Call[Services], uuid: str, op: Op, cast: bool
) -> tuple[objects.Instance, objects.BlockDeviceMappingList]:
    """The task state, the action and the flow, in one transaction. Deletion goes before whatever else is going on."""
    values = {"task_state": Task.DELETING, "progress": 0}
    if isinstance(instances.instance_update(tx, uuid, values), Missing):
        raise exceptions.InstanceNotFound(instance_id=uuid)
    services = call.services
    offer = offers.delete_offer(
        services.seal, call.context, instance_uuid=uuid, cast=cast, grace=services.conf.kilonova.flow_grace
    )
    if flows.offer(tx, offer):
        acting.record_action(tx, call, uuid, op)
    instance = instance_rows.load(tx, uuid, acting.EVERYTHING)
    return instance, bdm.get_by_instance_uuid(tx, call.context, uuid)
