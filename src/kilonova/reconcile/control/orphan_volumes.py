"""Cinder has a volume that a host asked for and nobody wrote down: the host did not come back, the server has ended.

The volume bears its block device's uuid. Whatever else bears one is somebody's: the record names a volume of the
device, or the volume as another server's, or knows no such device (any more). A copy that its user made of a server's
volume may bear it, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kilonova.base import ids
from kilonova.clients.cinder.client import MARK
from kilonova.contract import context, exceptions
from kilonova.db.cell import explanations
from kilonova.db.cells import CellDown
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Standing, Traces, World
from kilonova.reconcile.loop import Loop, Suspect

PAGE = 500
"""Volumes that are looked at in one pass; the next pass goes on behind them."""

AGAIN = 50
"""Suspects of the last pass that are looked at again."""

IDLE = ("available", "error")
"""Statuses of volumes that nobody has."""


@dataclasses.dataclass(frozen=True)
class Unrecorded:
    volume: str
    server: str
    traces: Traces


class OrphanVolumes(Loop):
    """Needs credentials in [cinder] or [service_user] that see every project's volumes."""

    name = "orphan_volumes"

    def __init__(self, world: World) -> None:
        self._world = world
        self._ctxt = context.admin()

    def find(self) -> Iterable[Unrecorded]:
        page = self._world.clients.cinder.volumes_behind(self._ctxt, self.place, PAGE, all_tenants=1)
        found = self._look({each["id"]: each for each in (*page, *self._suspected())}.values())
        self.place = page[-1]["id"] if len(page) == PAGE else None
        return found

    def _suspected(self) -> Iterable[dict[str, Any]]:
        """Volumes that looked wrong in the last pass, as they are now."""
        for suspect in self.suspected[:AGAIN]:
            with contextlib.suppress(exceptions.VolumeNotFound):
                yield self._world.clients.cinder.volume_show(self._ctxt, suspect.key)

    def _look(self, volumes: Iterable[Mapping[str, Any]]) -> list[Unrecorded]:
        marked = {each["id"]: mark for each in volumes if (mark := _mark(each)) is not None}
        used = self._used(marked)
        marks = {volume: mark for volume, mark in marked.items() if volume not in used}
        servers = self._servers(set(marks.values()))
        traces = known.look(self._world, servers.values())
        return [
            Unrecorded(volume, servers[mark], traces[servers[mark]])
            for volume, mark in marks.items()
            if mark in servers
        ]

    def _used(self, volumes: Collection[str]) -> set[str]:
        """Those that a server has, or had since: what their user wrote there is not ours to delete.

        While a cell does not answer, it may be all of them.
        """
        if not volumes:
            return set()
        answers = self._world.cells.scatter(
            lambda cell: cell.database.query(explanations.volumes_of_devices, volumes)
        ).values()
        found = [answer for answer in answers if not isinstance(answer, CellDown)]
        return set().union(*found) if len(found) == len(answers) else set(volumes)

    def _servers(self, devices: Collection[str]) -> dict[str, str]:
        """Whose these devices are, of those that no cell has a volume of."""
        if not devices:
            return {}
        answers = self._world.cells.scatter(lambda cell: cell.database.query(explanations.devices, devices))
        rows = [row for answer in answers.values() if not isinstance(answer, CellDown) for row in answer]
        recorded = {row["uuid"] for row in rows if row["volume_id"]}
        return {row["uuid"]: row["instance_uuid"] for row in rows if row["uuid"] not in recorded}

    def judge(self, found: Iterable[Unrecorded]) -> Sequence[Suspect]:
        suspects = []
        for each in found:
            standing = known.judge(each.traces)
            if standing in (Standing.GONE, Standing.FAILED):
                harm = f"volume {each.volume} was made for server {each.server} ({standing}) and is not on record"
                suspects.append(Suspect(each.volume, harm, each))
        return suspects

    def repair(self, suspect: Suspect) -> None:
        cinder = self._world.clients.cinder
        with contextlib.suppress(exceptions.VolumeNotFound):
            if self.judge(self._look([cinder.volume_show(self._ctxt, suspect.key)])):
                cinder.volume_delete(self._ctxt, suspect.key)


def _mark(volume: Mapping[str, Any]) -> str | None:
    """The block device for which the volume was made, if nobody has it."""
    mark = volume["volume_metadata"].get(MARK)
    is_idle = volume["status"] in IDLE and not volume["attachments"]
    return mark if is_idle and mark and ids.is_uuid(mark) else None
