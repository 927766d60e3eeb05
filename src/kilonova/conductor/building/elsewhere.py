"""Another try on an alternate host, after a host gave a server back or was lost before it took it.

The flow is kept in the server's cell, so that a conductor without API database can drive it: the alternates came with
the first choice, and the claim is made in Placement.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from kilonova.base import clock
from kilonova.conductor import records
from kilonova.conductor.building import claiming, grouping, placing, resources, sending, watching
from kilonova.conductor.frames import pack, unpack
from kilonova.conductor.world import Place, World, context
from kilonova.contract import exceptions, objects
from kilonova.db import flows
from kilonova.db.objects import bdm as bdms
from kilonova.flow import offers
from kilonova.flow.plan import Again, Finish, Retry, flow, rest, step
from kilonova.flow.run import Run
from kilonova.flow.store import NewFlow


def new_try(
    uuid: str,
    hosts: Sequence[objects.Selection],
    props: placing.Properties,
    shared: dict[str, Any],
    sealed: str | None,
) -> NewFlow:
    """The flow of the next try.

    `shared`: context, request_spec, image, requested_networks, security_groups, deadline_at.
    """
    attempt = int((props.get("retry") or {}).get("num_attempts", 0)) + 1
    frame = shared | {"hosts": pack(list(hosts)), "properties": pack(props), "attempt": attempt}
    owner = shared["context"]
    return NewFlow(
        offers.RESCHEDULE,
        uuid,
        frame,
        deadline=watching.until_late(frame),
        request_id=owner.get("request_id"),
        project_id=owner.get("project_id"),
        slot=f"{offers.RESCHEDULE}-{attempt}",
        sealed=sealed,
    )


def was_tried(tx: Any, new: NewFlow) -> bool:
    """Whether this try, or a later one, was made already: the cast is a repeat."""
    return any(
        row.op == offers.RESCHEDULE and row.frame.get("attempt", 0) >= new.frame["attempt"]
        for row in flows.history(tx, new.subject_id)
    )


def offer_next(
    run: Run,
    place: Place,
    hosts: Sequence[objects.Selection],
    props: placing.Properties,
    tried: Sequence[objects.Selection],
) -> None:
    """From a flow whose host is lost: put the next try down. `tried`: hosts that have the cast and may come back."""
    names = ("context", "request_spec", "image", "requested_networks", "security_groups", "deadline_at")
    shared = {name: run.frame.get(name) for name in names} | {"tried": pack(list(tried))}
    new = new_try(run.subject_id, hosts, props, shared, run.row.sealed)
    place.store.offer(new, was_tried)


def accept(run: Run) -> None:
    """The server still waits for a host, and there are tries left."""
    server = _server(run)
    if server is None or not records.waits_for_host(server):
        raise Finish("the server does not wait for a host")
    props = unpack(run.frame["properties"])
    run.frame["reason"] = placing.last_reason(props)
    placing.count_try(props, run.subject_id, run.world.conf.scheduler.max_attempts)
    run.frame["properties"] = pack(props)


def fail(run: Run) -> None:
    """The server in ERROR with the reason; its volumes are free, those that were to end with it are gone."""
    place = run.world.place_of_run(run)
    if watching.revoke(run, place):
        run.guard()
        resources.release_volumes(run.world, context(run), place, run.subject_id, and_delete=True)


def claim(run: Run) -> None:
    """The first alternate that still has room."""
    world: World = run.world
    ctxt = context(run)
    server = _server(run)
    if server is None:
        raise Finish("the server was deleted")
    # A worker that stalled would take the claim of a server that another one has built meanwhile.
    run.guard()
    resources.release_allocations(world, ctxt, run.subject_id)
    group = grouping.of(world, run.subject_id)
    hosts = unpack(run.frame["hosts"])
    while hosts:
        chosen = hosts.pop(0)
        if not group.allows(chosen.service_host):
            continue
        wanted = json.loads(chosen.allocation_request) if chosen.allocation_request else None
        own = resources.serving(ctxt)
        run.guard()
        if wanted is None or world.clients.placement.claim(
            own, run.subject_id, wanted, server.project_id, server.user_id
        ):
            run.frame["chosen"], run.frame["hosts"] = pack(chosen), pack(hosts)
            props = unpack(run.frame["properties"])
            placing.point_at(props, chosen)
            run.frame["properties"] = pack(props)
            return
    if group.waits:
        raise Again("other members of its server group have no host yet", grouping.PAUSE)
    text = f"Exhausted all hosts available for retrying build failures for instance {run.subject_id}."
    if reason := run.frame.get("reason"):
        text += f" Last exception: {reason}"
    raise exceptions.MaxRetriesExceeded(reason=text)


def release(run: Run) -> None:
    if run.frame.get("kept"):
        return
    run.guard()
    resources.release_allocations(run.world, context(run), run.subject_id)


def prepare(run: Run) -> None:
    """The server's zone, and attachments that went when its first host cleaned up."""
    world, ctxt, place = run.world, context(run), run.world.place_of_run(run)
    zone = unpack(run.frame["chosen"]).get("availability_zone") or world.conf.default_availability_zone
    if not place.database.run(records.move_zone, ctxt, run.subject_id, zone):
        _settle_claim(run)
        raise Finish("the server does not wait for a host")
    for device in place.database.query(bdms.get_by_instance_uuid, ctxt, run.subject_id).objects:
        if device.destination_type == "volume" and device.volume_id and device.attachment_id:
            _reattach(run, place, device)


