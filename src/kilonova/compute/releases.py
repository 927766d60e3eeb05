"""Letting go of a server's volumes: attachments removed, volumes deleted that end with their server.

What is to be let go of is written into the host's journal first, and is forgotten when it is done: Cinder may be away,
busy for minutes, or refuse. The server does not wait for it, and the `unreleased_volumes` loop tries again.
"""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kilonova.base import clock
from kilonova.clients.cinder.client import MARK
from kilonova.clients.patience import patient
from kilonova.compute.journal.book import FullError, Release
from kilonova.contract import context, exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import VM

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds for which the end of a server waits for its volumes."""

LATE = 120.0
"""Seconds after which a volume that may have been asked for, but is not there, does not come any more."""

REFUSING = 86400.0
"""Seconds after which Cinder's refusal (a volume with snapshots) is taken as its last word."""


class Unreleased(Exception):
    """Volumes are not let go of yet; it is tried again."""


def release_all(
    agent: Agent, ctxt: RequestContext, mappings: Iterable[objects.BlockDeviceMapping], unknown: bool = False
) -> list[Exception]:
    """Let go of the volumes, waiting only a while; returns what went wrong so far.

    `unknown`: also of volumes that may have been asked for and are not on record.
    """
    owed = [_owe(agent, each) for each in _of(mappings, unknown)]
    if not owed:
        return []
    working = agent.background.offer(lambda: [_try(agent, ctxt, each) for each in owed])
    if working is not None and not concurrent.futures.wait([working], PATIENCE).not_done:
        return [each for each in working.result() if each is not None]
    # Cinder takes its time, or keeps too many others waiting already.
    waits = Unreleased(f"volumes of instance {owed[0].instance_uuid} are not released yet")
    LOG.warning("%s; the host goes on with that by itself", waits)
    return [waits]


def _owe(agent: Agent, release: Release) -> Release:
    """What cannot be written down is tried all the same, once: it keeps no server from being deleted."""
    try:
        return agent.journal.owe(release)
    except FullError as exc:
        LOG.error("that volume %s of instance %s leaves: %s", release.name, release.instance_uuid, exc)
        return release


def _of(mappings: Iterable[objects.BlockDeviceMapping], unknown: bool) -> Iterable[Release]:
    for mapping in mappings:
        if mapping.destination_type != "volume":
            continue
        if mapping.volume_id:
            yield Release(
                instance_uuid=mapping.instance_uuid,
                volume_id=mapping.volume_id,
                attachment_id=mapping.get("attachment_id"),
                and_delete=bool(mapping.delete_on_termination),
            )
        elif unknown and mapping.get("uuid"):
            yield unrecorded(mapping)


def unrecorded(mapping: objects.BlockDeviceMapping) -> Release:
    """Of a volume that is asked for and not on record. Nobody knows of it but us, so nobody will miss it."""
    return Release(instance_uuid=mapping.instance_uuid, mark=mapping.get("uuid"), and_delete=True)


def _try(agent: Agent, ctxt: RequestContext, owed: Release) -> Exception | None:
    try:
        # What is away is waited for by the loop, which needs no thread meanwhile.
        with patient(0.0):
            _settle(agent, ctxt, owed)
    except Exception as exc:  # noqa: BLE001 - the others must be tried, too; it is on record
        LOG.warning("volume %s of instance %s could not be released: %s", owed.name, owed.instance_uuid, exc)
        return exc
    return None


def settle(agent: Agent, ctxt: RequestContext, owed: Release) -> bool:
    """Try once, unless the volume may be of use still; whether it is done. Raises what Cinder raises, which is noted.

    The next host of a build looks for the volume that was made here, and takes it.
    """
    if owed.volume_id is None:
        if (of_use := _of_use(agent, ctxt, owed)) is None:
            return False
        if of_use:
            agent.journal.settled(owed)
            return True
    return _settle(agent, ctxt, owed)


def _of_use(agent: Agent, ctxt: RequestContext, owed: Release) -> bool | None:
    """Whether the server has the volume that was asked for; None while it is built."""
    try:
        if agent.store.instance(ctxt, owed.instance_uuid, ()).vm_state == VM.BUILDING:
            return None
    except exceptions.InstanceNotFound:
        return False
    recorded = {each.volume_id for each in agent.store.block_devices(ctxt, owed.instance_uuid)} - {None}
    return made_for(agent, ctxt, owed.mark) in recorded


def _settle(agent: Agent, ctxt: RequestContext, owed: Release) -> bool:
    try:
        done = _release(agent, ctxt, owed)
    except exceptions.VolumeNotFound:
        LOG.debug("volume %s is gone already", owed.name)
        done = True
    except Exception as exc:
        agent.journal.still_owed(owed, f"{type(exc).__name__}: {exc}")
        if not isinstance(exc, exceptions.InvalidInput) or clock.seconds() - owed.since < REFUSING:
            raise
        LOG.error("volume %s of instance %s stays, Cinder does not let it go: %s", owed.name, owed.instance_uuid, exc)
        done = True
    if done:
        agent.journal.settled(owed)
    return done


def _release(agent: Agent, ctxt: RequestContext, owed: Release) -> bool:
    cinder = agent.clients.cinder
    volume_id = owed.volume_id or made_for(agent, ctxt, owed.mark)
    if volume_id is None:
        return clock.seconds() - owed.since > LATE
    known = owed.attachment_id
    if not known or not _as_user_or_service(ctxt, cinder.attachment_delete, known):
        # The record may be older than the last try to attach.
        for each in _as_user_or_service(
            ctxt, cinder.attachments, volume_id=volume_id, instance_id=owed.instance_uuid, all_tenants=1
        ):
            _as_user_or_service(ctxt, cinder.attachment_delete, each["id"])
    if owed.and_delete:
        _as_user_or_service(ctxt, cinder.volume_delete, volume_id)
    return True


def made_for(agent: Agent, ctxt: RequestContext, mark: str | None) -> str | None:
    """The volume that was made for the device, although nobody wrote its id down."""
    if not mark:
        return None
    filters = {"metadata": repr({MARK: mark}), "all_tenants": 1}
    found = _as_user_or_service(ctxt, agent.clients.cinder.volume_list, **filters)
    return next((each["id"] for each in found if each["volume_metadata"].get(MARK) == mark), None)


def _as_user_or_service(ctxt: RequestContext, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Cinder acts for the user while the token holds, after that for the service."""
    if ctxt.auth_token:
        try:
            return call(ctxt, *args, **more)
        except (exceptions.Forbidden, exceptions.Unauthorized) as exc:
            LOG.info("the service acts where its user may not (any more): %s", exc)
    return call(context.admin(), *args, **more)
