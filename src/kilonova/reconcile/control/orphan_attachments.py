"""Cinder has a volume attached to a server that has ended."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kilonova.base import ids
from kilonova.contract import context, exceptions
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Standing, Traces, World
from kilonova.reconcile.loop import Loop, Suspect

PAGE = 500
"""Attachments that are looked at in one pass; the next pass goes on behind them."""

AGAIN = 50
"""Suspects of the last pass that are looked at again."""


@dataclasses.dataclass(frozen=True)
class Held:
    attachment: Mapping[str, Any]
    traces: Traces


class OrphanAttachments(Loop):
    """Needs credentials in [cinder] or [service_user] that see every project's attachments."""

    name = "orphan_attachments"

    def __init__(self, world: World) -> None:
        self._world = world
        self._ctxt = context.admin()

    def find(self) -> Iterable[Held]:
        page = self._world.clients.cinder.attachments_behind(self._ctxt, self.place, PAGE, all_tenants=1)
        listed = {each["id"]: each for each in (*page, *self._suspected()) if ids.is_uuid(each.get("instance") or "")}
        traces = known.look(self._world, [each["instance"] for each in listed.values()])
        self.place = page[-1]["id"] if len(page) == PAGE else None
        return [Held(each, traces[each["instance"]]) for each in listed.values()]

    def _suspected(self) -> Iterable[dict[str, Any]]:
        """Attachments that looked wrong in the last pass, as they are now."""
        for suspect in [each for each in self.suspected if each.repairable][:AGAIN]:
            with contextlib.suppress(exceptions.VolumeAttachmentNotFound):
                yield self._world.clients.cinder.attachment_show(self._ctxt, suspect.key)

    def judge(self, found: Iterable[Held]) -> Sequence[Suspect]:
        suspects = []
        for held in found:
            standing = known.judge(held.traces)
            if standing in (Standing.GONE, Standing.FOREIGN):
                harm = f"attachment {held.attachment['id']} is for server {held.attachment['instance']} ({standing})"
                suspects.append(Suspect(held.attachment["id"], harm, held, standing is Standing.GONE))
        return suspects

    def repair(self, suspect: Suspect) -> None:
        if known.standing(self._world, suspect.data.attachment["instance"]) is Standing.GONE:
            self._world.clients.cinder.attachment_delete(self._ctxt, suspect.key)
