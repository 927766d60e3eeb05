"""Files of a deleted server are still here: the host could not remove them, or was not there when it was deleted.

Which those are its record says (`cleaned`), which Nova's agents keep too; so does the number of tries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kilonova.contract import context, objects
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import Loop, Suspect
from kilonova.virt.driver import BlockDevices

TRIES = "clean_attempts"
"""Where system metadata count them."""


class LeftoverFiles(Loop):
    """A guest that still runs is another loop's (`unknown_guests`), which may be told to leave it alone."""

    name = "leftover_files"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._most = host.conf.maximum_instance_delete_attempts

    def find(self) -> Iterable[objects.Instance]:
        host = self._host
        filters = {"deleted": True, "soft_deleted": False, "host": host.host, "cleaned": False}
        records = host.store.call(
            context.admin("yes"), "InstanceList", "get_by_filters", filters, expected_attrs=["system_metadata"]
        )
        guests = host.driver.guests()
        return [record for record in records if record.uuid not in guests and not host.busy(record.uuid)]

    def judge(self, found: Iterable[objects.Instance]) -> Sequence[Suspect]:
        return [
            Suspect(record.uuid, f"files of the deleted server {record.uuid} may be here", record)
            for record in found
            if tries(record) < self._most
        ]

    def repair(self, suspect: Suspect) -> None:
        """On the server's lane. Waits for it."""
        self._host.lanes.submit(suspect.key, lambda turn: self._clean(suspect.data)).result()

    def _clean(self, record: objects.Instance) -> None:
        host, ctxt = self._host, context.admin("yes")
        record.system_metadata[TRIES] = str(tries(record) + 1)
        try:
            host.driver.destroy(ctxt, record, [], BlockDevices())
            record.cleaned = True
        finally:
            host.store.save(ctxt, record)


def tries(record: objects.Instance) -> int:
    """How often the files were to be removed."""
    return int(record.system_metadata.get(TRIES) or 0)
