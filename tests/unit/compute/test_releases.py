"""Volumes of servers that end: nothing stays in use because its service was away, and no delete waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes.guests import IMAGE_ID
from tests.unit.compute.world import NOTHING, World, volume_disk, wait_for

from kilonova.clients.cinder.client import Cinder
from kilonova.compute import releases
from kilonova.compute.background import Background
from kilonova.compute.journal import book
from kilonova.contract import exceptions, objects
from kilonova.db.objects import instance as instances
from kilonova.reconcile.host import loops
from kilonova.reconcile.loop import Report


def with_volume(world: World, **more: Any) -> tuple[objects.Instance, str]:
    """An ACTIVE server on a volume."""
    ctxt = world.ctxt()
    volume = world.cloud.cinder.volume(project="project")
    asked = world.asked(ctxt, disks=[volume_disk(volume, **more)], image_ref="")
    world.cast_build(ctxt, asked)
    server = world.until(asked.uuid, vm_state="active", task_state=None)
    world.idle()
    return server, volume


def to_be_made(size: int | None = 3) -> objects.BlockDeviceMapping:
    return objects.BlockDeviceMapping(
        source_type="image",
        destination_type="volume",
        boot_index=0,
        volume_size=size,
        image_id=IMAGE_ID,
        delete_on_termination=True,
    )


def delete(world: World, server: objects.Instance) -> None:
    world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
    world.gone(server.uuid)


def passes(world: World, times: int = 2) -> Report:
    host = world.hosts["h1"]
    loop = next(each for each in host._loops if each.name == "unreleased_volumes")
    for _ in range(times):
        report = loop.run()
    assert isinstance(report, Report)
    return report


@pytest.fixture
def host(world: World) -> Any:
    world.set("kilonova", reconcile_grace=0.0)
    world.set(block_device_allocate_retries_interval=0)
    return world.host(loops=loops.make)


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/attachments/"), ("DELETE", "/volumes/")])
def test_what_could_not_be_released_is_tried_again(world: World, host: Any, method: str, path: str) -> None:
    server, volume = with_volume(world, delete_on_termination=True)
    world.cloud.cinder.fail(method, path, status=503, times=8)
    delete(world, server)
    world.idle()
    assert volume in world.cloud.cinder.volumes
    [owed] = host.agent.journal.owed()
    assert "503" in str(owed.error)
    assert host.status()["unreleased_volumes"] == 1
    first = passes(world)
    assert (first.failed, len(first.seen)) == (1, 1), "a failure is told"
    assert volume in first.seen[0]
    assert passes(world, 1).repaired == 1
    assert volume not in world.cloud.cinder.volumes
    assert world.leftovers(server.uuid) == NOTHING
    assert host.agent.journal.owed() == []


def test_another_run_of_the_agent_goes_on_with_it(world: World, host: Any) -> None:
    server, volume = with_volume(world)
    world.cloud.cinder.fail("DELETE", "/attachments/", status=503, times=4)
    delete(world, server)
    world.idle()
    world.stop()
    world.host(loops=loops.make)
    assert passes(world).repaired == 1
    assert world.cloud.cinder.volumes[volume]["status"] == "available"


def test_the_service_acts_where_the_users_token_ran_out(world: World, host: Any) -> None:
    server, volume = with_volume(world)
    world.cloud.cinder.fail("DELETE", "/attachments/", status=401, times=1)
    delete(world, server)
    world.idle()
    assert world.cloud.cinder.volumes[volume]["status"] == "available"
    assert host.agent.journal.owed() == []


def test_a_failed_build_gives_back_later_what_it_could_not(world: World, host: Any) -> None:
    world.fail("spawn", exceptions.ImageUnacceptable(image_id="i", reason="broken"))
    world.cloud.cinder.fail("DELETE", "/attachments/", status=503, times=4)
    ctxt = world.ctxt()
    volume = world.cloud.cinder.volume(project="project")
    asked = world.asked(ctxt, disks=[volume_disk(volume)], image_ref="")
    world.cast_build(ctxt, asked)
    world.until(asked.uuid, vm_state="error", task_state=None)
    world.idle()
    assert passes(world).repaired == 1
    assert world.cloud.cinder.volumes[volume]["status"] == "available"


def test_an_attachment_that_is_not_on_record_goes_too(world: World, host: Any) -> None:
    """The agent died between making it and writing it down, or a peer made another one."""
    server, volume = with_volume(world)
    [attachment] = world.leftovers(server.uuid)["attachments"]
    made = dict(world.cloud.cinder.attachments.pop(attachment))
    world.cloud.cinder.attachments["other"] = {**made, "id": "other"}
    delete(world, server)
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING
    assert world.cloud.cinder.volumes[volume]["status"] == "available"


def test_a_refusal_is_taken_as_final_after_a_day(world: World, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, volume = with_volume(world, delete_on_termination=True)
    refusal = {"badRequest": {"code": 400, "message": "it has snapshots"}}
    world.cloud.cinder.fail("DELETE", "/volumes/", status=400, body=refusal, times=9)
    delete(world, server)
    world.idle()
    assert passes(world).failed == 1
    monkeypatch.setattr(releases, "REFUSING", 0.0)
    assert passes(world, 1).repaired == 1
    assert host.agent.journal.owed() == []
    assert volume in world.cloud.cinder.volumes


# --- made, not recorded ------------------------------------------------------------------------


def lose_the_answer(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Of the first volume that is made."""
    real, made = Cinder.volume_create, []

    def create(self: Cinder, *args: Any, **kwargs: Any) -> Any:
        answer = real(self, *args, **kwargs)
        made.append(answer)
        if len(made) == 1:
            raise error
        return answer

    monkeypatch.setattr(Cinder, "volume_create", create)


