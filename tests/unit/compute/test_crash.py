"""An agent that is killed between any two steps finishes or reports what it had begun."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.unit.compute.world import NOTHING, WaitingDriver, World, volume_disk, wait_for

from kilonova.compute import service
from kilonova.compute.journal import book
from kilonova.contract import exceptions, objects
from kilonova.db.objects import instance as instances
from kilonova.virt.fake.driver import FakeDriver
from kilonova.wire.rpc.errors import RPC_LOST

STEPS = ("claimed", "networks", "volumes", "spawning", "spawned")


def kill_at(world: World, step: str) -> None:
    """Kill the host's agent right after it noted the step."""
    agent = world.hosts["h1"].agent
    note = agent.journal.step

    def noted(entry: Any, name: str) -> None:
        note(entry, name)
        if name == step:
            world.kill()
            raise SystemExit

    agent.journal.step = noted  # type: ignore[method-assign]


def killed(world: World) -> None:
    assert wait_for(lambda: "h1" not in world.hosts)
    time.sleep(0.05)


def settled(world: World, server: str) -> objects.Instance | None:
    """The server once it is ACTIVE, in ERROR, gone, or given back; whatever it holds agrees with that."""

    def rests() -> bool:
        found = world.server(server)
        return found is None or found.vm_state in ("active", "error") or bool(world.tasks.builds)

    assert wait_for(rests)
    world.idle()
    found = world.server(server)
    left = world.leftovers(server)
    if found is None or found.vm_state == "error" or found.host is None:
        assert left == NOTHING
    else:
        assert (len(left["ports"]), left["guests"], bool(left["allocations"])) == (1, [found.host], True)
    if found is not None and found.vm_state == "error":
        assert world.fault(server) is not None
    return found


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("retry", [True, False])
def test_a_build_cut_off_after_a_step(world: World, step: str, retry: bool) -> None:
    world.host()
    kill_at(world, step)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    more = {} if retry else {"filter_properties": {}}
    world.cast_build(ctxt, asked, **more)
    killed(world)
    world.host()
    found = settled(world, asked.uuid)
    assert found is not None
    if step == "spawned":
        assert found.vm_state == "active"
        assert world.events(asked.uuid, ctxt.request_id)[-1][1] == "Success"
    elif retry:
        assert (found.vm_state, found.task_state) == ("building", "scheduling")
        assert "restarted" in world.tasks.builds[0]["filter_properties"]["retry"]["exc_reason"]
    else:
        assert found.vm_state == "error"
        assert "restarted during the build" in world.fault(asked.uuid).message
    assert world.hosts["h1"].agent.journal.open() == []


@pytest.mark.parametrize("after", [False, True])
def test_a_build_cut_off_in_the_driver(world: World, after: bool) -> None:
    """The guest may be there or not; the hypervisor is asked."""

    class Dying(FakeDriver):
        def spawn(self, ctxt: Any, guest: Any) -> None:
            if after:
                super().spawn(ctxt, guest)
            world.kill()
            raise SystemExit

    world.host(driver=Dying)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    killed(world)
    world.host()
    found = settled(world, asked.uuid)
    assert found is not None
    assert found.vm_state == ("active" if after else "building")


def test_a_build_accepted_but_not_begun(world: World) -> None:
    host = world.host()
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    hold = threading.Event()
    host.agent.lanes.submit(asked.uuid, lambda turn: hold.wait(20))
    world.cast_build(ctxt, asked)
    assert wait_for(host.agent.journal.open)
    world.kill()
    hold.set()
    assert wait_for(lambda: not host.agent.lanes.busy(asked.uuid))
    world.host()
    found = settled(world, asked.uuid)
    assert found is not None
    assert found.vm_state == "active"


@pytest.mark.parametrize("saved", [True, False])
def test_a_build_cut_off_while_it_was_given_back(world: World, saved: bool) -> None:
    """The claim on this host ends, and the conductor hears of it (again)."""
    world.host()
    world.fail("spawn", exceptions.ComputeResourcesUnavailable(reason="no room"))
    agent = world.hosts["h1"].agent
    if saved:

        def dying(*given: Any, **more: Any) -> None:
            world.kill()
            raise SystemExit

        agent.conductor = type("Conductor", (), {"build_instances": dying})()  # type: ignore[assignment]
    else:
        kill_at(world, "rescheduling")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    killed(world)
    world.host()
    found = settled(world, asked.uuid)
    assert (found.vm_state, found.task_state, found.host) == ("building", "scheduling", None)
    assert len(world.tasks.builds) == 1
    assert world.tasks.builds[0]["filter_properties"]["retry"]["num_attempts"] == 1
    # A sender that did not hear of it sends its cast once more, and is told again.
    world.cast_build(ctxt, asked)
    assert wait_for(lambda: len(world.tasks.builds) == 2)


