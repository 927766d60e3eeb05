"""A volume of an ended server or a failed build is held still: Cinder was away, or refused to let it go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kilonova.clients.http import passes
from kilonova.reconcile.host.host import Host, Release
from kilonova.reconcile.loop import Loop, Suspect


class UnreleasedVolumes(Loop):
    """What the host owes is in its journal; what is done is not there any more."""

    name = "unreleased_volumes"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_away = False

    def find(self) -> Iterable[Release]:
        self._is_away = False
        return self._host.owed()

    def judge(self, found: Iterable[Release]) -> Sequence[Suspect]:
        return [
            Suspect(
                str(owed.id),
                f"volume {owed.name} of server {owed.instance_uuid} is not released ({owed.error or 'not tried yet'})",
                owed,
            )
            for owed in found
        ]

    def repair(self, suspect: Suspect) -> bool:
        """While Cinder is away one try in each pass is enough to know: each may wait long for an answer."""
        if self._is_away:
            return False
        try:
            return self._host.settle(suspect.data)
        except Exception as exc:
            self._is_away = passes(exc)
            raise
