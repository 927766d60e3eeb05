"""Stopping a server."""

from __future__ import annotations

import logging

from kilonova.compute.runner import Work
from kilonova.contract import objects
from kilonova.contract.states import VM, Power, Task

LOG = logging.getLogger(__name__)

OFF = (Power.PENDING, Power.SHUTDOWN, Power.CRASHED)


def perform(work: Work) -> str:
    """Ask the guest to shut down, then cut its power."""
    agent, ctxt, instance = work.agent, work.ctxt, work.instance
    agent.store.complete(ctxt, instance, "system_metadata", "flavor")
    expected: list[str | None] = [Task.POWERING_OFF]
    if agent.power_state(instance) in OFF:
        # It stopped by itself, and a repair loop may have recorded that before us.
        expected.append(None)
    timeout, interval = patience(work, work.args.get("clean_shutdown", True))
    agent.driver.power_off(instance, timeout, interval)
    instance.power_state = agent.power_state(instance)
    instance.vm_state = VM.STOPPED
    instance.task_state = None
    agent.store.save(ctxt, instance, expected=expected)
    agent.tracker.update(instance)
    return "stopped"


def recover(work: Work) -> str:
    """Stop it still, if that is still wanted."""
    fresh = work.agent.store.instance(work.ctxt, work.instance.uuid)
    if fresh.task_state != Task.POWERING_OFF:
        return "overtaken"
    work.instance = fresh
    return perform(work)


def patience(work: Work, clean: bool) -> tuple[int, int]:
    """(seconds the guest is given, seconds between two requests to it)."""
    if not clean:
        return 0, 0
    conf = work.agent.conf
    return shutdown_timeout(work.instance, conf.shutdown_timeout), conf.compute.shutdown_retry_interval


def shutdown_timeout(instance: objects.Instance, default: int) -> int:
    """The image's property, or the configured one where it has none or nonsense."""
    text = instance.system_metadata.get("image_os_shutdown_timeout")
    try:
        return int(text) if text is not None else default
    except ValueError:
        LOG.warning("instance %s: os_shutdown_timeout=%r is no number", instance.uuid, text)
        return default