def test_a_build_that_the_conductor_gave_up_meanwhile(world: World) -> None:
    world.host()
    held = world.hold("spawn")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    held.reached()
    server = world.until(asked.uuid, task_state="spawning")
    server.vm_state, server.task_state = "error", None
    server.host = server.node = server.compute_id = None
    world.db.run(instances.save, ctxt, server)
    world.clients.placement.allocations_delete(ctxt, server.uuid, force=True)
    held.release()
    world.idle()
    found = world.server(asked.uuid)
    assert (found.vm_state, found.task_state, found.host) == ("error", None, None)
    assert world.leftovers(asked.uuid) == NOTHING
    assert world.tasks.builds == []


@pytest.mark.parametrize("step", ["claimed", "spawned"])
def test_a_build_whose_journal_was_lost(world: World, step: str) -> None:
    world.host()
    kill_at(world, step)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    killed(world)
    for path in (world.folder / "h1").glob("journal*"):
        path.unlink()
    world.host()
    found = settled(world, asked.uuid)
    assert found is not None
    assert found.vm_state == ("active" if step == "spawned" else "error")


def test_a_build_whose_volume_was_attached(world: World) -> None:
    volume = world.cloud.cinder.volume(project="project")
    world.host()
    kill_at(world, "volumes")
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[volume_disk(volume)], image_ref="")
    world.cast_build(ctxt, asked, filter_properties={})
    killed(world)
    world.host()
    found = settled(world, asked.uuid)
    assert found is not None
    assert found.vm_state == "error"
    assert world.cloud.cinder.volumes[volume]["status"] == "available"


def test_a_build_deleted_while_the_host_was_down(world: World) -> None:
    world.host()
    kill_at(world, "spawned")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    killed(world)
    world.db.run(instances.destroy, ctxt, world.server(asked.uuid))
    world.host()
    assert wait_for(lambda: world.hosts["h1"].agent.journal.open() == [])
    assert world.leftovers(asked.uuid) == NOTHING


def test_a_build_marked_for_deletion_while_the_host_was_down(world: World) -> None:
    world.host()
    kill_at(world, "spawned")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    killed(world)
    server = world.server(asked.uuid)
    server.task_state = "deleting"
    world.db.run(instances.save, ctxt, server)
    world.host()
    world.gone(asked.uuid)
    world.idle()
    assert world.leftovers(asked.uuid) == NOTHING


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_delete_cut_off(world: World, where: str) -> None:
    class Dying(FakeDriver):
        dying = False

        def destroy(self, *args: Any, **kwargs: Any) -> None:
            if not self.dying:
                return super().destroy(*args, **kwargs)
            if where == "after":
                super().destroy(*args, **kwargs)
            world.kill()
            raise SystemExit

    world.host(driver=Dying)
    server = world.built()
    world.hosts["h1"].agent.driver.dying = True
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    killed(world)
    world.host()
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING


@pytest.mark.parametrize(
    ("method", "task", "call", "args", "ends"),
    [
        ("stop_instance", "powering-off", "power_off", {"clean_shutdown": True}, "stopped"),
        ("start_instance", "powering-on", "power_on", {}, "active"),
        ("reboot_instance", "rebooting", "reboot", {"block_device_info": None, "reboot_type": "SOFT"}, "active"),
        ("reboot_instance", "rebooting_hard", "reboot", {"block_device_info": None, "reboot_type": "HARD"}, "active"),
    ],
)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("journal", [True, False])
def test_power_operations_are_finished(
    world: World, method: str, task: str, call: str, args: Any, ends: str, after: bool, journal: bool
) -> None:
    """By the journal, or by the task state alone where the journal was lost."""
    world.host()
    server = world.built()
    if method == "start_instance":
        world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
        server = world.until(server.uuid, vm_state="stopped", task_state=None)
    agent = world.hosts["h1"].agent
    real = getattr(agent.driver, call)

    def dying(*given: Any, **more: Any) -> None:
        if after:
            real(*given, **more)
        world.kill()
        raise SystemExit

    setattr(agent.driver, call, dying)
    world.cast(method, server, task, **args)
    killed(world)
    if not journal:
        for path in (world.folder / "h1").glob("journal*"):
            path.unlink()
    world.host()
    found = world.until(server.uuid, vm_state=ends, task_state=None)
    world.idle()
    assert found.power_state == world.driver().guest(server.uuid).power_state == (4 if ends == "stopped" else 1)


