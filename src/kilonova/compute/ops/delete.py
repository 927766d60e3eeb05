"""Deleting a server: guest, ports, volumes, record, allocations. Every step can be repeated."""

from __future__ import annotations

import logging

from kilonova.base import clock
from kilonova.compute import block_devices, removal
from kilonova.compute.ops.build.job import as_list
from kilonova.compute.outages import passes
from kilonova.compute.runner import Work
from kilonova.contract import exceptions, objects
from kilonova.contract.states import VM, Power

LOG = logging.getLogger(__name__)


def perform(work: Work) -> str:
    """Delete; on failure the server is in ERROR and can be deleted again. While something else is away it stays as it
    is: a delete that was accepted is asked for again by its flow, or by the repair of stuck tasks.
    """
    agent, instance = work.agent, work.instance
    agent.events.allow(instance.uuid)
    try:
        remove(work)
    except exceptions.InstanceNotFound:
        LOG.info("instance %s was deleted by somebody else", instance.uuid)
        forget(work)
    except Exception as exc:
        if not passes(exc):
            set_error(work)
        raise
    return "deleted"


def remove(work: Work) -> None:
    agent, ctxt, instance = work.agent, work.ctxt, work.instance
    agent.store.complete(ctxt.elevated("yes"), instance, "info_cache", "flavor", "system_metadata", "metadata")
    removal.take_down(agent, ctxt, instance, current_mappings(work))
    agent.store.interfaces_forget(ctxt, instance.uuid)
    # Before the record says that the server is deleted: until then its task tells everybody to go on with it.
    forget(work)
    instance.vm_state = VM.DELETED
    instance.task_state = None
    instance.power_state = Power.PENDING
    instance.terminated_at = clock.now()
    # Else an agent of Nova's would look for its files again and again.
    instance.cleaned = True
    agent.store.save(ctxt, instance)
    # The record goes last: while it is there, the delete can be found and repeated.
    agent.store.destroy(ctxt, instance)
    agent.forget_at_schedulers(ctxt, instance.uuid)


def current_mappings(work: Work) -> list[objects.BlockDeviceMapping]:
    """Those of the request, unless it brought none, or a build may have changed them since."""
    given = as_list(work.args.get("bdms"))
    stale = any(block_devices.is_volume(m) and not (m.volume_id and m.get("connection_info")) for m in given)
    return given if given and not stale else work.agent.store.block_devices(work.ctxt, work.instance.uuid)


def forget(work: Work) -> None:
    """Claims here and in Placement end. Raises clients' ServiceError: allocations must not outlive the record."""
    work.agent.tracker.forget(work.instance.uuid)
    work.agent.clients.placement.allocations_delete(work.ctxt, work.instance.uuid, force=True)


def set_error(work: Work) -> None:
    """So that the user sees it and can try again."""
    instance = work.instance
    instance.obj_reset_changes()
    instance.vm_state = VM.ERROR
    instance.task_state = None
    try:
        work.agent.store.save(work.ctxt, instance)
    except exceptions.InstanceNotFound:
        LOG.info("instance %s is gone", instance.uuid)
