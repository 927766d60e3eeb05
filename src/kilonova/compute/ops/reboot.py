"""Rebooting a server: soft (the guest is asked), or hard (it is remade from its record)."""

from __future__ import annotations

import logging

from kilonova.compute import guest
from kilonova.compute.lanes import Preempted
from kilonova.compute.runner import Explained, Work
from kilonova.compute.store import INSTANCE_ATTRS, message_of
from kilonova.contract import exceptions
from kilonova.contract.states import VM, Power, Task

LOG = logging.getLogger(__name__)

SOFT_STATES = (Task.REBOOTING, Task.REBOOT_PENDING, Task.REBOOT_STARTED)
HARD_STATES = (Task.REBOOTING_HARD, Task.REBOOT_PENDING_HARD, Task.REBOOT_STARTED_HARD)


def perform(work: Work) -> str:
    """Reboot. A failed reboot of a guest that runs all the same leaves it ACTIVE, with a fault."""
    agent, ctxt, instance = work.agent, work.ctxt.elevated(), work.instance
    hard = work.args.get("reboot_type") == "HARD"
    agent.store.complete(ctxt, instance, *INSTANCE_ATTRS)
    made = guest.existing(agent, ctxt, instance)
    instance.power_state = agent.power_state(instance)
    instance.task_state = Task.REBOOT_PENDING_HARD if hard else Task.REBOOT_PENDING
    agent.store.save(ctxt, instance, expected=expected_states(work))
    if instance.power_state != Power.RUNNING:
        LOG.warning("instance %s is rebooted although its power state is %s", instance.uuid, instance.power_state)
    pending = instance.task_state
    instance.task_state = Task.REBOOT_STARTED_HARD if hard else Task.REBOOT_STARTED
    agent.store.save(ctxt, instance, expected=pending)
    failed = None
    try:
        agent.driver.reboot(ctxt, made, hard)
    except Preempted:
        raise
    except Exception as exc:
        failed = exc
        if agent.power_state(instance) != Power.RUNNING:
            set_error(work)
            raise
        LOG.exception("reboot of instance %s failed, but it runs", instance.uuid)
        agent.store.fault(ctxt, instance.uuid, agent.host, exc)
    settle(work)
    if failed is not None:
        raise Explained(message_of(failed)) from failed
    return "rebooted"


def expected_states(work: Work) -> tuple[str | None, ...]:
    if work.args.get("resume"):
        # Nobody asked: the guest ran before the host went down.
        return (*HARD_STATES, None)
    return HARD_STATES if work.args.get("reboot_type") == "HARD" else SOFT_STATES


def recover(work: Work) -> str:
    """A guest that runs had its reboot; one that went down and did not come up is rebooted hard."""
    agent = work.agent
    if work.args.get("resume"):
        return perform(work)
    fresh = agent.store.instance(work.ctxt, work.instance.uuid)
    if fresh.task_state not in (*SOFT_STATES, *HARD_STATES):
        return "overtaken"
    work.instance = fresh
    if fresh.task_state in (Task.REBOOTING, Task.REBOOTING_HARD):
        return perform(work)
    if agent.power_state(fresh) == Power.RUNNING:
        settle(work)
        return "rebooted"
    if fresh.task_state in SOFT_STATES:
        fresh.task_state = Task.REBOOT_PENDING_HARD
        agent.store.save(work.ctxt, fresh, expected=SOFT_STATES)
    work.args = {**work.args, "reboot_type": "HARD"}
    return perform(work)


def settle(work: Work) -> None:
    """ACTIVE, or still rescued."""
    agent, instance = work.agent, work.instance
    instance.power_state = agent.power_state(instance)
    instance.vm_state = VM.RESCUED if instance.vm_state == VM.RESCUED else VM.ACTIVE
    instance.task_state = None
    try:
        agent.store.save(work.ctxt, instance)
    except exceptions.InstanceNotFound:
        LOG.info("instance %s disappeared during its reboot", instance.uuid)
    agent.tracker.update(instance)


def set_error(work: Work) -> None:
    work.instance.vm_state = VM.ERROR
    work.instance.task_state = None
    work.agent.store.save(work.ctxt, work.instance)
    work.agent.tracker.update(work.instance)
