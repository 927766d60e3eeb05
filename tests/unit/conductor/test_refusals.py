"""What our conductor does not have and a peer may ask of it: the server is given back, the reason is on record."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.conductor.stage import SEAL, Stage
from tests.unit.conductor.test_delete import built

from kilonova.conductor.compute_task import ComputeTasks
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import compute_task as table
from kilonova.db.objects import action as actions
from kilonova.db.objects import migration as migrations

BUILT = {"schedule_and_build_instances", "build_instances"}
NOT_BUILT = sorted(set(table.API.served_by_name) - BUILT)


def tasks(stage: Stage) -> Any:
    return ComputeTasks(stage.world, None, SEAL)  # type: ignore[arg-type]


def of_user(stage: Stage) -> RequestContext:
    """Of another request than the one that built the server."""
    ctxt = stage.ctxt()
    ctxt.request_id = "req-2"
    return ctxt


def asked(stage: Stage, server: str, task_state: str | None) -> objects.Instance:
    """The server as the API leaves it before it casts, with an action of this request."""
    found = stage.server(server)
    assert found is not None
    found.task_state = task_state
    stage.save(found)
    with stage.cell.write() as tx:
        actions.action_start(tx, of_user(stage), server, "resize", want_result=False)
    return found


@pytest.mark.parametrize("method", NOT_BUILT)
def test_every_method_that_is_not_built_says_so(stage: Stage, method: str) -> None:
    with pytest.raises(exceptions.NotSupported, match=method):
        getattr(tasks(stage), method)(stage.ctxt(), instance=None)


def test_the_server_is_given_back(stage: Stage) -> None:
    server = built(stage)
    with pytest.raises(exceptions.NotSupported):
        tasks(stage).migrate_server(of_user(stage), instance=asked(stage, server, "resize_prep"), live=False)
    found = stage.server(server)
    assert found is not None
    assert (found.vm_state, found.task_state) == ("active", None)
    assert "migrate_server" in found.fault.message
    with stage.cell.read() as tx:
        [action, *_] = actions.get_by_instance_uuid(tx, stage.ctxt(), server).objects
        [event] = actions.events_get_by_action(tx, stage.ctxt(), action.id).objects
    assert (event.event, event.result) == ("conductor_migrate_server", "Error")


def test_a_migration_that_waits_for_the_operation_ends(stage: Stage) -> None:
    server = built(stage)
    waiting = objects.Migration(
        instance_uuid=server, status="accepted", migration_type="evacuation", source_compute="h1", source_node="h1"
    )
    with stage.cell.write() as tx:
        migrations.create(tx, stage.ctxt(), waiting)
    with pytest.raises(exceptions.NotSupported):
        tasks(stage).rebuild_instance(stage.ctxt(), instance=asked(stage, server, "rebuilding"), recreate=True)
    with stage.cell.read() as tx:
        assert migrations.get_by_id(tx, stage.ctxt(), waiting.id).status == "error"


def test_a_deletion_is_not_disturbed(stage: Stage) -> None:
    server = built(stage)
    with pytest.raises(exceptions.NotSupported):
        tasks(stage).unshelve_instance(stage.ctxt(), instance=asked(stage, server, "deleting"))
    found = stage.server(server)
    assert found is not None
    assert found.task_state == "deleting"


def test_what_no_interface_has_is_not_there(stage: Stage) -> None:
    with pytest.raises(AttributeError):
        tasks(stage).dance  # noqa: B018
