"""A guest runs although its server was deleted, or no record of it exists.

What is done with guests of deleted servers is running_deleted_instance_action. A guest without any record is only
reported: the host may have been pointed at the wrong database, and nobody could bring the guest back.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence

from kilonova.base import clock
from kilonova.contract import context, objects
from kilonova.contract.states import VM
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import Loop, Suspect
from kilonova.virt.driver import BlockDevices

LOG = logging.getLogger(__name__)

ATTRS = ("info_cache", "flavor", "system_metadata")


@dataclasses.dataclass(frozen=True)
class Seen:
    uuid: str
    record: objects.Instance | None


class UnknownGuests(Loop):
    name = "unknown_guests"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._action = host.conf.running_deleted_instance_action
        self._timeout = host.conf.running_deleted_instance_timeout

    def find(self) -> Iterable[Seen]:
        if self._action == "noop":
            return []
        host = self._host
        known = host.tracked()
        guests = [uuid for uuid in host.driver.guests() if uuid not in known and not host.busy(uuid)]
        records = {i.uuid: i for i in host.store.instances_by_uuid(context.admin("yes"), guests, ATTRS)}
        return [Seen(uuid, records.get(uuid)) for uuid in guests]

    def judge(self, found: Iterable[Seen]) -> Sequence[Suspect]:
        suspects = []
        for seen in found:
            if seen.record is None:
                suspects.append(Suspect(seen.uuid, f"guest {seen.uuid} has no record", seen, repairable=False))
            elif seen.record.deleted and self._old_enough(seen.record):
                harm = f"guest {seen.uuid} is there, its server was deleted"
                suspects.append(Suspect(seen.uuid, harm, seen, repairable=self._action != "log"))
            elif _was_given_up(seen.record):
                harm = f"guest {seen.uuid} is there, the build of its server was given up"
                suspects.append(Suspect(seen.uuid, harm, seen, repairable=self._action != "log"))
        return suspects

    def _old_enough(self, record: objects.Instance) -> bool:
        deleted = clock.aware(record.deleted_at)
        return deleted is None or (clock.now() - deleted).total_seconds() >= self._timeout

    def repair(self, suspect: Suspect) -> None:
        """On the instance's lane, so that no delete under way is disturbed. Waits for it."""
        record = suspect.data.record
        if self._action == "shutdown":
            work: Callable[[objects.Instance], object] = self._host.driver.power_off
        else:
            work = self._host.take_down if record.deleted else self._destroy
        self._host.lanes.submit(record.uuid, lambda turn: work(record)).result()

    def _destroy(self, record: objects.Instance) -> None:
        """The guest alone: what the server holds elsewhere is for its delete to take."""
        self._host.driver.destroy(context.admin(), record, [], BlockDevices())


def _was_given_up(record: objects.Instance) -> bool:
    """An ERROR server on no host that never ran."""
    return (
        not record.deleted
        and record.host is None
        and record.vm_state == VM.ERROR
        and record.task_state is None
        and record.launched_at is None
    )