def test_a_volume_that_no_record_names_ends_with_its_build(
    world: World, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer(monkeypatch, exceptions.CinderConnectionFailed(reason="lost"))
    ctxt = world.ctxt()
    stranger = world.cloud.cinder.volume(project="project", metadata={releases.MARK: "another"})
    asked = world.asked(ctxt, disks=[to_be_made()])
    world.cast_build(ctxt, asked, filter_properties={})
    world.until(asked.uuid, vm_state="error")
    world.idle()
    assert list(world.cloud.cinder.volumes) == [stranger]
    assert host.agent.journal.owed() == []


def died_making_a_volume(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[objects.Instance], None] = lambda _: None,
    **more: Any,
) -> objects.Instance:
    """The agent was killed before it heard that the volume was made; it runs again."""
    made, over = threading.Event(), threading.Event()
    real = Cinder.volume_create

    def create(self: Cinder, *args: Any, **kwargs: Any) -> Any:
        real(self, *args, **kwargs)
        made.set()
        over.wait(60)
        raise SystemExit

    monkeypatch.setattr(Cinder, "volume_create", create)
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[to_be_made()])
    world.cast_build(ctxt, asked, **more)
    assert made.wait(20)
    world.kill()
    over.set()
    meanwhile(asked)
    monkeypatch.setattr(Cinder, "volume_create", real)
    world.host(loops=loops.make)
    return asked


