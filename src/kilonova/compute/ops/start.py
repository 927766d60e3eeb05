"""Starting a stopped server."""

from __future__ import annotations

from kilonova.compute import guest
from kilonova.compute.runner import Work
from kilonova.compute.store import INSTANCE_ATTRS
from kilonova.contract.states import VM, Power, Task


def perform(work: Work) -> str:
    """Boot the guest."""
    agent, ctxt, instance = work.agent, work.ctxt, work.instance
    agent.store.complete(ctxt, instance, *INSTANCE_ATTRS)
    agent.driver.power_on(ctxt, guest.existing(agent, ctxt, instance))
    settle(work)
    return "started"


def settle(work: Work) -> None:
    agent, instance = work.agent, work.instance
    instance.power_state = agent.power_state(instance)
    instance.vm_state = VM.ACTIVE
    instance.task_state = None
    agent.store.save(work.ctxt, instance, expected=Task.POWERING_ON)
    agent.tracker.update(instance)


def recover(work: Work) -> str:
    """Start it still, if that is still wanted and did not happen."""
    agent = work.agent
    fresh = agent.store.instance(work.ctxt, work.instance.uuid)
    if fresh.task_state != Task.POWERING_ON:
        return "overtaken"
    work.instance = fresh
    if agent.power_state(fresh) != Power.RUNNING:
        return perform(work)
    settle(work)
    return "started"
