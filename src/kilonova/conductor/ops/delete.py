"""Delete: see a server's end. Its host does the work; without a host, or when the host stays away, it is done here."""

from __future__ import annotations

import logging
from typing import Any

from kilonova.base import clock
from kilonova.base.retry import grown
from kilonova.conductor import records
from kilonova.conductor.building import resources, watching
from kilonova.conductor.hosts import Life
from kilonova.conductor.world import Place, World, context
from kilonova.contract import objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import VM, Task
from kilonova.db import flows
from kilonova.db.api import instance_mappings
from kilonova.db.cell import migrations
from kilonova.db.objects import bdm as bdms
from kilonova.flow import offers
from kilonova.flow.plan import Again, Retry, flow, rest, step
from kilonova.flow.run import Run
from kilonova.flow.store import EventKind

LOG = logging.getLogger(__name__)

RESEND_CAP = 120.0


class NotDeletedError(Exception):
    """The server is there for good: the deletion has failed, which its flow must not call its end."""


def accept(run: Run) -> None:
    """Nothing to prepare; its undo is what a deletion that fails leaves behind."""
    run.frame.setdefault("sent", {"at": clock.seconds(), "times": 1 if run.frame["cast"] else 0})


def give_up(run: Run) -> None:
    """The server in ERROR with the reason: its user can delete it again, and until then it counts."""
    assert run.failure is not None
    place = run.world.place_of_run(run)
    place.database.run(records.give_up_deleting, context(run), run.subject_id, run.failure)
    server = place.database.query(records.look, run.subject_id)
    if server is not None and not _is_ending(server):
        _map_as_deleted(run, deleted=False)


def end(run: Run) -> bool:
    """The record is gone; until then the host is reminded, or done without."""
    world: World = run.world
    place = world.place_of_run(run)
    server = place.database.query(records.look, run.subject_id, ("info_cache",))
    if server is None:
        return True
    if not _is_ending(server):
        raise NotDeletedError(f"the server is {server.vm_state} again, its host could not delete it")
    if server.host is None:
        return _without_host(run, place, server)
    state = world.life(place, context(run), server.host)
    if state is Life.UNSURE:
        return False
    if state is Life.UP:
        run.frame.pop("down_since", None)
        _remind(run, place, server)
        return False
    since = run.frame.setdefault("down_since", clock.seconds())
    # A host that was asked may only be restarting; one that was down when its user deleted the server was not asked.
    if run.frame["sent"]["times"] and clock.seconds() - since < world.conf.service_down_time:
        return False
    return _without_host(run, place, server)


def _is_ending(server: objects.Instance) -> bool:
    """Whether its deletion goes on. A host says "deleted" before it removes the record, and may die in between."""
    return server.vm_state == VM.DELETED or server.task_state in (Task.DELETING, Task.SOFT_DELETING)


def _remind(run: Run, place: Place, server: objects.Instance) -> None:
    sent = run.frame["sent"]
    patience = grown(run.world.conf.kilonova.flow_resend, 2, max(0, sent["times"] - 1), RESEND_CAP)
    if sent["times"] and clock.seconds() - sent["at"] < patience:
        return
    ctxt = context(run)
    whole = place.database.query(records.for_host, server.uuid)
    if whole is None:
        return
    devices = place.database.query(bdms.get_by_instance_uuid, ctxt, server.uuid)
    run.guard()
    run.world.compute(place).terminate_instance(ctxt, instance=whole, bdms=devices)
    if sent["times"]:
        run.note(EventKind.RESENT, f"terminate_instance to {server.host}")
    run.frame["sent"] = {"at": clock.seconds(), "times": sent["times"] + 1}


def _without_host(run: Run, place: Place, server: objects.Instance) -> bool:
    """Let go of everything, then of the record. A guest on a host that comes back is found there by its own repair."""
    world: World = run.world
    ctxt = context(run)
    LOG.info("server %s is deleted without its host (%s)", server.uuid, server.host)
    run.guard()
    resources.release_ports(world, ctxt, server)
    resources.release_volumes(world, ctxt, place, server.uuid, and_delete=True)
    resources.release_allocations(world, ctxt, server.uuid)
    return bool(place.database.run(_erase_as_seen, ctxt, server.uuid, server.host)) or _again(run)


def _erase_as_seen(tx: Any, ctxt: RequestContext, uuid: str, host: str | None) -> bool:
    server = records.look(tx, uuid)
    if server is None:
        return True
    if server.host != host:
        return False
    return records.erase(tx, ctxt, uuid)


def _again(run: Run) -> bool:
    raise Again("a host took the server meanwhile", 0.5)


def end_moves(run: Run) -> None:
    """A resize that waited for its user's word held room on its other host, whose repair removes the guest there."""
    world: World = run.world
    place = world.place_of_run(run)
    for uuid in place.database.query(migrations.migration_uuids_waiting, run.subject_id):
        run.guard()
        resources.release_allocations(world, context(run), uuid)
        place.database.run(migrations.migration_confirm, uuid)


def end_snapshot(run: Run) -> None:
    """The image that a shelved server would have come back from."""
    world: World = run.world
    ended = world.place_of_run(run).database.query(records.look_back, run.subject_id)
    image = ended.system_metadata.get("shelved_image_id") if ended is not None else None
    if image:
        run.guard()
        resources.release_image(world, context(run), image)


def sweep(run: Run) -> None:
    """Nothing may be left: a build that raced with the deletion may have claimed or made something after all."""
    world: World = run.world
    place = world.place_of_run(run)
    tries = place.database.query(flows.active, run.subject_id, offers.RESCHEDULE)
    if tries:
        place.database.run(flows.wake, run.subject_id, offers.RESCHEDULE)
    # Always: a host of Nova's ends the claim after the record, and may have died in between.
    run.guard()
    resources.release_allocations(world, context(run), run.subject_id)
    ended = place.database.query(records.look_back, run.subject_id)
    if ended is not None and ended.launched_at is None:
        resources.release_ports(world, context(run), ended)
    _map_as_deleted(run, deleted=True)


def _map_as_deleted(run: Run, *, deleted: bool) -> None:
    """What the server's mapping says, by which groups and their quotas count it.

    The API says so after it has recorded the deletion in the cell, and may have died in between.
    """
    world: World = run.world
    if world.cells.has_api:
        run.guard()
        world.api.run(instance_mappings.instance_mapping_update, run.subject_id, {"queued_for_delete": deleted})


_PATIENT = Retry(on=(Exception,), but=(NotDeletedError,), attempts=12, base=1.0, cap=60.0)

FLOW = flow(
    offers.DELETE,
    step(accept, undo=give_up),
    rest(end, every=watching.pause, retry=_PATIENT),
    step(end_moves, retry=_PATIENT),
    step(end_snapshot, retry=_PATIENT),
    step(sweep, retry=_PATIENT),
)
