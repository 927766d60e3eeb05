"""Build: choose hosts for what one request asks for, then see each server to its end.

Nova's choreography on the bus (select_destinations, build_and_run_instance, build_instances for another try); the
commit point is the removal of the build request in the transaction that maps the server to its cell.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kilonova.conductor import records
from kilonova.conductor.building import claiming, elsewhere, placing, quota, resources, sending, watching, yielding
from kilonova.conductor.frames import pack, unpack
from kilonova.conductor.world import SCHEDULER, Place, World, context
from kilonova.contract import exceptions
from kilonova.db import flows
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cells import UnknownCellError
from kilonova.db.engine import Database
from kilonova.db.objects import fitted
from kilonova.flow import offers
from kilonova.flow.plan import Finish, Retry, flow, rest, step
from kilonova.flow.run import Run
from kilonova.flow.store import NewFlow
from kilonova.wire.rpc.errors import RPC_LOST

LOG = logging.getLogger(__name__)


class UserDeletedError(Exception):
    """The build request is gone: whoever asked for the server deleted it."""


# All servers of one request, in the API database.


def was_taken(tx: Any, new: NewFlow) -> bool:
    """Whether the servers of a batch are being built, or were: hosts are chosen once. The cast is a repeat, or late."""
    uuids = _named_in(new.frame)
    earlier = any(row.op == offers.BUILD_BATCH for row in flows.history(tx, new.subject_id))
    return earlier or bool(flows.active_subjects(tx, uuids, offers.BUILD))


def choose(run: Run) -> None:
    """Hosts with claims in Placement, and alternates, for all servers at once that are still wanted."""
    if "servers" not in run.frame:
        run.frame["servers"] = _count_in(run)
    if _may_be_elsewhere(run) or run.row.lease_epoch > 1:
        # A peer's conductor, or an earlier worker, may have claimed before it was lost, or may yet claim.
        run.frame["doubtful"] = True
        _release(run, run.frame["servers"])
    spec = unpack(run.frame["request_specs"][0])
    spec.num_instances = len(run.frame["servers"])
    run.guard()
    chosen = run.world.scheduler.select_destinations(
        context(run),
        spec_obj=spec,
        instance_uuids=run.frame["servers"],
        return_objects=True,
        return_alternates=True,
    )
    run.frame["hosts"] = dict(zip(run.frame["servers"], pack(chosen), strict=True))


def _count_in(run: Run) -> list[str]:
    if reason := run.frame.get("given_up"):
        raise exceptions.BuildAbortException(instance_uuid=run.subject_id, reason=reason)
    driven, wanted = _driven(run), _wanted(run)
    for uuid in set(_asked_for(run)) - set(wanted) - driven:
        _forget(run, uuid)
    if not wanted:
        raise Finish("all servers were built, or deleted, before a host was chosen")
    if _may_be_elsewhere(run):
        yielding.give_way(run, wanted)
    return wanted


def _may_be_elsewhere(run: Run) -> bool:
    """Whether our API cast this and no conductor of ours is known to have got it."""
    return run.uncalled and bool(run.frame.get("cast"))


def _wanted(run: Run) -> list[str]:
    """Servers in no cell, that their user did not delete and no other flow builds, in the order of the request."""
    uuids = _asked_for(run)
    known = run.world.api.query(build_requests.build_requests_among, uuids) - _driven(run)
    return [uuid for uuid in uuids if uuid in known]


def _driven(run: Run) -> set[str]:
    """Servers that have a flow of their own already: hosts were chosen for them, their claims are not ours."""
    return run.world.api.query(flows.active_subjects, _asked_for(run), offers.BUILD)


def _release(run: Run, uuids: Iterable[str]) -> None:
    for uuid in uuids:
        run.guard()
        resources.release_allocations(run.world, context(run), uuid)


def fan_out(run: Run) -> None:
    """From here each server goes its own way. Requests that raced past the API's quota check are caught here."""
    quota.recheck(run.world, context(run), unpack(run.frame["request_specs"][0]), run.frame["servers"])
    specs = {spec["nova_object.data"]["instance_uuid"]: spec for spec in run.frame["request_specs"]}
    shared = {
        name: run.frame[name] for name in ("context", "image", "requested_networks", "block_device_mapping", "tags")
    }
    shared["doubtful"] = run.frame.get("doubtful", False)
    shared["deadline_at"] = watching.deadline_at(run.world.conf.kilonova.build_deadline)
    for uuid in run.frame["servers"]:
        frame = shared | {"request_spec": specs[uuid], "hosts": run.frame["hosts"][uuid]}
        run.spawn(
            NewFlow(
                offers.BUILD,
                uuid,
                frame,
                deadline=watching.until_late(frame),
                request_id=run.row.request_id,
                project_id=run.row.project_id,
                sealed=run.row.sealed,
            )
        )


