"""Every single call an agent makes to the record, another service or the hypervisor fails, or is its last.

Whatever the moment: after the restart, or some passes of the repair loops, the server is ACTIVE and whole, in ERROR
with a fault, given back to the conductor, or gone; and nobody holds anything for it that the record does not explain.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest
from tests.unit.compute.world import NOTHING, World, volume_disk, wait_for

from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions, objects
from kilonova.reconcile.host import loops
from kilonova.virt.fake.faults import Fault
from kilonova.wire.rpc.errors import RpcRemoteError

SERVICES = ("placement", "neutron", "cinder", "glance")
DRIVER = ("spawn", "destroy", "guest", "volume_connector")


class Executioner:
    """Counts the calls that operations make; at the n-th it kills the agent, or (`fails`) lets just that call fail."""

    def __init__(self, world: World, at: int | None = None, after: bool = False, fails: bool = False) -> None:
        self.world, self.at, self.after, self.fails = world, at, after, fails
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
            if threading.current_thread().name not in ("lane", "background"):
                return real(*args, **kwargs)
            self.calls.append(name)
            hit = len(self.calls) == self.at
            if hit and not self.after:
                self._strike(name)
            answer = real(*args, **kwargs)
            if hit and self.after:
                self._strike(name)
            return answer

        return call

    def _strike(self, name: str) -> None:
        if not self.fails:
            self.world.kill()
            raise SystemExit
        if name in SERVICES:
            raise ServiceError(name, "this call fails", 418)
        raise RpcRemoteError("OperationalError", "this call fails") if name == "record" else OSError("this call fails")

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


def gone_or_error(world: World, server: str) -> bool:
    found = world.server(server)
    return found is None or found.vm_state == "error"


# --- calls that fail ---------------------------------------------------------------------------


def repaired(world: World, asked: objects.Instance, done: Any, again: Any = lambda: None) -> None:
    """Passes of the host's loops until the server rests; `again` is what a flow of the conductor does meanwhile."""
    loop = next(each for each in world.hosts["h1"]._loops if each.name == "interrupted")

    def look() -> bool:
        world.idle()
        if done(world, asked.uuid):
            return True
        loop.run()
        if (found := world.server(asked.uuid)) is not None and found.host is None:
            again()
        return False

    assert wait_for(look), "the server never came to rest"
    world.idle()


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("refused", [False, True], ids=["build", "refused-build"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_build_of_which_every_call_fails(tmp_path: Any, templates: Any, refused: bool, after: bool) -> None:
    """What a failed call has left elsewhere is the control plane's loops to find; the server itself never hangs."""
    at, calls = 0, 1
    while at < calls:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, templates)
        try:
            world.set("kilonova", reconcile_grace=0.0)
            world.host(loops=loops.make)
            if refused:
                refuse(world)
            executioner = Executioner(world, at, after, fails=True)
            ctxt = world.ctxt()
            asked = build(world, ctxt)
            repaired(world, asked, rests, lambda w=world, c=ctxt, a=asked: w.cast_build(c, a))
            executioner.undo()
            calls = max(calls, len(executioner.calls))
            found = world.server(asked.uuid)
            assert "h1" not in world.leftovers(asked.uuid)["guests"] or found.vm_state == "active"
            assert found.vm_state != "error" or world.fault(asked.uuid) or executioner.calls[at - 1 : at] == ["record"]
        finally:
            world.close()
    assert at > 15


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_delete_of_which_every_call_fails(tmp_path: Any, templates: Any, after: bool) -> None:
    """It is gone, or it shows the error and the next delete works."""
    at, calls = 0, 1
    while at < calls:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, templates)
        try:
            world.set("kilonova", reconcile_grace=0.0)
            world.host(loops=loops.make)
            asked = build(world, world.ctxt())
            server = world.until(asked.uuid, vm_state="active", task_state=None)
            world.idle()
            executioner = Executioner(world, at, after, fails=True)
            world.cast("terminate_instance", server, "deleting", bdms=world.disks(server))
            repaired(world, server, gone_or_error)
            executioner.undo()
            calls = max(calls, len(executioner.calls))
            if (found := world.server(server.uuid)) is not None:
                assert found.vm_state == "error"
                world.cast("terminate_instance", found, "deleting", bdms=world.disks(server))
            world.gone(server.uuid)
            world.idle()
            left = world.leftovers(server.uuid)
            if executioner.calls[at - 1 : at] == ["cinder"]:
                # A volume that cannot be let go keeps no server from being deleted: orphan_attachments finds it.
                left["attachments"] = []
            assert left == NOTHING
        finally:
            world.close()
    assert at > 8
