"""A build that a dead agent left open: finished where the guest runs, else undone and tried elsewhere.

What the record says now decides what may be touched at all; what the journal and the hypervisor say decides how.
"""

from __future__ import annotations

import logging

from kilonova.compute import block_devices, network
from kilonova.compute.lanes import Preempted
from kilonova.compute.ops.build import failure, run
from kilonova.compute.ops.build.job import ACTIVE, REFUSED, RESCHEDULED, Build
from kilonova.compute.runner import Work
from kilonova.compute.store import INSTANCE_ATTRS
from kilonova.contract import exceptions
from kilonova.contract.states import VM, Power, Task

LOG = logging.getLogger(__name__)

UNBEGUN = (Task.SCHEDULING, None)


def repeat(work: Work) -> None:
    """The cast came again although the build was given back: whoever sent it did not hear of that."""
    if work.entry.result != RESCHEDULED and work.entry.step != failure.HANDING_BACK:
        return
    build = Build.of(work)
    try:
        build.instance = work.agent.store.instance(work.ctxt, work.instance.uuid, INSTANCE_ATTRS)
    except exceptions.InstanceNotFound:
        return
    now = build.instance
    if (now.vm_state, now.task_state, now.host) == (VM.BUILDING, Task.SCHEDULING, None):
        failure.hand_back(build, f"host {work.agent.host} gave the build back before", [])


def perform(work: Work) -> str:
    """Finish or undo; returns how the build ended."""
    build = Build.of(work)
    try:
        record = work.agent.store.instance(work.ctxt, work.instance.uuid, INSTANCE_ATTRS)
    except exceptions.InstanceNotFound as exc:
        build.spawning = True
        return failure.gone(build, exc)
    build.instance = work.instance = record
    if record.task_state == Task.DELETING:
        _load(build)
        return failure.gone(build, Preempted())
    if record.vm_state != VM.BUILDING or record.host not in (None, work.agent.host):
        return _ended(build)
    if record.host is None:
        return _unplaced(build)
    return _ours(build)


def _ended(build: Build) -> str:
    """The record went on without us, or just before we died."""
    agent, instance = build.work.agent, build.instance
    if instance.vm_state == VM.ACTIVE and instance.host == agent.host:
        return ACTIVE
    LOG.info("instance %s is %s on host %s now", instance.uuid, instance.vm_state, instance.host)
    if instance.host != agent.host:
        agent.driver.destroy(build.work.ctxt, instance, [], block_devices.assemble(instance, ()))
    return REFUSED


def _unplaced(build: Build) -> str:
    """We died before the record named us, or while we handed the build back."""
    if build.work.entry.step is None and build.instance.task_state in UNBEGUN:
        return run.perform(build.work)
    if build.work.entry.step == failure.HANDING_BACK and build.instance.task_state == Task.SCHEDULING:
        # Undone; whether the conductor heard of it is not known. It passes over what it heard before.
        interrupted = Interrupted(build.work.agent.host)
        return failure.hand_back(build, interrupted.format_message(), [])
    return failure.overtaken(build, Interrupted(build.work.agent.host))


def _ours(build: Build) -> str:
    agent, instance = build.work.agent, build.instance
    _load(build)
    if instance.task_state == Task.SPAWNING and agent.power_state(instance) == Power.RUNNING:
        return _finish(build)
    return failure.end(build, Interrupted(agent.host))


def _load(build: Build) -> None:
    """What the record knows of the dead agent's work; the guest is presumed to be there."""
    build.mappings = build.work.agent.store.block_devices(build.work.ctxt, build.instance.uuid)
    build.disks = block_devices.assemble(build.instance, build.mappings)
    build.network_info = network.cached(build.instance)
    build.attaching = build.spawning = True
    build.task = build.instance.task_state


def _finish(build: Build) -> str:
    """The guest runs: only the record was missing."""
    agent, instance = build.work.agent, build.instance
    LOG.info("guest of instance %s runs, its build is finished now", instance.uuid)
    try:
        run.activate(build)
    except failure.DELETED as exc:
        return failure.gone(build, exc)
    except Exception as exc:  # noqa: BLE001 - every failure has an end that is recorded
        return failure.end(build, exc)
    agent.tracker.settle(instance)
    agent.tell_schedulers(build.work.ctxt, instance)
    return ACTIVE


class Interrupted(exceptions.NovaException):
    """The agent ended in the middle of the build."""

    def __init__(self, host: str) -> None:
        super().__init__(f"the compute service of host {host} was restarted during the build")