def test_a_restart_does_not_touch_guests(world: World) -> None:
    world.host()
    server = world.built()
    before = world.driver()._guests.get(server.uuid)
    world.stop()
    world.host()
    world.idle()
    assert world.driver()._guests.get(server.uuid) == before
    assert world.server(server.uuid).vm_state == "active"


@pytest.mark.parametrize("resume", [True, False])
def test_guests_after_the_host_was_down(world: World, resume: bool) -> None:
    world.set(resume_guests_state_on_host_boot=resume)
    world.host()
    server = world.built()
    driver = world.driver()
    world.stop()
    driver.power_off(server)
    world.host()
    world.idle()
    assert world.driver().guest(server.uuid).power_state == (1 if resume else 4)
    found = world.server(server.uuid)
    assert (found.vm_state, found.task_state) == ("active", None)


def test_a_forgetful_fake_host_takes_the_records_word(world: World) -> None:
    world.host()
    server = world.built()
    world.stop()
    for path in (world.folder / "h1" / "fake-guests").iterdir():
        path.unlink()
    world.host()
    assert world.driver().guest(server.uuid).power_state == 1


def test_a_stop_in_the_middle_keeps_the_rest_for_later(world: World) -> None:
    """A graceful stop ends what runs; what waits is taken up at the next start."""
    world.set(max_concurrent_builds=1)
    host = world.host()
    held = world.hold("spawn")
    asked = []
    for _ in range(3):
        ctxt = world.ctxt()
        asked.append(world.asked(ctxt))
        world.cast_build(ctxt, asked[-1])
    assert wait_for(lambda: len(host.agent.journal.open()) == 3)
    held.reached()
    with ThreadPoolExecutor() as pool:
        stopped = pool.submit(world.stop)
        assert wait_for(lambda: host.agent.lanes._stopping)
        held.release()
        stopped.result()
    world.host()
    for each in asked:
        found = settled(world, each.uuid)
        assert found is not None
        assert found.vm_state == "active"


def kept_in(folder: Any) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("j.sqlite3*")))


SECRETS = ("short-secret-0123456789", "long-secret-" * 2000)


def test_secrets_of_ended_operations_are_overwritten(tmp_path: Any) -> None:
    journal = book.Book(tmp_path / "j.sqlite3")
    entries = [journal.accept(book.Key("r", "m", str(n)), {"p": SECRETS[n % 2]}) for n in range(10)]
    assert b"short-secret" in kept_in(tmp_path)
    for entry in entries:
        journal.finish(entry, book.DONE, "fine")
    journal.scrub()
    # Looked at as a thief of the disk would, while the agent runs.
    assert b"-secret-" not in kept_in(tmp_path)
    assert [path.stat().st_mode & 0o077 for path in tmp_path.iterdir()] == [0, 0, 0]
    last = journal.accept(book.Key("r", "m", "last"), {"p": SECRETS[0]})
    journal.finish(last, book.FAILED, "broken")
    journal.close()
    assert b"-secret-" not in kept_in(tmp_path)


def test_what_earlier_versions_and_killed_runs_left_is_overwritten(tmp_path: Any) -> None:
    path = tmp_path / "j.sqlite3"
    script = f"""
import os, sqlite3
db = sqlite3.connect({str(path)!r}, isolation_level=None)
db.executescript("PRAGMA secure_delete=OFF; PRAGMA journal_mode=WAL;" + {book._SCHEMA!r})
for n in range(200):
    db.execute("INSERT INTO operation (request_id, method, instance_uuid, migration_uuid, accepted_at, changed_at,"
               " state, payload) VALUES (?, 'm', 'i', '', 0, 0, 'done', ?)", (str(n), {SECRETS[0]!r} * 50))
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.execute("UPDATE operation SET payload = NULL")
os._exit(1)
"""
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    for each in tmp_path.iterdir():
        each.chmod(0o644)
    assert SECRETS[0].encode() in kept_in(tmp_path)
    journal = book.Book(path)
    assert SECRETS[0].encode() not in kept_in(tmp_path)
    assert [each.stat().st_mode & 0o077 for each in tmp_path.iterdir()] == [0, 0, 0]
    assert journal.open() == []
    journal.close()


