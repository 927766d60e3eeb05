"""Cinder has a volume attached to a server that has ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kilonova.base import ids
from kilonova.contract import context
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Standing, Traces, World
from kilonova.reconcile.loop import Loop, Suspect


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
        listed = self._world.clients.cinder.attachments(self._ctxt, all_tenants=1)
        attachments = [each for each in listed if ids.is_uuid(each.get("instance") or "")]
        traces = known.look(self._world, [each["instance"] for each in attachments])
        return [Held(each, traces[each["instance"]]) for each in attachments]

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
