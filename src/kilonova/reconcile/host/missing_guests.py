"""The record places a server here whose guest the hypervisor does not know. It is reported, not remade."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kilonova.contract import context, objects
from kilonova.contract.states import VM
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import Loop, Suspect

NEED_A_GUEST = (VM.ACTIVE, VM.PAUSED, VM.RESCUED, VM.RESIZED)


class MissingGuests(Loop):
    """A hard reboot by the user remakes the guest; an agent that did so by itself could run a moved guest twice."""

    name = "missing_guests"

    def __init__(self, host: Host) -> None:
        self._host = host

    def find(self) -> Iterable[objects.Instance]:
        host = self._host
        records = host.store.instances_of_host(context.admin(), host.host, ())
        guests = host.driver.guests()
        return [record for record in records if record.uuid not in guests and not host.busy(record.uuid)]

    def judge(self, found: Iterable[objects.Instance]) -> Sequence[Suspect]:
        return [
            Suspect(record.uuid, f"server {record.uuid} is {record.vm_state}, but has no guest", repairable=False)
            for record in found
            if record.vm_state in NEED_A_GUEST and record.task_state is None
        ]

    def repair(self, suspect: Suspect) -> None:
        """Nothing is repairable."""
