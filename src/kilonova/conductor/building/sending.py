"""The cast that asks a host to build a server; sent again while it shows no effect."""

from __future__ import annotations

from typing import Any

from kilonova.base import clock
from kilonova.base.retry import grown
from kilonova.conductor import records
from kilonova.conductor.building import claiming, placing
from kilonova.conductor.frames import unpack
from kilonova.conductor.world import Place, World, context
from kilonova.contract import objects
from kilonova.db.objects import bdm as bdms
from kilonova.flow.run import Run

RESEND_CAP = 300.0


def cast_build(run: Run, place: Place, chosen: objects.Selection, others: list[objects.Selection], props: Any) -> bool:
    """Cast build_and_run_instance to the chosen host; False if the server no longer waits for one.

    A host that has the request already answers the repeat from its journal. Raises LostClaimError when nothing is
    claimed on the host any more.
    """
    world: World = run.world
    ctxt = context(run)
    server = place.database.query(records.for_host, run.subject_id)
    if server is None or not records.waits_for_host(server):
        return False
    claiming.hold(run, server, chosen)
    spec = unpack(run.frame["request_spec"])
    placing.map_providers(spec, chosen)
    devices = place.database.query(bdms.get_by_instance_uuid, ctxt, server.uuid)
    run.guard()
    world.compute(place).build_and_run_instance(
        ctxt,
        instance=server,
        host=chosen.service_host,
        image=run.frame["image"],
        request_spec=spec,
        filter_properties=props,
        admin_password=run.secrets.get("admin_password"),
        injected_files=run.secrets.get("injected_files") or [],
        requested_networks=unpack(run.frame["requested_networks"]),
        security_groups=group_names(run, spec),
        block_device_mapping=devices,
        node=chosen.nodename,
        limits=chosen.get("limits"),
        host_list=others,
        accel_uuids=[],
    )
    sent = run.frame.get("sent") or {"times": 0}
    run.frame["sent"] = {"host": chosen.service_host, "at": clock.seconds(), "times": sent["times"] + 1}
    return True


def group_names(run: Run, spec: objects.RequestSpec) -> list[str]:
    """Security groups as hosts take them: ids or names."""
    if (given := run.frame.get("security_groups")) is not None:
        return list(given)
    groups = spec.get("security_groups")
    return [group.get("uuid") or group.get("name") for group in groups.objects] if groups is not None else []


def due_again(run: Run, first: float) -> bool:
    """Whether the cast has gone unanswered for long enough: `first` seconds, doubled with each repeat."""
    sent = run.frame["sent"]
    return bool(clock.seconds() - sent["at"] >= grown(first, 2, sent["times"] - 1, RESEND_CAP))