def _reattach(run: Run, place: Place, device: objects.BlockDeviceMapping) -> None:
    ctxt, cinder = context(run), run.world.clients.cinder
    try:
        cinder.attachment_show(ctxt, device.attachment_id)
    except exceptions.VolumeAttachmentNotFound:
        run.guard()
        found = cinder.attachment_find(ctxt, device.volume_id, run.subject_id)
        made = found or cinder.attachment_create(ctxt, device.volume_id, run.subject_id)
        device.attachment_id = made["id"]
        # A copy for each try: saving marks it as saved before the transaction is committed.
        place.database.run(lambda tx: bdms.save(tx, ctxt, copy.deepcopy(device)))


def clean(run: Run) -> None:
    """Ports and attachments that the host may have made."""
    place, requested = run.world.place_of_run(run), unpack(run.frame["requested_networks"])
    if not watching.revoke(run, place):
        return
    project = watching.project_of(run)
    run.guard()
    resources.clean_up(run.world, context(run), place, run.subject_id, project, requested)


def send(run: Run) -> None:
    """Ask the alternate."""
    chosen, place = unpack(run.frame["chosen"]), run.world.place_of_run(run)
    others, props = unpack(run.frame["hosts"]), unpack(run.frame["properties"])
    try:
        sending.cast_build(run, place, chosen, others, props)
    except claiming.LostClaimError as exc:
        _Following().elsewhere(run, place, str(exc))
    run.frame.setdefault("sent", {"host": chosen.service_host, "at": clock.seconds(), "times": 1})


def watch(run: Run) -> bool:
    """ACTIVE or ERROR, or a later try."""
    ended = watching.look(run, run.world.place_of_run(run), _Following())
    if ended:
        _settle_claim(run)
    return ended


def _settle_claim(run: Run) -> None:
    """A host that was given up may have come back, found its cast and been faster: the claim follows the server.

    With a server that is gone, or failed there, it ends.
    """
    candidates = [unpack(run.frame["chosen"]), *unpack(run.frame.get("tried") or [])]
    claiming.settle(run, run.world.place_of_run(run), candidates)


class _Following(watching.Next):
    def resend(self, run: Run, place: Place) -> None:
        send(run)

    def elsewhere(self, run: Run, place: Place, reason: str) -> None:
        props = unpack(run.frame["properties"])
        if retry := props.get("retry"):
            retry["exc_reason"] = reason
        tried = [*unpack(run.frame.get("tried") or []), unpack(run.frame["chosen"])]
        offer_next(run, place, unpack(run.frame["hosts"]), props, tried)


def seen(run: Run) -> None:
    """A build that nobody drives: made by a peer, or left by a flow that was abandoned."""


def let_go(run: Run) -> None:
    """The server is taken back from its host before its claim is: one that became ACTIVE keeps both."""
    clean(run)
    release(run)


def watch_only(run: Run) -> bool:
    """ACTIVE or ERROR; there is nothing to send again, so a host that is lost ends the build."""
    return watching.look(run, run.world.place_of_run(run), _Ending())


class _Ending(watching.Next):
    def resend(self, run: Run, place: Place) -> None:
        sent = run.frame["sent"]
        run.frame["sent"] = sent | {"times": sent["times"] + 1, "at": clock.seconds()}

    def elsewhere(self, run: Run, place: Place, reason: str) -> None:
        raise exceptions.BuildAbortException(instance_uuid=run.subject_id, reason=reason)


def _server(run: Run) -> objects.Instance | None:
    return run.world.place_of_run(run).database.query(records.look, run.subject_id)


_SHORTLY = Retry(on=(Exception,), but=(exceptions.NoValidHost,), attempts=8, base=0.5, cap=20.0)

FLOW = flow(
    offers.RESCHEDULE,
    step(accept, undo=fail, retry=_SHORTLY),
    step(claim, undo=release, retry=_SHORTLY),
    step(prepare, retry=_SHORTLY),
    step(send, undo=clean, retry=_SHORTLY, light=True),
    rest(watch, every=watching.pause, retry=watching.UNTIRING),
)

WATCH = flow(
    offers.WATCH,
    step(seen, undo=let_go, since=2),
    rest(watch_only, every=watching.pause, retry=watching.UNTIRING, since=2),
    version=2,
)