def test_a_host_scrubs_its_journal_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SCRUB_SPACING", 0.05)
    host = world.host()
    ctxt = world.ctxt(auth_token="token-of-the-user")
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, admin_password="a-very-secret-password")
    world.until(asked.uuid, vm_state="active")
    world.idle()
    folder = world.folder / "h1"

    def clean() -> bool:
        kept = b"".join(path.read_bytes() for path in folder.glob("journal*"))
        return b"secret-password" not in kept and b"token-of-the-user" not in kept

    assert wait_for(clean)
    assert host.agent.journal.open() == []


def test_a_host_whose_disk_is_full_deletes_and_does_not_build(world: World) -> None:
    """What is deleted makes room; what cannot be written down is not begun."""
    host = world.host()
    server = world.built()
    host.agent.journal._db.execute("PRAGMA max_page_count=1")
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked, injected_files=[("/x", "eHh4" * 9000)])
    disks = world.disks(server)
    server.display_description = "x" * 9000
    world.cast("terminate_instance", server, "deleting", bdms=disks)
    world.gone(server.uuid)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING
    assert host.agent.journal.open() == []
    assert world.server(asked.uuid).task_state == "scheduling"
    assert world.server(asked.uuid).host is None


def test_the_journal_forgets_what_ended(tmp_path: Any) -> None:
    journal = book.Book(tmp_path / "j.sqlite3")
    done = journal.accept(book.Key("r", "m", "i"), {"args": 1})
    journal.accept(book.Key("r", "m", "i2"), {})
    journal.finish(done, book.DONE, "fine")
    again = journal.accept(book.Key("r", "m", "i"), {})
    assert (again.fresh, again.state, again.result, again.payload) == (False, book.DONE, "fine", None)
    assert [entry.key.instance_uuid for entry in journal.open()] == ["i2"]
    assert journal.prune(-1) == 1
    assert journal.accept(book.Key("r", "m", "i"), {}).fresh
    assert (tmp_path / "j.sqlite3").stat().st_mode & 0o077 == 0


def test_a_build_that_waits_when_the_agent_ends_is_not_undone(world: World) -> None:
    """It waits for its interfaces longer than the end may take; the next run decides."""

    class Waiting(FakeDriver):
        def spawn(self, ctxt: Any, guest: Any) -> None:
            super().spawn(ctxt, guest)
            with self.services.events.expect(guest.instance.uuid, [("network-vif-plugged", "p")], 60):
                pass

    world.host(driver=Waiting)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    world.until(asked.uuid, task_state="spawning")
    assert wait_for(lambda: asked.uuid in world.driver().guests())
    world.stop(timeout=0.2)
    assert len(world.cloud.neutron.ports_of(asked.uuid)) == 1
    assert world.server(asked.uuid).task_state == "spawning"
    world.host()
    found = settled(world, asked.uuid)
    assert found is not None
    assert found.vm_state == "active"


def test_a_build_hears_of_its_interfaces_while_the_agent_ends(world: World) -> None:
    """New orders are refused meanwhile; what its neighbours say to work under way comes on the other topic."""

    world.host(driver=WaitingDriver)
    ctxt = world.ctxt()
    asked = world.asked(ctxt)
    world.cast_build(ctxt, asked)
    waiting = world.until(asked.uuid, task_state="spawning")
    assert wait_for(lambda: asked.uuid in world.driver().guests())
    ender = threading.Thread(target=world.stop, kwargs={"timeout": 20.0})
    ender.start()
    assert wait_for(lambda: refuses_orders(world))
    [port] = world.cloud.neutron.ports_of(asked.uuid)
    event = objects.InstanceExternalEvent(
        instance_uuid=asked.uuid, name="network-vif-plugged", status="completed", tag=port["id"], data={}
    )
    world.client.external_instance_event(world.ctxt(), instances=[waiting], events=[event], host="h1")
    ender.join(30)
    found = world.server(asked.uuid)
    assert (found.vm_state, found.task_state) == ("active", None)


def refuses_orders(world: World) -> bool:
    world.set(rpc_response_timeout=1)
    try:
        world.client.get_host_uptime(world.ctxt(), host="h1")
    except RPC_LOST:
        return True
    finally:
        world.set(rpc_response_timeout=5)
    return False
