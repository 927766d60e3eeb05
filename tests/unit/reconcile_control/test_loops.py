"""Each loop finds its harm, repairs it, and leaves alone what is explained."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.compute.world import wait_for
from tests.unit.conductor.stage import CELL1_UUID, PROJECT, Stage
from tests.unit.conductor.test_build import run
from tests.unit.conductor.test_delete import built
from tests.unit.reconcile.test_loop import Settings

from kilonova.base import clock
from kilonova.clients.cinder.client import MARK
from kilonova.conductor import records
from kilonova.contract import objects
from kilonova.db.cell import tables
from kilonova.db.cells import CELL0_UUID
from kilonova.db.failures import LostError
from kilonova.db.flow_tables import KN_FLOW
from kilonova.db.objects import bdm as devices
from kilonova.db.objects import migration as migrations
from kilonova.flow.store import NewFlow, State
from kilonova.reconcile.control import loops
from kilonova.reconcile.control.known import Standing, Traces, judge
from kilonova.reconcile.control.orphan_allocations import OrphanAllocations
from kilonova.reconcile.control.orphan_attachments import OrphanAttachments
from kilonova.reconcile.control.orphan_ports import OrphanPorts
from kilonova.reconcile.control.orphan_volumes import OrphanVolumes
from kilonova.reconcile.control.stuck_flows import StuckFlows
from kilonova.reconcile.control.stuck_tasks import StuckTasks
from kilonova.reconcile.control.undriven_builds import UndrivenBuilds
from kilonova.reconcile.loop import Loop, Pass

ALIVE = {"deleted": 0, "vm_state": "active", "task_state": None, "host": "h", "launched_at": 1, "created_at": None}
FAILED = {**ALIVE, "vm_state": "error", "host": None, "launched_at": None}
DELETED = {**ALIVE, "deleted": 1}


def twice(loop: Loop) -> Any:
    made = Pass(loop, Settings())
    made.run()
    report = made.run()
    assert report.error is None
    assert report.failed == 0
    return report


@pytest.mark.parametrize(
    ("traces", "standing"),
    [
        (Traces(), Standing.FOREIGN),
        (Traces(build_request=True), Standing.EXPLAINED),
        (Traces(active_flow=True, past_flow=True), Standing.EXPLAINED),
        (Traces(past_flow=True), Standing.GONE),
        (Traces(mapping={"cell_uuid": None}), Standing.GONE),
        (Traces(servers=[ALIVE]), Standing.EXPLAINED),
        (Traces(servers=[DELETED]), Standing.GONE),
        (Traces(servers=[DELETED, ALIVE]), Standing.EXPLAINED),
        (Traces(servers=[FAILED, ALIVE]), Standing.EXPLAINED),
        (Traces(servers=[FAILED, ALIVE], in_cell0=True), Standing.EXPLAINED),
        (Traces(servers=[FAILED, FAILED], in_cell0=True), Standing.FAILED),
        (Traces(servers=[DELETED], active_flow=True), Standing.EXPLAINED),
        (Traces(servers=[FAILED]), Standing.FAILED),
        (Traces(servers=[{**FAILED, "task_state": "deleting"}]), Standing.EXPLAINED),
        (Traces(servers=[{**FAILED, "launched_at": 1}]), Standing.EXPLAINED),
        (Traces(servers=[ALIVE], in_cell0=True), Standing.FAILED),
        (Traces(migration=True), Standing.EXPLAINED),
        (Traces(migration=True, stranded=True), Standing.GONE),
        (Traces(cell_down=True, mapping={"cell_uuid": "x"}), Standing.UNSURE),
    ],
)
def test_standing(traces: Traces, standing: Standing) -> None:
    assert judge(traces) is standing


def claim(stage: Stage, consumer: str, host: str = "h1") -> None:
    wanted = {"allocations": {stage.providers[host]: {"resources": {"VCPU": 1}}}}
    assert stage.clients.placement.claim(stage.ctxt(), consumer, wanted, PROJECT, "user")


def add_nodes(stage: Stage) -> None:
    with stage.cell.write() as tx:
        for host, provider in stage.providers.items():
            numbers = dict.fromkeys(
                ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used"), 0
            )
            row = {"host": host, "uuid": provider, "hypervisor_type": "x", "hypervisor_version": 1, "cpu_info": ""}
            tx.execute(tables.COMPUTE_NODES.insert().values(**row, **numbers))


def test_allocations_of_the_living_stay_and_those_of_the_dead_go(stage: Stage) -> None:
    add_nodes(stage)
    alive, dead = built(stage), built(stage)
    stage.cell.run(records.erase, stage.ctxt(), dead)
    waiting = stage.post().subject_id
    claim(stage, waiting)
    stranger = "99999999-9999-9999-9999-999999999999"
    claim(stage, stranger)
    report = twice(OrphanAllocations(stage.world))
    assert report.repaired == 1
    held = stage.cloud.placement.held
    assert not held(dead)
    assert held(alive)
    assert held(waiting)
    assert held(stranger), "what nothing here ever knew may be somebody else's"
    assert any(stranger in harm for harm in report.seen)


def test_what_a_move_holds_ends_with_its_server(stage: Stage) -> None:
    add_nodes(stage)
    moves = {}
    for server in (alive := built(stage), dead := built(stage)):
        moves[server] = objects.Migration(instance_uuid=server, migration_type="resize", status="finished")
        stage.cell.run(migrations.create, stage.ctxt(), moves[server])
        claim(stage, moves[server].uuid)
    stage.cell.run(records.erase, stage.ctxt(), dead)
    assert twice(OrphanAllocations(stage.world)).repaired == 2
    held = stage.cloud.placement.held
    assert held(moves[alive].uuid)
    assert not held(moves[dead].uuid)


def test_allocations_of_a_build_that_a_flow_drives_stay(stage: Stage) -> None:
    add_nodes(stage)
    server = built(stage)
    stage.cell.run(records.erase, stage.ctxt(), server)
    stage.cell_store.offer(NewFlow("delete", server, {}))
    assert twice(OrphanAllocations(stage.world)).repaired == 0
    assert stage.cloud.placement.held(server)


def test_allocations_of_a_server_whose_cell_is_down_stay(stage: Stage) -> None:
    add_nodes(stage)
    server = built(stage)
    from kilonova.db.cells import CellDown

    real = stage.cells.scatter

    def scatter(fn: Any, *args: Any, **kwargs: Any) -> Any:
        answers = real(fn, *args, **kwargs)
        if not isinstance(next(iter(answers.values())), list):
            answers = {uuid: CellDown(uuid, "test") for uuid in answers}
        return answers

    stage.cells.scatter = scatter  # type: ignore[method-assign]
    assert twice(OrphanAllocations(stage.world)).repaired == 0
    assert stage.cloud.placement.held(server)


def test_ports_of_the_dead_go_and_those_that_users_brought_are_unbound(stage: Stage) -> None:
    alive, dead, other = built(stage), built(stage), built(stage)
    (living,) = stage.cloud.neutron.ports_of(alive)
    (made,) = stage.cloud.neutron.ports_of(dead)
    (brought,) = stage.cloud.neutron.ports_of(other)
    made["created_at"] = clock.iso(clock.now() + datetime.timedelta(seconds=5))
    brought["created_at"] = "2020-01-01T00:00:00Z"
    for server in (dead, other):
        stage.cell.run(records.erase, stage.ctxt(), server)
    assert twice(OrphanPorts(stage.world)).repaired == 2
    ports = stage.cloud.neutron.ports
    assert made["id"] not in ports
    assert ports[brought["id"]]["device_id"] == ""
    assert ports[living["id"]]["device_id"] == alive


@pytest.mark.parametrize("connector", [None, {"host": "h"}])
def test_attachments_of_the_dead_go(stage: Stage, connector: Any) -> None:
    """Reserved ones, and those that a host has: Cinder shows these with what connectors need."""
    alive, dead = built(stage), built(stage)
    ctxt = stage.ctxt()
    kept, gone = (
        stage.clients.cinder.attachment_create(ctxt, stage.cloud.cinder.volume(), server, connector)
        for server in (alive, dead)
    )
    stage.cell.run(records.erase, stage.ctxt(), dead)
    assert twice(OrphanAttachments(stage.world)).repaired == 1
    assert kept["id"] in stage.cloud.cinder.attachments
    assert gone["id"] not in stage.cloud.cinder.attachments


def unrecorded(stage: Stage, server: str, recorded: str | None = None, **volume: Any) -> str:
    """A volume that was made for the server; the record names no volume of its device, or `recorded`."""
    device = objects.BlockDeviceMapping(
        instance_uuid=server, source_type="image", destination_type="volume", volume_id=recorded, boot_index=0
    )
    stage.cell.run(devices.create, stage.ctxt(), device)
    return stage.cloud.cinder.volume(metadata={MARK: device.uuid}, **volume)


def test_volumes_that_were_asked_for_and_never_recorded_go_with_their_server(stage: Stage) -> None:
    alive, dead = built(stage), built(stage)
    cinder = stage.cloud.cinder
    lost, broken = unrecorded(stage, dead), unrecorded(stage, dead, status="error")
    kept = {
        unrecorded(stage, alive),
        unrecorded(stage, dead, recorded=str(uuid.uuid4())),
        unrecorded(stage, dead, status="in-use"),
        unrecorded(stage, dead, status="creating"),
        (held := unrecorded(stage, dead)),
        cinder.volume(metadata={MARK: str(uuid.uuid4())}),
        cinder.volume(metadata={MARK: "no uuid"}),
        cinder.volume(),
    }
    made = stage.clients.cinder.attachment_create(stage.ctxt(), held, alive)
    cinder.attachments[made["id"]]["status"] = "attached"
    cinder.volumes[held]["status"] = "available"
    stage.cell.run(records.erase, stage.ctxt(), dead)
    dry = Pass(OrphanVolumes(stage.world), Settings(reconcile_dry_run=True))
    dry.run()
    assert len(dry.run().seen) == 2
    assert {lost, broken} | kept == cinder.volumes.keys()
    assert twice(OrphanVolumes(stage.world)).repaired == 2
    assert cinder.volumes.keys() == kept


def test_a_volume_that_somebody_takes_before_it_is_deleted_stays(stage: Stage) -> None:
    dead = built(stage)
    lost = unrecorded(stage, dead)
    stage.cell.run(records.erase, stage.ctxt(), dead)
    loop = OrphanVolumes(stage.world)
    [suspect] = loop.judge(loop.find())
    stage.clients.cinder.attachment_create(stage.ctxt(), lost, str(uuid.uuid4()))
    loop.repair(suspect)
    assert lost in stage.cloud.cinder.volumes
    del stage.cloud.cinder.volumes[lost]
    loop.repair(suspect)


def test_a_volume_that_another_server_had_since_stays(stage: Stage) -> None:
    """Its user found it idle, wrote to it and let go of it again."""
    dead, alive = built(stage), built(stage)
    lost = unrecorded(stage, dead)
    stage.cell.run(records.erase, stage.ctxt(), dead)
    device = objects.BlockDeviceMapping(
        instance_uuid=alive, source_type="volume", destination_type="volume", volume_id=lost
    )
    stage.cell.run(devices.create, stage.ctxt(), device)
    stage.cell.run(devices.destroy, stage.ctxt(), device)
    assert twice(OrphanVolumes(stage.world)).seen == []
    assert lost in stage.cloud.cinder.volumes


def test_while_a_cell_does_not_answer_no_volume_is_deleted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = built(stage)
    lost = unrecorded(stage, dead)
    stage.cell.run(records.erase, stage.ctxt(), dead)

    def away(*args: Any, **kwargs: Any) -> Any:
        raise LostError("SELECT", None, OSError("the database is away"))

    monkeypatch.setattr(stage.cells.cell(CELL0_UUID).database, "query", away)
    assert twice(OrphanVolumes(stage.world)).seen == []
    assert lost in stage.cloud.cinder.volumes


def test_a_volume_of_a_device_that_another_cell_has_a_volume_of_stays(stage: Stage) -> None:
    """Its build went on there."""
    dead = built(stage)
    lost = unrecorded(stage, dead)
    mark = stage.cloud.cinder.volumes[lost]["metadata"][MARK]
    other = objects.BlockDeviceMapping(
        uuid=mark, instance_uuid=dead, source_type="image", destination_type="volume", volume_id=lost, boot_index=0
    )
    cell0 = stage.cells.cell(CELL0_UUID).database
    cell0.run(lambda tx: tx.execute(tables.INSTANCES.insert().values(uuid=dead, project_id=PROJECT, vm_state="error")))
    cell0.run(devices.create, stage.ctxt(), other)
    stage.cell.run(records.erase, stage.ctxt(), dead)
    assert twice(OrphanVolumes(stage.world)).seen == []


@pytest.mark.parametrize(
    ("frame", "state"), [({"failure": {"class": "ValueError"}}, State.UNWINDING), ({}, State.RUNNING)]
)
def test_a_stuck_flow_goes_on_where_it_stood(stage: Stage, frame: dict[str, Any], state: State) -> None:
    new = NewFlow("build", "s", frame)
    stage.api_store.offer(new)
    with stage.api.write() as tx:
        tx.execute(KN_FLOW.update().values(state=str(State.STUCK), position="locate"))
    assert twice(StuckFlows(stage.world)).repaired == 1
    revived = stage.api_store.get(new.id)
    assert (revived.state, revived.position) == (state, "locate")


def test_flows_of_a_cell_that_is_down_do_not_keep_others_stuck(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: Any, **kwargs: Any) -> Any:
        raise LostError("SELECT", None, OSError("the database is away"))

    database = stage.cells.cell(CELL1_UUID).database
    monkeypatch.setattr(database, "query", away)
    monkeypatch.setattr(database, "run", away)
    stage.api_store.offer(NewFlow("build", "s", {}))
    with stage.api.write() as tx:
        tx.execute(KN_FLOW.update().values(state=str(State.STUCK), position="locate"))
    assert twice(StuckFlows(stage.world)).repaired == 1


def test_a_build_request_that_nobody_takes_is_shown_as_failed(stage: Stage, forward: Callable[[float], None]) -> None:
    server = stage.post().subject_id
    assert twice(UndrivenBuilds(stage.world)).repaired == 0
    stage.conf.set_override("build_deadline", 30.0, group="kilonova")
    forward(31)
    assert twice(UndrivenBuilds(stage.world)).repaired == 1
    run(stage)
    buried = stage.buried(server)
    assert buried.vm_state == "error"
    assert "nobody took the request" in buried.fault.message


def test_a_build_that_nobody_drives_is_watched_to_its_end(stage: Stage, forward: Callable[[float], None]) -> None:
    stage.conf.set_override("reconcile_grace", 0.0, group="kilonova")
    server = built(stage)
    left = stage.server(server)
    left.vm_state, left.task_state = "building", "spawning"
    stage.save(left)
    age(stage, server)
    assert twice(UndrivenBuilds(stage.world)).repaired == 1
    stage.silence("h1")
    from tests.unit.conductor.test_build import turn

    turn(stage)
    assert stage.server(server).vm_state == "building"
    forward(61)
    run(stage)
    ended = stage.server(server)
    assert ended.vm_state == "error"
    assert "stopped reporting" in ended.fault.message
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def age(stage: Stage, server: str, seconds: float = 3600) -> None:
    past = clock.naive_now() - datetime.timedelta(seconds=seconds)
    with stage.cell.write() as tx:
        table = tables.INSTANCES
        tx.execute(table.update().where(table.c.uuid == server).values(updated_at=past))


def test_a_deletion_that_nobody_drives_gets_a_flow(stage: Stage) -> None:
    server = built(stage)
    left = stage.server(server)
    left.task_state = "deleting"
    stage.save(left)
    assert twice(StuckTasks(stage.world)).repaired == 0, "it may be under way"
    age(stage, server)
    assert twice(StuckTasks(stage.world)).repaired == 1
    run(stage)
    assert stage.server(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


@pytest.mark.parametrize("away", [True, False])
def test_d7_a_record_that_says_deleted_and_is_there_gets_a_flow(stage: Stage, away: bool) -> None:
    server = built(stage)
    left = stage.server(server)
    left.vm_state, left.task_state = "deleted", None
    stage.save(left)
    if away:
        stage.silence("h1")
    assert twice(StuckTasks(stage.world)).repaired == 0, "its host may be about to remove it"
    age(stage, server)
    assert twice(StuckTasks(stage.world)).repaired == 1
    run(stage)
    assert stage.server(server) is None
    assert stage.leftovers(server) == {"allocations": {}, "ports": []}


def test_a_lost_cast_of_a_task_is_sent_again_under_its_request_id(stage: Stage) -> None:
    server = built(stage)
    left = stage.server(server)
    left.task_state = "powering-off"
    stage.save(left)
    age(stage, server)
    heard: list[Any] = []
    stage.compute.stop_instance = lambda ctxt, **kwargs: heard.append((ctxt.request_id, kwargs))  # type: ignore[attr-defined]
    assert twice(StuckTasks(stage.world)).repaired == 1
    ((request, told),) = heard
    assert request == "req-1"
    assert told["instance"].uuid == server
    assert told["clean_shutdown"] is True


def test_a_host_that_is_away_gets_nothing_sent_again(stage: Stage) -> None:
    server = built(stage)
    left = stage.server(server)
    left.task_state = "powering-off"
    stage.save(left)
    age(stage, server)
    stage.silence("h1")
    assert twice(StuckTasks(stage.world)).seen == []


def test_loops_are_made_as_configured(stage: Stage) -> None:
    stage.conf.set_override("reconcile_disabled", ["orphan_ports"], group="kilonova")
    made = loops.make(stage.world)
    assert made.passes["orphan_ports"].run().passes == 0
    assert made.passes["orphan_allocations"].run().passes == 1


def test_a_loop_runs_as_often_as_the_configuration_says_now(stage: Stage) -> None:
    stage.conf.set_override("reconcile_interval", 3600.0, group="kilonova")
    made = loops.make(stage.world)
    made.start()
    try:
        stage.conf.set_override("reconcile_interval", 0.1, group="kilonova")
        made.reload()
        assert wait_for(lambda: all(each.passes > 1 for each in made.reports()))
    finally:
        made.stop()
