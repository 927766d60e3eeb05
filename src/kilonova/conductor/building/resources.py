"""Letting go of what a server holds in other services. Everything here may be repeated."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.clients.http import ServiceError
from kilonova.clients.neutron.allocation import predates
from kilonova.conductor import records
from kilonova.conductor.outages import passes
from kilonova.conductor.world import Place, World
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db.objects import bdm as bdms

LOG = logging.getLogger(__name__)


def serving(ctxt: RequestContext) -> RequestContext:
    """The same request by the service's own credentials: a user's token may have run out since."""
    own = ctxt.elevated()
    own.auth_token = None
    return own


def release_allocations(world: World, ctxt: RequestContext, uuid: str) -> None:
    """Take back all that the server holds in Placement."""
    if world.clients.placement.allocations_delete(serving(ctxt), uuid, force=True):
        LOG.info("allocations of server %s released", uuid)


def release_ports(world: World, ctxt: RequestContext, instance: objects.Instance, requested: Any = None) -> None:
    """Delete the ports made for the server, and unbind those that its user brought.

    Brought is what the request or the network-info cache says, and what is older than the server's own record: the
    record comes before the resource.
    """
    own = serving(ctxt)
    ports = world.clients.neutron.ports_by_device(own, instance.uuid, instance.project_id)
    if not ports:
        return
    born = clock.aware(instance.get("created_at"))
    older = [objects.NetworkRequest(port_id=each["id"]) for each in ports if predates(each, born)]
    known = list(requested.objects) if requested is not None else []
    world.clients.neutron.deallocate(own, instance, requested=[*known, *older], cached=_cached(instance))


def _cached(instance: objects.Instance) -> Sequence[Mapping[str, Any]]:
    cache = instance.info_cache if instance.obj_attr_is_set("info_cache") else None
    found = (cache.network_info if cache is not None else None) or ()
    return json.loads(found) if isinstance(found, str) else found


def release_volumes(
    world: World, ctxt: RequestContext, place: Place, uuid: str, *, and_delete: bool = False
) -> list[objects.BlockDeviceMapping]:
    """Remove the server's attachments; with `and_delete` also volumes that are to end with it. Returns the devices."""
    devices = list(place.database.query(bdms.get_by_instance_uuid, ctxt, uuid).objects)
    release_attachments(world, ctxt, devices)
    for device in devices:
        if device.destination_type != "volume" or not device.volume_id:
            continue
        if and_delete and device.delete_on_termination:
            _delete_volume(world, ctxt, device.volume_id)
    return devices


def release_attachments(world: World, ctxt: RequestContext, devices: Iterable[objects.BlockDeviceMapping]) -> None:
    """Make volumes free again; their devices keep the ids, and removing an attachment twice is harmless."""
    for device in devices:
        if device.destination_type == "volume" and device.get("attachment_id"):
            _as_user_or_service(ctxt, world.clients.cinder.attachment_delete, device.attachment_id)


def clean_up(world: World, ctxt: RequestContext, place: Place, uuid: str, project: str | None, requested: Any) -> None:
    """Ports and attachments that a host may have made for a build that came to nothing."""
    server = place.database.query(records.look, uuid, ("info_cache",))
    if server is None:
        server = objects.Instance(uuid=uuid, project_id=project)
    release_ports(world, ctxt, server, requested)
    release_volumes(world, ctxt, place, uuid)


def _delete_volume(world: World, ctxt: RequestContext, volume_id: str) -> None:
    try:
        _as_user_or_service(ctxt, world.clients.cinder.volume_delete, volume_id)
    except (exceptions.NovaException, ServiceError) as exc:
        if passes(exc):
            raise
        # Nova's way: a volume that cannot be deleted must not keep the server from ending.
        LOG.warning("volume %s, which was to end with its server, could not be deleted: %s", volume_id, exc)


def release_image(world: World, ctxt: RequestContext, image_id: str) -> None:
    """Delete an image that only its server needed. One that may not be deleted stays."""
    try:
        world.clients.glance.image_delete(ctxt, image_id)
    except (exceptions.ImageNotFound, exceptions.ImageNotAuthorized, exceptions.ImageDeleteConflict) as exc:
        LOG.warning("image %s, which was to end with its server, could not be deleted: %s", image_id, exc)


def _as_user_or_service(ctxt: RequestContext, call: Callable[..., Any], *args: Any) -> Any:
    """Cinder acts for the user while the token holds, after that for the service."""
    if ctxt.auth_token:
        try:
            return call(ctxt, *args)
        except (exceptions.Forbidden, exceptions.Unauthorized) as exc:
            LOG.info("the service acts where its user may not (any more): %s", exc)
    return call(serving(ctxt), *args)
