"""A guest's power state is not what the record says: it stopped, or was started, by itself.

Facts are never rolled back. The record takes over the power state; where it contradicts what the user was promised
(an ACTIVE server whose guest is off), the server is stopped as if the user had asked. Events bring this at once, the
full comparison finds what events missed.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
import threading
from collections.abc import Iterable, Mapping

from kilonova.contract import context, exceptions, objects
from kilonova.contract.states import VM, Power, Task
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import is_on
from kilonova.virt.driver import GuestChange, GuestEvent, GuestInfo

LOG = logging.getLogger(__name__)

DOWN = (Power.SHUTDOWN, Power.CRASHED)
NOT_RUNNING = (Power.PENDING, *DOWN)

EXPECTED: Mapping[GuestChange, int] = {
    GuestChange.STARTED: Power.RUNNING,
    GuestChange.RESUMED: Power.RUNNING,
    GuestChange.STOPPED: Power.SHUTDOWN,
    GuestChange.PAUSED: Power.PAUSED,
    GuestChange.SUSPENDED: Power.SUSPENDED,
    GuestChange.POSTCOPY_STARTED: Power.PAUSED,
    GuestChange.MIGRATION_COMPLETED: Power.PAUSED,
}
"""The power state that an event is about; when the guest has gone on since, the event is old."""


class Step(enum.Flag):
    NOTHING = 0
    RECORD = enum.auto()
    """Write the power state."""
    STOP = enum.auto()
    """Stop the server: what was promised cannot be kept, or is not wanted."""


@dataclasses.dataclass(frozen=True)
class Finding:
    instance: objects.Instance
    power_state: int


class PowerSync:
    name = "power_sync"

    def __init__(self, host: Host) -> None:
        self._host = host
        self.spacing: float = host.conf.sync_power_state_interval
        self._listens = host.conf.workarounds.handle_virt_lifecycle_events
        self._lock = threading.Lock()
        self._waiting: dict[str, int | None] = {}
        """Guests that are to be looked at, with the power state that is expected of them: the last word counts."""

    def run(self) -> int:
        """Compare all; the number of servers that were put right or queued for it."""
        if not is_on(self._host.conf.kilonova, self.name):
            return 0
        repairs = [found for found in self.find() if judge(found.instance, found.power_state)]
        for found in repairs:
            self._queue(found.instance.uuid)
        return len(repairs)

    def find(self) -> Iterable[Finding]:
        ctxt, host = context.admin(), self._host
        guests: Mapping[str, GuestInfo] = host.driver.guests()
        for instance in host.store.instances_of_host(ctxt, host.host, ()):
            if not host.busy(instance.uuid):
                known = guests.get(instance.uuid)
                yield Finding(instance, known.power_state if known is not None else Power.PENDING)

    def on_guest_event(self, event: GuestEvent) -> None:
        """Look at the guest as soon as what runs on it has ended."""
        if self._listens and is_on(self._host.conf.kilonova, self.name):
            LOG.info("guest %s: %s", event.uuid, event.change.name.lower())
            self._queue(event.uuid, EXPECTED[event.change])

    def _queue(self, uuid: str, expected: int | None = None) -> None:
        """However often a guest goes up and down, one look at it waits."""
        with self._lock:
            waits = uuid in self._waiting
            self._waiting[uuid] = expected
        if not waits:
            self._host.lanes.submit(uuid, lambda turn: self._look(uuid))

    def _look(self, uuid: str) -> None:
        with self._lock:
            expected = self._waiting.pop(uuid)
        self.repair(uuid, expected)

    def repair(self, uuid: str, expected: int | None = None) -> None:
        """Look again, on the instance's lane, and act on what is true now."""
        ctxt, host = context.admin(), self._host
        try:
            instance = host.store.instance(ctxt, uuid, ())
            state = host.power_state(instance)
            if instance.host != host.host or expected not in (None, state):
                return
            step = judge(instance, state)
            if Step.RECORD in step:
                LOG.info("instance %s: power state %s becomes %s", uuid, instance.power_state, state)
                instance.power_state = state
                host.store.save(ctxt, instance, expected=None)
            if Step.STOP in step:
                self._stop(instance)
        except (exceptions.InstanceNotFound, exceptions.UnexpectedTaskStateError) as exc:
            LOG.debug("power state of instance %s is left alone: %s", uuid, exc)

    def _stop(self, instance: objects.Instance) -> None:
        """As if the user had asked: the task state is taken, the action is on record."""
        ctxt, host = context.admin(), self._host
        LOG.warning(
            "instance %s is %s, its guest is in power state %s: it is stopped",
            instance.uuid,
            instance.vm_state,
            instance.power_state,
        )
        instance.task_state = Task.POWERING_OFF
        host.store.save(ctxt, instance, expected=None)
        host.operate("stop_instance", instance, {"clean_shutdown": True})


def judge(instance: objects.Instance, power_state: int) -> Step:
    """Pure: what a power state means for a server without a task."""
    if instance.task_state is not None:
        return Step.NOTHING
    step = Step.RECORD if instance.power_state != power_state else Step.NOTHING
    if _contradicts(instance.vm_state, power_state):
        step |= Step.STOP
    return step


def _contradicts(vm_state: str | None, power_state: int) -> bool:
    if vm_state == VM.ACTIVE:
        return power_state in (*DOWN, Power.SUSPENDED)
    if vm_state == VM.PAUSED:
        return power_state in DOWN
    return vm_state == VM.STOPPED and power_state not in NOT_RUNNING
