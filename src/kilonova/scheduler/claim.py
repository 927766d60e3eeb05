"""Claims: taking the chosen host's resources in Placement, and giving them back.

Placement decides races. A consumer that holds something already is either moving
(it is on a host: source and destination are then held together) or was claimed
for by an earlier try of the same build (which the new claim replaces).

Claims on the same provider take turns within a process. Placement on MySQL, when two of its requests meet on a
provider, repeats the later one inside the transaction that it has begun, which does not see what the earlier one
took: it gives out more than there is. Several scheduler processes can still meet; in Placement's own configuration
`[placement] allocation_conflict_retry_count = 1` leaves the repeating to its clients, who begin anew.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

from kilonova.base import retry
from kilonova.base.stripes import Stripes
from kilonova.clients.http import ServiceError
from kilonova.clients.placement.client import AllocationConflict, Allocations, Placement
from kilonova.contract.context import RequestContext
from kilonova.scheduler.snapshot.host import Host

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Claim:
    """What was taken for a server, and what it held before (nothing for a new one)."""

    instance_uuid: str
    host: Host
    allocation_request: Mapping[str, Any]
    before: Allocations | None = None


class Claims:
    """The claims of one call to select destinations, undone together."""

    def __init__(self, placement: Placement, turns: Stripes, ctxt: RequestContext, project: str, user: str) -> None:
        self._placement = placement
        self._turns = turns
        self._ctxt = ctxt
        self._project = project
        self._user = user
        self.made: list[Claim] = []

    def take(self, instance_uuid: str, host: Host, request: Mapping[str, Any], *, moving: bool) -> bool:
        """False when the host has no room any more. Raises AllocationConflict while somebody else changes the claim."""
        with self._turns.held(request["allocations"]):
            taken, before = self._take(instance_uuid, request, moving=moving)
        if taken:
            self.made.append(Claim(instance_uuid, host, request, before if moving else None))
        return taken

    def _take(self, instance_uuid: str, request: Mapping[str, Any], *, moving: bool) -> tuple[bool, Allocations | None]:
        try:
            taken = self._placement.claim(self._ctxt, instance_uuid, request, self._project, self._user)
        except AllocationConflict:
            return retry.call(
                lambda: self._beside(instance_uuid, request, moving=moving),
                on=(AllocationConflict,),
                backoff=retry.Backoff(attempts=3, base=0.1, cap=1.0),
            )
        return taken, None

    def _beside(self, instance_uuid: str, request: Mapping[str, Any], *, moving: bool) -> tuple[bool, Allocations]:
        held = self._placement.allocations_get(self._ctxt, instance_uuid)
        wanted = {provider: dict(each["resources"]) for provider, each in request["allocations"].items()}
        together = merged(held.resources(), wanted) if moving else wanted
        body = {provider: {"resources": resources} for provider, resources in together.items()}
        project, user = held.project_id or self._project, held.user_id or self._user
        taken = self._placement.allocations_put(self._ctxt, instance_uuid, body, project, user, held.generation)
        return taken, held

    def undo(self) -> list[Claim]:
        """Give all back. What cannot be given back now is logged, and found by the orphan_allocations loop."""
        undone, self.made = self.made, []
        for claim in undone:
            try:
                self._give_back(claim)
            except ServiceError:
                LOG.exception("cannot give back the allocation of server %s", claim.instance_uuid)
        return undone

    def _give_back(self, claim: Claim) -> None:
        if claim.before is None or not claim.before.allocations:
            self._placement.allocations_delete(self._ctxt, claim.instance_uuid, force=True)
            return
        now = self._placement.allocations_get(self._ctxt, claim.instance_uuid)
        self._placement.allocations_put(
            self._ctxt,
            claim.instance_uuid,
            claim.before.allocations,
            claim.before.project_id or self._project,
            claim.before.user_id or self._user,
            now.generation,
        )


def merged(held: Mapping[str, Mapping[str, int]], wanted: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Both together; amounts of the same class on the same provider are added."""
    out = {provider: dict(resources) for provider, resources in held.items()}
    for provider, resources in wanted.items():
        mine = out.setdefault(provider, {})
        for name, amount in resources.items():
            mine[name] = mine.get(name, 0) + amount
    return out