def bury_all(run: Run) -> None:
    """No hosts: nothing claimed, and each server's record in cell0 with the explanation."""
    driven = _driven(run)
    _release(run, _wanted(run))
    for uuid in _asked_for(run):
        if uuid not in driven:
            _bury(run, uuid)


def _asked_for(run: Run) -> list[str]:
    return _named_in(run.frame)


def _named_in(frame: Mapping[str, Any]) -> list[str]:
    return [spec["nova_object.data"]["instance_uuid"] for spec in frame["request_specs"]]


# One server, in the API database.


def record(run: Run) -> None:
    """The server's record in the cell of the chosen host, not visible to its user yet."""
    asked = run.world.api.query(build_requests.build_request_get, run.subject_id)
    if asked is None:
        raise UserDeletedError(run.subject_id)
    chosen = unpack(run.frame["hosts"][0])
    run.world.place(chosen.cell_uuid)
    run.frame["cell"] = chosen.cell_uuid
    zone = chosen.get("availability_zone") or run.world.conf.default_availability_zone
    with records.written():
        _place(run).database.run(records.create, context(run), records.server_of(asked), zone, *_parts(run))


def commit(run: Run) -> None:
    """The commit point: the server is in its cell, the build request is gone. Exactly one of us and the user wins."""
    if not build_requests.build_request_delete(run.tx, run.subject_id):
        raise UserDeletedError(run.subject_id)
    if not instance_mappings.instance_mapping_set_cell(run.tx, run.subject_id, run.frame["cell"]):
        raise exceptions.InstanceMappingNotFound(uuid=run.subject_id)


def send(run: Run) -> None:
    """Ask the chosen host."""
    chosen, *others = unpack(run.frame["hosts"])
    props = placing.properties(unpack(run.frame["request_spec"]))
    placing.count_try(props, run.subject_id, run.world.conf.scheduler.max_attempts)
    placing.point_at(props, chosen)
    try:
        sending.cast_build(run, _place(run), chosen, others, props)
    except claiming.LostClaimError as exc:
        _Following().elsewhere(run, _place(run), str(exc))
    run.frame.setdefault("sent", {"host": chosen.service_host, "at": 0.0, "times": 1})


def clean(run: Run) -> None:
    """Ports and attachments that the host may have made."""
    if not watching.revoke(run, _place(run)):
        return
    requested = unpack(run.frame["requested_networks"])
    project = watching.project_of(run)
    run.guard()
    resources.clean_up(run.world, context(run), _place(run), run.subject_id, project, requested)


def watch(run: Run) -> bool:
    """ACTIVE or ERROR."""
    ended = watching.look(run, _place(run), _Following())
    if ended and run.frame.get("doubtful"):
        claiming.settle(run, _place(run), unpack(run.frame["hosts"])[:1])
    return ended


class _Following(watching.Next):
    def resend(self, run: Run, place: Place) -> None:
        send(run)

    def elsewhere(self, run: Run, place: Place, reason: str) -> None:
        chosen, *others = unpack(run.frame["hosts"])
        props = placing.properties(unpack(run.frame["request_spec"]))
        placing.count_try(props, run.subject_id, run.world.conf.scheduler.max_attempts)
        placing.point_at(props, chosen)
        if retry := props.get("retry"):
            retry["exc_reason"] = reason
        elsewhere.offer_next(run, place, others, props, [chosen])


