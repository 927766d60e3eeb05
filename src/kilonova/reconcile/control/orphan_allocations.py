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
    """Looks at what is taken from the providers of all nodes (roots and what is below them)."""

    name = "orphan_allocations"

    def __init__(self, world: World) -> None:
        self._world = world
        self._ctxt = context.admin()

    def find(self) -> Iterable[Held]:
        holders: dict[str, str] = {}
        for node in self._nodes():
            for provider in self._world.clients.placement.provider_tree(self._ctxt, node):
                for consumer in self._taken(provider.uuid):
                    holders[consumer] = provider.uuid
        traces = known.look(self._world, holders)
        return [Held(consumer, provider, traces[consumer]) for consumer, provider in holders.items()]

    def _nodes(self) -> set[str]:
        answers = self._world.cells.scatter(lambda cell: cell.database.query(explanations.node_uuids))
        return {node for answer in answers.values() if not isinstance(answer, CellDown) for node in answer}

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
                suspects.append(Suspect(held.consumer, harm, repairable=standing is not Standing.FOREIGN))
        return suspects

    def repair(self, suspect: Suspect) -> None:
        if known.standing(self._world, suspect.key) in (Standing.GONE, Standing.FAILED):
            self._world.clients.placement.allocations_delete(self._ctxt, suspect.key)
