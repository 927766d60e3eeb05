"""The agent is killed before and after every single call it makes to the record, another service or the hypervisor.

Whatever the moment: after the restart the server is ACTIVE and whole, in ERROR with a fault, given back to the
conductor, or gone; and nobody holds anything for it that the record does not explain.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest

from kilonova.contract import exceptions, objects
from kilonova.virt.fake.faults import Fault
from tests.unit.compute.world import NOTHING, World, volume_disk, wait_for

SERVICES = ("placement", "neutron", "cinder", "glance")
DRIVER = ("spawn", "destroy", "guest", "volume_connector")


class Executioner:
    """Counts the calls that operations make, and kills the agent at the n-th."""

    def __init__(self, world: World, at: int | None = None, after: bool = False) -> None:
        self.world, self.at, self.after = world, at, after
        self.calls: list[str] = []
        agent = world.hosts["h1"].agent
        self._real = {name: getattr(world.cloud, name).send for name in SERVICES}
        for name in SERVICES:
            getattr(world.cloud, name).send = self._tapped(name, self._real[name])
        conductor = agent.store._conductor
        for name in ("object_action", "object_class_action_versions"):
            setattr(conductor, name, self._tapped("record", getattr(conductor, name)))
        agent.conductor = _Cast(self._tapped("cast", agent.conductor.build_instances))  # type: ignore[assignment]
        for name in DRIVER:
            setattr(agent.driver, name, self._tapped(name, getattr(agent.driver, name)))

    def _tapped(self, name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread().name != "lane":
                return real(*args, **kwargs)
            self.calls.append(name)
            hit = len(self.calls) == self.at
            if hit and not self.after:
                self._kill()
            answer = real(*args, **kwargs)
            if hit:
                self._kill()
            return answer

        return call

    def _kill(self) -> None:
        self.world.kill()
        raise SystemExit

    def undo(self) -> None:
        for name, send in self._real.items():
            getattr(self.world.cloud, name).send = send


class _Cast:
    def __init__(self, build_instances: Any) -> None:
        self.build_instances = build_instances


def build(world: World, ctxt: Any) -> objects.Instance:
    volume = world.cloud.cinder.volume(project="project")
    server = str(uuid.uuid4())
    attachment = world.clients.cinder.attachment_create(ctxt, volume, server)["id"]
    disk = volume_disk(volume, attachment_id=attachment)
    asked = world.asked(ctxt, disks=[disk], image_ref="", uuid=server)
    world.cast_build(ctxt, asked)
    return asked


def refuse(world: World) -> None:
    error = exceptions.ComputeResourcesUnavailable(reason="no room")
    world.driver().faults.add(Fault("spawn", lambda: error, calls=[1]))


def check(world: World, server: str) -> None:
    found = world.server(server)
    left = world.leftovers(server)
    [volume] = world.cloud.cinder.volumes.values()
    if found is None:
        assert left == NOTHING
    elif found.vm_state == "error":
        assert left == NOTHING
        assert found.host is None
        assert world.fault(server) is not None
        assert volume["status"] == "available"
    elif found.vm_state == "active":
        assert (len(left["ports"]), left["guests"], len(left["attachments"])) == (1, ["h1"], 1)
        assert left["allocations"]
        assert volume["status"] == "in-use"
    else:
        assert (found.vm_state, found.task_state, found.host) == ("building", "scheduling", None)
        assert len(world.tasks.builds) >= 1
        assert (left["ports"], left["guests"], left["allocations"]) == ([], [], {})
        assert len(left["attachments"]) == 1
        assert volume["status"] == "reserved"
    assert world.hosts["h1"].agent.journal.open() == []


def rests(world: World, server: str) -> bool:
    found = world.server(server)
    return found is None or found.vm_state in ("active", "error") or bool(world.tasks.builds)


def killed_and_restarted(world: World) -> bool:
    """False when the operation ended before its turn to be killed came."""
    assert wait_for(lambda: "h1" not in world.hosts or not world.hosts["h1"].agent.journal.open())
    if "h1" in world.hosts:
        return False
    time.sleep(0.02)
    world.host()
    return True


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("refused", [False, True], ids=["build", "refused-build"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_build_killed_at_every_call(tmp_path: Any, templates: Any, refused: bool, after: bool) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, templates)
        try:
            world.host()
            if refused:
                refuse(world)
            executioner = Executioner(world, at, after)
            asked = build(world, world.ctxt())
            assert wait_for(lambda w=world, a=asked: "h1" not in w.hosts or rests(w, a.uuid))
            killed = killed_and_restarted(world)
            executioner.undo()
            assert wait_for(lambda w=world, a=asked: rests(w, a.uuid)), executioner.calls
            world.idle()
            check(world, asked.uuid)
            if not killed:
                assert at > 15
                return
        finally:
            world.close()


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_delete_killed_at_every_call(tmp_path: Any, templates: Any, after: bool) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, templates)
        try:
            world.host()
            asked = build(world, world.ctxt())
            server = world.until(asked.uuid, vm_state="active", task_state=None)
            world.idle()
            executioner = Executioner(world, at, after)
            world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
            assert wait_for(lambda w=world, a=asked: "h1" not in w.hosts or w.server(a.uuid) is None)
            killed = killed_and_restarted(world)
            executioner.undo()
            world.gone(server.uuid)
            world.idle()
            check(world, asked.uuid)
            if not killed:
                assert at > 8
                return
        finally:
            world.close()