def test_a_volume_of_a_killed_agent_ends_with_its_build(
    world: World, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = died_making_a_volume(world, monkeypatch, filter_properties={})
    world.until(asked.uuid, vm_state="error")
    world.idle()
    assert world.cloud.cinder.volumes == {}


def test_a_volume_of_a_killed_agent_is_not_made_twice(world: World, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next host finds it by its mark."""
    asked = died_making_a_volume(world, monkeypatch)
    assert wait_for(lambda: world.tasks.builds)
    world.idle()
    world.host("h2")
    ctxt = world.ctxt()
    world.claim(ctxt, asked, "h2")
    properties = {"retry": {"num_attempts": 2, "hosts": []}}
    world.cast_build(ctxt, world.server(asked.uuid), "h2", filter_properties=properties)
    world.until(asked.uuid, vm_state="active", host="h2")
    [made] = world.cloud.cinder.volumes.values()
    assert [disk.volume_id for disk in world.disks(asked)] == [made["id"]]
    world.idle()
    agent = world.hosts["h1"].agent
    assert len(agent.journal.owed()) == 1, "until it is known what became of it"
    assert passes(world).repaired == 1
    assert agent.journal.owed() == []
    assert made["id"] in world.cloud.cinder.volumes
    assert len(world.leftovers(asked.uuid)["attachments"]) == 1


def test_a_volume_that_no_other_host_took_ends_with_its_server(
    world: World, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build was given back, and no host was left to try."""
    asked = died_making_a_volume(world, monkeypatch)
    assert wait_for(lambda: world.tasks.builds)
    world.idle()
    report = passes(world)
    assert (report.repaired, report.waiting) == (0, 1), "the next host may look for it"
    assert len(world.cloud.cinder.volumes) == 1
    record = world.server(asked.uuid)
    record.vm_state, record.task_state = "error", None
    world.db.run(instances.save, world.ctxt(), record)
    assert passes(world, 1).repaired == 1
    assert world.cloud.cinder.volumes == {}


def test_a_volume_of_a_killed_agent_ends_with_a_server_that_was_deleted_meanwhile(
    world: World, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API deletes servers of hosts that are down, and knows of no volume that is not on record."""

    def deleted(asked: objects.Instance) -> None:
        world.db.run(instances.destroy, world.ctxt(), world.server(asked.uuid))

    died_making_a_volume(world, monkeypatch, meanwhile=deleted)
    world.idle()
    assert passes(world).failed == 0
    assert world.cloud.cinder.volumes == {}
    assert world.hosts["h1"].agent.journal.owed() == []


def test_what_a_volume_is_asked_for_with_is_forgotten_once_it_is_on_record(world: World, host: Any) -> None:
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[to_be_made()])
    world.cast_build(ctxt, asked)
    world.until(asked.uuid, vm_state="active", task_state=None)
    assert host.agent.journal.owed() == []


def test_a_volume_that_never_came_is_not_looked_for_for_ever(
    world: World, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.cloud.cinder.fail("POST", "/volumes", status=503, times=9)
    world.set("kilonova", service_patience=0)
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[to_be_made()])
    world.cast_build(ctxt, asked, filter_properties={})
    world.until(asked.uuid, vm_state="error")
    world.idle()
    assert passes(world).failed == 0
    assert len(host.agent.journal.owed()) == 1
    monkeypatch.setattr(releases, "LATE", 0.0)
    passes(world, 1)
    assert host.agent.journal.owed() == []


# --- a delete does not wait --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/attachments/"), ("POST", "/attachments"), ("GET", "/volumes/"), ("POST", "/volumes")],
)
def test_a_delete_does_not_wait_for_a_volume_of_a_build(world: World, host: Any, method: str, path: str) -> None:
    """Cinder has taken the request and does not answer for minutes."""
    ctxt = world.ctxt()
    brought = volume_disk(world.cloud.cinder.volume(project="project"))
    disk = to_be_made() if path == "/volumes" else brought
    asked = world.asked(ctxt, disks=[disk], image_ref="")
    hold, release = threading.Event(), threading.Event()
    send = world.clients.cinder._http.transport.send

    def slow(request: Any) -> Any:
        if request.method == method and request.path.startswith(path) and not hold.is_set():
            hold.set()
            release.wait(60)
        return send(request)

    world.clients.cinder._http.transport.send = slow  # type: ignore[method-assign]
    world.cast_build(ctxt, asked)
    assert hold.wait(20)
    began = time.monotonic()
    delete(world, world.server(asked.uuid))
    assert time.monotonic() - began < 8
    release.set()
    world.idle()
    assert world.leftovers(asked.uuid)["ports"] == []


def test_a_delete_does_not_wait_for_a_volume_that_is_made(world: World, host: Any) -> None:
    world.set(block_device_allocate_retries_interval=60)
    ctxt = world.ctxt()
    asked = world.asked(ctxt, disks=[to_be_made()])
    real = world.cloud.cinder.volume
    world.cloud.cinder.volume = lambda *args, **more: real(*args, **{**more, "status": "creating"})  # type: ignore[method-assign]
    world.cast_build(ctxt, asked)
    assert wait_for(lambda: [disk for disk in world.disks(asked) if disk.volume_id])
    time.sleep(0.1)
    began = time.monotonic()
    delete(world, world.server(asked.uuid))
    assert time.monotonic() - began < 8


def test_a_delete_does_not_wait_for_its_volumes(world: World, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, volume = with_volume(world)
    monkeypatch.setattr(releases, "PATIENCE", 0.1)
    release, real = threading.Event(), Cinder.attachment_delete

    def slow(self: Cinder, *args: Any) -> bool:
        release.wait(60)
        return real(self, *args)

    monkeypatch.setattr(Cinder, "attachment_delete", slow)
    began = time.monotonic()
    delete(world, server)
    assert time.monotonic() - began < 8
    assert [each.volume_id for each in host.agent.journal.owed()] == [volume]
    release.set()
    assert wait_for(lambda: world.cloud.cinder.volumes[volume]["status"] == "available")
    assert wait_for(lambda: host.agent.journal.owed() == [])


def test_a_delete_does_not_wait_for_volumes_of_others(world: World, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many calls to Cinder hang that there is room for no more."""
    server, volume = with_volume(world)
    monkeypatch.setattr(host.agent, "background", Background(most=0))
    before = len(world.cloud.cinder.requests)
    delete(world, server)
    world.idle()
    assert len(world.cloud.cinder.requests) == before, "nobody waits for Cinder"
    assert passes(world).repaired == 1
    assert world.cloud.cinder.volumes[volume]["status"] == "available"


def test_releases_that_hang_leave_room_for_calls_that_somebody_waits_for() -> None:
    background, hold = Background(most=4), threading.Event()
    while background.offer(lambda: hold.wait(20)) is not None:
        pass
    assert background.submit(lambda: threading.current_thread().name).result(10) == "background"
    hold.set()
    assert wait_for(lambda: background.offer(lambda: None) is not None)


def test_a_full_disk_keeps_no_server_with_volumes_from_being_deleted(world: World, host: Any) -> None:
    """Nor one whose delete failed before, when there was room still."""
    server, volume = with_volume(world)
    other, _ = with_volume(world)
    world.fail("destroy", calls=range(1, 2))
    ctxt = world.cast("terminate_instance", other, "deleting", bdms=world.disks(other))
    world.until(other.uuid, vm_state="error", task_state=None)
    world.idle()
    host.agent.journal._db.execute("PRAGMA max_page_count=1")
    for number in range(99):
        # What is left of the last page.
        try:
            host.agent.journal.owe(book.Release("x" * 400, f"v{number}"))
        except book.FullError:
            break
    delete(world, server)
    assert world.leftovers(server.uuid) == NOTHING
    assert world.cloud.cinder.volumes[volume]["status"] == "available"
    other = world.server(other.uuid)
    other.task_state, other.display_description = "deleting", "x" * 9000
    world.db.run(instances.save, ctxt, other)
    world.client.terminate_instance(ctxt, instance=other, bdms=world.disks(other))
    world.gone(other.uuid)
    assert world.leftovers(other.uuid) == NOTHING


def test_a_cinder_that_is_away_is_asked_once_in_a_pass(world: World, host: Any) -> None:
    for number in range(3):
        host.agent.journal.owe(book.Release("i", f"v{number}", attachment_id=f"a{number}"))
    world.cloud.cinder.fail("DELETE", "/attachments/", status=503, times=99)
    report = passes(world)
    assert (report.failed, report.waiting, report.repaired) == (1, 2, 0)
    world.cloud.cinder.faults.clear()
    assert passes(world, 1).repaired == 3


@pytest.mark.parametrize("method", ["power_off", "reboot"])
def test_a_delete_does_not_wait_for_a_guest(world: World, method: str) -> None:
    """Whose image may say that it is given hours to shut down."""
    world.set("kilonova", fake_latency={method: 60.0})
    world.host()
    server = world.built()
    if method == "reboot":
        world.cast("reboot_instance", server, "rebooting", block_device_info=None, reboot_type="SOFT")
        world.until(server.uuid, task_state="reboot_started")
    else:
        world.cast("stop_instance", server, "powering-off", clean_shutdown=True)
        assert wait_for(lambda: world.hosts["h1"].agent.lanes.depth)
    began = time.monotonic()
    delete(world, world.server(server.uuid))
    assert time.monotonic() - began < 8
    world.idle()
    assert world.leftovers(server.uuid) == NOTHING
    assert world.fault(server.uuid) is None


def test_what_is_owed_is_written_once(tmp_path: Any) -> None:
    journal = book.Book(tmp_path / "j.sqlite3")
    first = journal.owe(book.Release("i", "v", attachment_id="a"))
    again = journal.owe(book.Release("i", "v", attachment_id="b", and_delete=True))
    assert (again.id, again.attachment_id, again.and_delete) == (first.id, "b", True)
    marked = journal.owe(book.Release("i", mark="m", and_delete=True))
    journal.still_owed(marked, "away")
    assert [each.error for each in journal.owed()] == [None, "away"]
    journal.settled(again)
    assert [each.name for each in journal.owed()] == ["of device m"]
    journal.close()
