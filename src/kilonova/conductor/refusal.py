"""Operations that a peer's API may ask of this conductor and that it does not have: refused so that all see it.

Most are casts, which nobody hears an answer to. So the server gets its task state back, keeps its vm state, and the
reason is on record: as a fault, as a failed event of its action, and in a migration that waits for the operation.
"""

from __future__ import annotations

import logging
from typing import Any

from kilonova.conductor.failures import Failure, describe, record_fault
from kilonova.conductor.world import World
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Task
from kilonova.db.objects import action as actions
from kilonova.db.objects import instance as instances
from kilonova.db.objects import migration as migrations

LOG = logging.getLogger(__name__)

_BEFORE_ANY_HOST = ["accepted", "confirming", "reverting"]
"""Statuses in which a migration waits for a conductor."""


def refuse(world: World, method: str, ctxt: RequestContext, args: dict[str, Any]) -> None:
    """Record the refusal. Raises NotSupported."""
    LOG.error("%s was asked for, which this conductor does not have", method)
    error = exceptions.NotSupported(f"This conductor does not support {method}.")
    server = args.get("instance")
    if isinstance(server, objects.Instance) and (place := world.place_of_server(server.uuid)) is not None:
        place.database.run(give_back, ctxt, server.uuid, method, error, world.host)
    raise error


def give_back(tx: Any, ctxt: RequestContext, uuid: str, method: str, error: Exception, host: str) -> None:
    """Let the server's user act on it again, and say why; nothing when it is gone or being deleted."""
    failure = describe(error)
    try:
        server = instances.load(tx, uuid, ())
        if server.task_state in (Task.DELETING, Task.SOFT_DELETING):
            return
        if server.task_state is not None:
            seen, server.task_state = server.task_state, None
            instances.save(tx, ctxt, server, expected_task_state=[seen])
    except (exceptions.InstanceNotFound, exceptions.InstanceUpdateConflict) as exc:
        LOG.info("server %s has other plans: %s", uuid, exc)
        return
    record_fault(tx, ctxt, uuid, failure, server.host)
    waiting = {"instance_uuid": uuid, "status": _BEFORE_ANY_HOST}
    for migration in migrations.get_by_filters(tx, ctxt, waiting).objects:
        migration.status = "error"
        migrations.save(tx, ctxt, migration)
    _failed_event(tx, ctxt, uuid, f"conductor_{method}", failure, host)


def _failed_event(tx: Any, ctxt: RequestContext, uuid: str, event: str, failure: Failure, host: str) -> None:
    try:
        actions.event_start(tx, ctxt, uuid, event, want_result=False, host=host)
        actions.event_finish_with_failure(
            tx, ctxt, uuid, event, exc_val=failure["message"], exc_tb=failure["details"], want_result=False
        )
    except exceptions.InstanceActionNotFound:
        LOG.info("server %s has no action of request %s to note its failure in", uuid, ctxt.request_id)
