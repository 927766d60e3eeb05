"""A build takes longer than instance_build_timeout: the server goes to ERROR, and the build ends on seeing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kilonova.base import clock
from kilonova.contract import context, exceptions, objects
from kilonova.contract.states import VM, Task
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import Loop, Suspect


class OverdueBuilds(Loop):
    name = "overdue_builds"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._timeout = host.conf.instance_build_timeout

    def find(self) -> Iterable[objects.Instance]:
        return self._host.store.instances_of_host(context.admin(), self._host.host, ())

    def judge(self, found: Iterable[objects.Instance]) -> Sequence[Suspect]:
        return [
            Suspect(record.uuid, f"server {record.uuid} builds for longer than {self._timeout} s", record)
            for record in found
            if record.vm_state == VM.BUILDING and record.task_state != Task.DELETING and self._overdue(record)
        ]

    def _overdue(self, record: objects.Instance) -> bool:
        began = clock.aware(record.created_at)
        return began is not None and (clock.now() - began).total_seconds() > self._timeout

    def repair(self, suspect: Suspect) -> None:
        ctxt, host, record = context.admin(), self._host, suspect.data
        before = record.task_state
        record.vm_state, record.task_state = VM.ERROR, None
        try:
            host.store.save(ctxt, record, expected=before)
        except (exceptions.InstanceNotFound, exceptions.UnexpectedTaskStateError):
            return
        error = exceptions.BuildAbortException(instance_uuid=record.uuid, reason=suspect.harm)
        host.store.fault(ctxt, record.uuid, host.host, error)
