"""Stop, start, reboot, lock, state reset, console output, deletion: what is refused, recorded and sent to the host."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.api import seeds

from kilonova.contract import exceptions
from kilonova.contract.states import VM
from kilonova.db.api.tables import INSTANCE_MAPPINGS
from kilonova.db.cell.tables import INSTANCE_ACTIONS
from kilonova.db.flow_tables import KN_FLOW

STOP = {"os-stop": None}
START = {"os-start": None}
SOFT = {"reboot": {"type": "SOFT"}}
HARD = {"reboot": {"type": "HARD"}}
CONSOLE: dict[str, Any] = {"os-getConsoleOutput": {}}
ADMIN_ONLY = ({"os-resetState": {"state": "error"}},)
EVERY_STATE = sorted(value for name, value in vars(VM).items() if name.isupper())


def act(world: Any, uuid: str, body: Any, **more: Any) -> Any:
    return world.request("POST", f"/servers/{uuid}/action", body, **more)


def actions(world: Any, uuid: str) -> list[tuple[str, str]]:
    """(action, user) of a server, in order."""
    table = INSTANCE_ACTIONS
    with world.cell("c1").database.read() as tx:
        found = tx.execute(sa.select(table.c.action, table.c.user_id).where(table.c.instance_uuid == uuid))
        return [(action, user) for action, user in found.all()]


def state(world: Any, uuid: str) -> tuple[str, str | None]:
    row = seeds.record(world, uuid)
    return row["vm_state"], row["task_state"]


# ---------------------------------------------------------------- power


@pytest.mark.parametrize(
    ("body", "before", "task", "sent", "action", "arguments"),
    [
        (STOP, "active", "powering-off", "stop_instance", "stop", {"clean_shutdown": True}),
        (STOP, "error", "powering-off", "stop_instance", "stop", {"clean_shutdown": True}),
        (START, "stopped", "powering-on", "start_instance", "start", {}),
        (SOFT, "active", "rebooting", "reboot_instance", "reboot", {"reboot_type": "SOFT"}),
        (HARD, "error", "rebooting_hard", "reboot_instance", "reboot", {"reboot_type": "HARD"}),
        ({"reboot": {"type": "hard"}}, "stopped", "rebooting_hard", "reboot_instance", "reboot", {}),
    ],
)
def test_accepted(
    world: Any, host: Any, body: Any, before: str, task: str, sent: str, action: str, arguments: Any
) -> None:
    uuid = seeds.server(world, vm_state=before)
    answer = act(world, uuid, body)
    assert (answer.status_code, answer.text) == (202, "")
    message = host.wait(sent)
    assert message["instance"].uuid == uuid
    assert message["instance"].task_state == task
    assert {name: message[name] for name in arguments} == arguments
    assert state(world, uuid) == (before, task)
    assert actions(world, uuid) == [(action, "joe")]


ALLOWED = {
    "os-stop": {"active", "error"},
    "os-start": {"stopped"},
    "SOFT": {"active"},
    "HARD": {"active", "stopped", "paused", "suspended", "error"},
}


@pytest.mark.parametrize(("name", "body"), [("os-stop", STOP), ("os-start", START), ("SOFT", SOFT), ("HARD", HARD)])
def test_every_state_is_accepted_or_refused(world: Any, host: Any, name: str, body: Any) -> None:
    refused = set()
    for vm_state in EVERY_STATE:
        uuid = seeds.server(world, vm_state=vm_state)
        answer = act(world, uuid, body)
        if answer.status_code == 409:
            refused.add(vm_state)
            assert answer.json["conflictingRequest"]["message"].endswith(f"while it is in vm_state {vm_state}")
            assert (state(world, uuid), actions(world, uuid)) == ((vm_state, None), [])
        else:
            assert answer.status_code == 202, answer.text
    assert refused == set(EVERY_STATE) - ALLOWED[name]


@pytest.mark.parametrize(
    ("body", "before", "change", "message"),
    [
        (STOP, "active", {"task_state": "rebooting"}, "Cannot 'stop' instance {} while it is in task_state rebooting"),
        (START, "stopped", {"task_state": "deleting"}, "Cannot 'start' instance {} while it is in task_state deleting"),
        (
            SOFT,
            "active",
            {"task_state": "rebooting"},
            "Cannot 'reboot' instance {} while it is in task_state rebooting",
        ),
        (HARD, "active", {"task_state": "deleting"}, "Cannot 'reboot' instance {} while it is in task_state deleting"),
        (STOP, "active", {"launched_at": None}, "Instance {} is in an invalid state for 'stop'"),
        (STOP, "active", {"locked": True, "locked_by": "owner"}, "Instance {} is locked"),
        (STOP, "active", {"host": None}, "Instance {} is not ready."),
        (SOFT, "active", {"host": None}, "Instance {} is not ready."),
        (HARD, "error", {"host": None}, "Instance {} is not ready."),
    ],
)
def test_refused(world: Any, host: Any, body: Any, before: str, change: dict[str, Any], message: str) -> None:
    uuid = seeds.server(world, vm_state=before, **change)
    answer = act(world, uuid, body)
    assert (answer.status_code, answer.json["conflictingRequest"]["message"]) == (409, message.format(uuid))
    assert state(world, uuid) == (before, change.get("task_state"))
    assert (actions(world, uuid), host.messages) == ([], [])


@pytest.mark.parametrize("task", ["rebooting", "reboot_pending", "powering-off", "image_snapshot", "resuming"])
def test_a_hard_reboot_goes_past_tasks_that_it_ends(world: Any, host: Any, task: str) -> None:
    uuid = seeds.server(world, task_state=task)
    assert act(world, uuid, HARD).status_code == (202 if task in ALLOWED_TASKS else 409)


ALLOWED_TASKS = {"rebooting", "reboot_pending", "resuming"}


def test_a_cast_that_cannot_be_sent_gives_the_server_back(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kilonova.wire.rpc.clients import ComputeClient

    def unsent(*args: Any, **more: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(ComputeClient, "stop_instance", unsent, raising=False)
    uuid = seeds.server(world)
    assert act(world, uuid, STOP).status_code == 500
    assert state(world, uuid) == ("active", None)


def test_two_requests_at_once_one_is_taken(world: Any, host: Any) -> None:
    uuid = seeds.server(world)
    assert [act(world, uuid, STOP).status_code for _ in range(2)] == [202, 409]
    host.wait("stop_instance")
    assert len(host.messages) == 1


@pytest.mark.parametrize("body", [STOP, START, SOFT, HARD, CONSOLE, {"lock": None}, {"unlock": None}])
def test_a_foreign_server_is_not_there(world: Any, body: Any) -> None:
    uuid = seeds.server(world)
    assert act(world, uuid, body, project=seeds.OTHER).status_code == 404
    assert act(world, seeds.NOWHERE, body).status_code == 404
    assert (state(world, uuid), actions(world, uuid)) == (("active", None), [])


@pytest.mark.parametrize("wrong", ["1", "0", "-1", "%20", "x" * 300])
def test_b001_no_uuid_is_no_server(world: Any, wrong: str) -> None:
    seeds.server(world)
    assert world.get(f"/servers/{wrong}").status_code == 404
    assert world.request("DELETE", f"/servers/{wrong}").status_code == 404
    assert act(world, wrong, STOP).status_code == 404
    for part in ("metadata", "ips", "os-instance-actions"):
        assert world.get(f"/servers/{wrong}/{part}").status_code == 404


@pytest.mark.parametrize(
    "body", [{}, {"os-stop": None, "os-start": None}, {"reboot": {}}, {"reboot": {"type": "NO"}}, {"x": 1}, []]
)
def test_what_is_no_action(world: Any, body: Any) -> None:
    uuid = seeds.server(world)
    assert act(world, uuid, body).status_code == 400
    assert state(world, uuid) == ("active", None)


# ---------------------------------------------------------------- lock, state


def test_locked_by_its_owner(world: Any, host: Any) -> None:
    uuid = seeds.server(world)
    assert act(world, uuid, {"lock": {"locked_reason": "mine"}}, version="2.73").status_code == 202
    shown = world.get(f"/servers/{uuid}", version="2.73").json["server"]
    assert (shown["locked"], shown["locked_reason"]) == (True, "mine")
    assert act(world, uuid, STOP).status_code == 409
    assert world.request("DELETE", f"/servers/{uuid}").status_code == 409
    assert act(world, uuid, STOP, user="admin").status_code == 202
    assert act(world, uuid, {"unlock": None}).status_code == 202
    shown = world.get(f"/servers/{uuid}", version="2.73").json["server"]
    assert (shown["locked"], shown["locked_reason"]) == (False, None)
    assert [name for name, _ in actions(world, uuid)] == ["lock", "stop", "unlock"]


def test_what_an_administrator_locks_its_owner_does_not_unlock(world: Any) -> None:
    uuid = seeds.server(world)
    assert act(world, uuid, {"lock": None}, user="admin", project=seeds.OTHER).status_code == 202
    assert seeds.record(world, uuid)["locked_by"] == "admin"
    assert act(world, uuid, {"unlock": None}).status_code == 403
    assert seeds.record(world, uuid)["locked"]
    assert act(world, uuid, {"unlock": None}, user="admin").status_code == 202
    assert not seeds.record(world, uuid)["locked"]


def test_a_reason_for_the_lock_begins_in_2_73(world: Any) -> None:
    uuid = seeds.server(world)
    assert act(world, uuid, {"lock": {"locked_reason": ""}}, version="2.73").status_code == 400
    assert act(world, uuid, {"lock": {"locked_reason": "x"}}, version="2.72").status_code == 202
    assert "locked_reason" not in seeds.record(world, uuid)["system_metadata"]


def test_state_reset_is_the_administrators(world: Any) -> None:
    uuid = seeds.server(world, vm_state="error", task_state="deleting")
    reset = {"os-resetState": {"state": "active"}}
    assert act(world, uuid, reset).status_code == 403
    assert act(world, uuid, {"os-resetState": {"state": "paused"}}, user="admin").status_code == 400
    assert act(world, uuid, reset, user="admin").status_code == 202
    assert state(world, uuid) == ("active", None)
    assert actions(world, uuid) == [("resetState", "admin")]


# ---------------------------------------------------------------- console output


def test_console_output(world: Any, host: Any) -> None:
    host.answers["get_console_output"] = "login:\x00\x1b ok\n"
    uuid = seeds.server(world)
    assert act(world, uuid, {"os-getConsoleOutput": {"length": "50"}}).json == {"output": "login: ok\n"}
    assert host.wait("get_console_output")["tail_length"] == 50


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.ConsoleNotAvailable(), 404),
        (exceptions.InstanceNotReady(instance_id="x"), 409),
        (NotImplementedError(), 501),
    ],
)
def test_console_output_that_there_is_not(
    world: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    from kilonova.wire.rpc.clients import ComputeClient

    def fail(*args: Any, **more: Any) -> None:
        raise error

    monkeypatch.setattr(ComputeClient, "get_console_output", fail, raising=False)
    assert act(world, seeds.server(world), CONSOLE).status_code == code


def test_b016_console_asked_while_the_server_is_being_deleted(world: Any, host: Any) -> None:
    assert act(world, seeds.server(world, task_state="deleting"), CONSOLE).status_code == 409
    assert host.messages == []


# ---------------------------------------------------------------- deletion


@pytest.fixture
def up(world: Any) -> None:
    seeds.service(world)


@pytest.mark.parametrize("vm_state", ["active", "building", "error", "stopped", "paused"])
def test_deleted_in_every_state(world: Any, host: Any, up: None, vm_state: str) -> None:
    uuid = seeds.server(world, vm_state=vm_state, task_state="spawning" if vm_state == "building" else None)
    answer = world.request("DELETE", f"/servers/{uuid}")
    assert (answer.status_code, answer.text) == (204, "")
    assert host.wait("terminate_instance")["instance"].uuid == uuid
    assert state(world, uuid) == (vm_state, "deleting")
    assert actions(world, uuid) == [("delete", "joe")]
    with world.cells.api.read() as tx:
        queued = sa.select(INSTANCE_MAPPINGS.c.queued_for_delete).where(INSTANCE_MAPPINGS.c.instance_uuid == uuid)
        assert tx.execute(queued).scalar_one()


def test_deleted_twice_is_one_flow_and_one_action(world: Any, host: Any, up: None) -> None:
    uuid = seeds.server(world)
    answers = [world.request("DELETE", f"/servers/{uuid}"), act(world, uuid, {"forceDelete": None})]
    assert [answer.status_code for answer in answers] == [204, 202]
    assert len(actions(world, uuid)) == 1
    with world.cell("c1").database.read() as tx:
        assert len(tx.execute(sa.select(KN_FLOW.c.id).where(KN_FLOW.c.subject_id == uuid)).all()) == 1


def test_deleted_while_its_host_is_silent_leaves_it_to_the_flow(world: Any, host: Any) -> None:
    seeds.service(world, forced_down=True)
    uuid = seeds.server(world)
    assert world.request("DELETE", f"/servers/{uuid}").status_code == 204
    assert host.messages == []
    with world.cell("c1").database.read() as tx:
        assert tx.execute(sa.select(KN_FLOW.c.op).where(KN_FLOW.c.subject_id == uuid)).scalars().all() == ["delete"]


def test_deleting_what_is_another_projects(world: Any, host: Any, up: None) -> None:
    uuid = seeds.server(world)
    assert world.request("DELETE", f"/servers/{uuid}", project=seeds.OTHER).status_code == 404
    assert act(world, uuid, {"forceDelete": None}, project=seeds.OTHER).status_code == 404
    assert (state(world, uuid), host.messages) == (("active", None), [])


def test_deferred_deletion_is_not_served_as_deletion_at_once(world: Any, up: None) -> None:
    world.conf.set_override("reclaim_instance_interval", 60)
    uuid = seeds.server(world)
    assert world.request("DELETE", f"/servers/{uuid}").status_code == 501
    assert state(world, uuid) == ("active", None)
    # Who may not delete it hears of that first.
    assert world.request("DELETE", f"/servers/{uuid}", project=seeds.OTHER).status_code == 404


def test_with_deferred_deletion_what_never_ran_is_deleted_at_once(world: Any, host: Any, up: None) -> None:
    world.conf.set_override("reclaim_instance_interval", 60)
    on_no_host = seeds.server(world, vm_state="error", host=None, node=None, launched_at=None)
    never_ran = seeds.server(world, vm_state="error", launched_at=None)
    for uuid in (on_no_host, never_ran):
        assert world.request("DELETE", f"/servers/{uuid}").status_code == 204
        assert state(world, uuid) == ("error", "deleting")
