"""Ports or volumes of a server that is not here any more are plugged into this host still: unplugging them failed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from kilonova.contract import context, objects
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import Loop, Suspect


@dataclasses.dataclass(frozen=True)
class Left:
    uuid: str
    record: objects.Instance | None


class LeftoverPlugs(Loop):
    """A server that the record places here is left alone: starting it plugs and unplugs what it has."""

    name = "leftover_plugs"

    def __init__(self, host: Host) -> None:
        self._host = host

    def find(self) -> Iterable[Left]:
        host = self._host
        return self._look(sorted(uuid for uuid in host.driver.leftovers() if not host.busy(uuid)))

    def _look(self, uuids: Sequence[str]) -> list[Left]:
        found = self._host.store.instances_by_uuid(context.admin("yes"), uuids, ())
        records = {each.uuid: each for each in found}
        return [Left(uuid, records.get(uuid)) for uuid in uuids]

    def judge(self, found: Iterable[Left]) -> Sequence[Suspect]:
        return [
            Suspect(left.uuid, f"something of server {left.uuid} is plugged here still", left)
            for left in found
            if left.record is None or left.record.deleted or left.record.host != self._host.host
        ]

    def repair(self, suspect: Suspect) -> None:
        """On the server's lane. Waits for it."""
        self._host.lanes.submit(suspect.key, lambda turn: self._unplug(suspect.key)).result()

    def _unplug(self, uuid: str) -> None:
        """Unless the server has come here meanwhile."""
        driver = self._host.driver
        if uuid in driver.leftovers() and self.judge(self._look([uuid])):
            driver.unplug(uuid)
