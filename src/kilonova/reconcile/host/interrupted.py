"""A server's states say that this host works on it, but it does not: the cast was lost, or its end was not recorded."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from kilonova.contract import context, exceptions, objects
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import Loop, Suspect

LOG = logging.getLogger(__name__)


class Interrupted(Loop):
    name = "interrupted"

    def __init__(self, host: Host) -> None:
        self._host = host

    def find(self) -> Iterable[objects.Instance]:
        host = self._host
        records = host.store.instances_of_host(context.admin(), host.host, ())
        return [record for record in records if not host.busy(record.uuid)]

    def judge(self, found: Iterable[objects.Instance]) -> Sequence[Suspect]:
        return [
            Suspect(f"{record.uuid}/{record.task_state}", f"nobody does {record.task_state} of {record.uuid}", record)
            for record in found
            if self._host.interrupted(record)[0] is not None
        ]

    def repair(self, suspect: Suspect) -> None:
        """Take it up as after a restart. A failure is the operation's own to record."""
        host, uuid = self._host, suspect.data.uuid
        try:
            record = host.store.instance(context.admin(), uuid)
        except exceptions.InstanceNotFound:
            return
        method, args = host.interrupted(record)
        if method is not None and record.host == host.host and record.task_state == suspect.data.task_state:
            host.operate(method, record, args, resumed=True)
