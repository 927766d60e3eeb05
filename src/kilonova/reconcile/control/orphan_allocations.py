"""Placement holds resources of a host for a server that has ended, or that failed and is on no host."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from kilonova.clients.placement.client import ProviderMissing
from kilonova.contract import context
from kilonova.db.cell import explanations
from kilonova.db.cells import CellDown
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Standing, Traces, World
from kilonova.reconcile.loop import Loop, Suspect


@dataclasses.dataclass(frozen=True)
class Held:
    consumer: str
    provider: str
    traces: Traces


class OrphanAllocations(Loop):
    """Looks at what is taken from the providers of some nodes (roots and what is below them), in the order of their
    uuids, and at what the suspects of the last pass hold.
    """

    name = "orphan_allocations"

    def __init__(self, world: World) -> None:
        self._world = world
        self._ctxt = context.admin()

    def find(self) -> Iterable[Held]:
        most = self._world.conf.kilonova.reconcile_hosts
        nodes = self._nodes(most)
        holders = self._suspected(most)
        for node in nodes:
            for provider in self._world.clients.placement.provider_tree(self._ctxt, node):
                for consumer in self._taken(provider.uuid):
                    holders[consumer] = provider.uuid
        traces = known.look(self._world, holders)
        self.place = nodes[-1] if len(nodes) == most else None
        return [Held(consumer, provider, traces[consumer]) for consumer, provider in holders.items()]

    def _nodes(self, most: int) -> list[str]:
        """The next ones of all cells; those of a cell that does not answer have their turn in the next round."""
        answers = self._world.cells.scatter(
            lambda cell: cell.database.query(explanations.node_uuids_after, self.place, most)
        )
        found = {node for answer in answers.values() if not isinstance(answer, CellDown) for node in answer}
        return sorted(found)[:most]

    def _suspected(self, most: int) -> dict[str, str]:
        """Consumers that looked wrong in the last pass, and hold something still."""
        ours = [each for each in self.suspected if each.repairable][:most]
        placement = self._world.clients.placement
        return {
            each.key: each.data.provider for each in ours if placement.allocations_get(self._ctxt, each.key).allocations
        }

    def _taken(self, provider: str) -> Iterable[str]:
        try:
            return self._world.clients.placement.allocations_by_provider(self._ctxt, provider)
        except ProviderMissing:
            return ()

    def judge(self, found: Iterable[Held]) -> Sequence[Suspect]:
        suspects = []
        for held in found:
            standing = known.judge(held.traces)
            if standing in (Standing.GONE, Standing.FAILED, Standing.FOREIGN):
                harm = f"consumer {held.consumer} ({standing}) holds resources of provider {held.provider}"
                suspects.append(Suspect(held.consumer, harm, held, standing is not Standing.FOREIGN))
        return suspects

    def repair(self, suspect: Suspect) -> None:
        if known.standing(self._world, suspect.key) in (Standing.GONE, Standing.FAILED):
            self._world.clients.placement.allocations_delete(self._ctxt, suspect.key)
