"""Letting go of one volume of a server: the guest's disk, the host's connection, the attachment.

A conductor or an operator's command waits for it and goes on by itself when it fails. So nothing of it is in the
journal: what is taken up after a restart would undo what the caller has done since.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kilonova.compute import block_devices
from kilonova.compute.lanes import Preempted
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)


def disconnect(
    agent: Agent, ctxt: RequestContext, instance: objects.Instance, volume_id: str, delete_attachment: bool
) -> None:
    """With `delete_attachment` also delete its attachment in Cinder; what is not there (any more) is no error.

    Raises DeviceDetachFailed, and what volume drivers and Cinder raise; the volume then counts as attached.
    """
    try:
        mapping = agent.store.block_device(ctxt, volume_id, instance.uuid)
        _from_host(agent, ctxt, instance, mapping)
        _from_cinder(agent, ctxt, instance, mapping, delete_attachment)
    except exceptions.NotFound as exc:
        LOG.info("volume %s of instance %s is not disconnected: %s", volume_id, instance.uuid, exc)


def _from_host(
    agent: Agent, ctxt: RequestContext, instance: objects.Instance, mapping: objects.BlockDeviceMapping
) -> None:
    for volume in block_devices.assemble(instance, [mapping]).volumes:
        try:
            agent.driver.detach_volume(instance, volume)
        except exceptions.DiskNotFound as exc:
            LOG.warning("volume %s of instance %s is gone from the host: %s", volume.volume_id, instance.uuid, exc)
        except Preempted:
            raise
        except Exception:
            _keep(agent, ctxt, instance, volume.volume_id)
            raise


def _keep(agent: Agent, ctxt: RequestContext, instance: objects.Instance, volume_id: str) -> None:
    """Cinder is told that the volume, which may have been announced to leave, stays."""
    try:
        agent.clients.cinder.volume_action(ctxt, volume_id, "os-roll_detaching", {})
    except Exception:
        LOG.exception("Cinder is not told that volume %s of instance %s stays", volume_id, instance.uuid)


def _from_cinder(
    agent: Agent,
    ctxt: RequestContext,
    instance: objects.Instance,
    mapping: objects.BlockDeviceMapping,
    delete_attachment: bool,
) -> None:
    cinder, attachment = agent.clients.cinder, mapping.get("attachment_id")

    def let_go() -> None:
        if not attachment:
            # From before attachments: Cinder knows the host by its connector only.
            connector = dict(agent.driver.volume_connector(instance))
            cinder.volume_action(ctxt, mapping.volume_id, "os-terminate_connection", {"connector": connector})
        elif delete_attachment:
            cinder.attachment_delete(ctxt, attachment)

    # Cinder may take minutes, which a delete of the server does not wait for.
    agent.events.await_result(instance.uuid, agent.background.submit(let_go))