def give_up(run: Run) -> None:
    """Nothing claimed, the server in ERROR with the reason wherever its record is; gone if its user deleted it."""
    world: World = run.world
    failure = run.failure
    if run.frame.get("kept"):
        return
    assert failure is not None
    run.guard()
    resources.release_allocations(world, context(run), run.subject_id)
    committed = world.api.query(instance_mappings.instance_mapping_get, run.subject_id)
    if committed is not None and committed["cell_id"] is not None:
        place = world.place(committed["cell_uuid"])
        place.database.run(records.fail, context(run), run.subject_id, failure, world.host)
    elif (unseen := _recorded(run)) is not None:
        unseen.database.run(records.fail, context(run), run.subject_id, failure, world.host)
        _show_or_erase(run, run.subject_id, unseen.uuid or "", unseen.database)
    else:
        _bury(run, run.subject_id)


def _recorded(run: Run) -> Place | None:
    """The cell that has the server's record already, whether or not the worker that made it lived to say so."""
    try:
        place: Place = run.world.place(unpack(run.frame["hosts"][0]).cell_uuid)
    except UnknownCellError:
        return None
    return None if place.database.query(records.look, run.subject_id) is None else place


# What several steps need.


def _place(run: Run) -> Place:
    place: Place = run.world.place(run.frame["cell"])
    return place


def _parts(run: Run) -> tuple[Any, Any]:
    return unpack(run.frame["block_device_mapping"]), unpack(run.frame["tags"])


def _bury(run: Run, uuid: str) -> None:
    world: World = run.world
    asked = world.api.query(build_requests.build_request_get, uuid)
    if asked is None:
        _forget(run, uuid)
        return
    assert run.failure is not None
    cell0 = world.cells.cell0
    server = records.server_of(asked)
    devices, tags = _parts(run)
    # A worker that stalled would write the record anew of a server that was buried and deleted meanwhile.
    run.guard()
    try:
        with records.written():
            cell0.database.run(records.bury, context(run), server, devices, tags, run.failure, world.host)
    except records.UnwritableError:
        # What could not be written for the cell cannot be written for cell0 either.
        held = fitted.instance(server), fitted.devices(devices), fitted.tags(tags)
        cell0.database.run(records.bury, context(run), *held, run.failure, world.host)
    resources.release_attachments(world, context(run), devices.objects if devices is not None else ())
    _show_or_erase(run, uuid, cell0.uuid, cell0.database)


def _show_or_erase(run: Run, uuid: str, cell_uuid: str, database: Database) -> None:
    """A failed server takes the place of its build request; without one its user deleted it, and it goes too."""
    if not run.world.api.run(_map, uuid, cell_uuid):
        database.run(records.erase, context(run), uuid)
        _forget(run, uuid)


def _map(tx: Any, uuid: str, cell_uuid: str) -> bool:
    if not build_requests.build_request_delete(tx, uuid):
        return False
    return instance_mappings.instance_mapping_set_cell(tx, uuid, cell_uuid)


def _forget(run: Run, uuid: str) -> None:
    """A server that ended before it was in a cell leaves no claim and no mapping, and its volumes are free.

    One that is in a cell did not end: a conductor of a peer's, which leaves no word in flows, has built it.
    """
    mapping = run.world.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is not None and mapping["cell_id"] is not None:
        return
    run.guard()
    resources.release_allocations(run.world, context(run), uuid)
    devices, _ = _parts(run)
    resources.release_attachments(run.world, context(run), devices.objects if devices is not None else ())
    run.world.api.run(_forget_unmapped, uuid)


def _forget_unmapped(tx: Any, uuid: str) -> None:
    mapping = instance_mappings.instance_mapping_get(tx, uuid)
    if mapping is not None and mapping["cell_id"] is None:
        instance_mappings.instance_mapping_delete(tx, uuid)


PATIENT = Retry(on=RPC_LOST, attempts=8, base=1.0, cap=20.0)
SHORTLY = Retry(on=(Exception,), but=(UserDeletedError, records.UnwritableError), attempts=8, base=0.5, cap=20.0)

BATCH = flow(
    offers.BUILD_BATCH,
    step(choose, undo=bury_all, retry=PATIENT, light=True, needs=SCHEDULER),
    step(fan_out),
)

FLOW = flow(
    offers.BUILD,
    step(record, undo=give_up, retry=SHORTLY, light=True),
    step(commit, atomic=True),
    step(send, undo=clean, retry=SHORTLY, light=True),
    rest(watch, every=watching.pause, retry=watching.UNTIRING),
)
