"""Which alternates the server's group allows; the first host was chosen with an eye to the group."""

from __future__ import annotations

from typing import Final

from kilonova.conductor.world import World
from kilonova.db import group_hosts
from kilonova.db.cells import Cells

PAUSE: Final = 2.0
"""Seconds until members that are on their way are looked at again."""


class Grouping:
    """Asked for one host after the other. `waits`: one was refused only for members that are not on their host yet."""

    def __init__(self, cells: Cells, uuid: str, members: group_hosts.Members | None) -> None:
        self._cells = cells
        self._uuid = uuid
        self._members = members
        self.waits = False

    def allows(self, host: str) -> bool:
        """Whether the server may go to the host; if so, others are told that it does."""
        if self._members is None:
            return True
        others = group_hosts.take(self._cells, self._members, {self._uuid: host})
        self.waits = self.waits or (bool(others) and others <= self._members.under_way)
        return not others


def of(world: World, uuid: str) -> Grouping:
    """The group of a server whose last host gave it back.

    Where there is no API database, nobody knows of groups: the hosts' own look must do. Raises CellUnknownError.
    """
    if not world.cells.has_api:
        return Grouping(world.cells, uuid, None)
    members = group_hosts.members_of(world.cells, uuid)
    if members is not None:
        group_hosts.forget(world.cells, [uuid])
    return Grouping(world.cells, uuid, members)
