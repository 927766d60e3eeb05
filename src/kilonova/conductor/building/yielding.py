"""Leaving a build to a conductor of Nova's that may have its cast.

Our API puts a flow down and casts. When no conductor of ours got the cast within the grace, it was lost, or one of
Nova's has it and leaves no word in flows: two that build the same server would both claim in Placement.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kilonova.base import clock
from kilonova.clients.http import ServiceError
from kilonova.conductor.building import resources
from kilonova.conductor.world import World, context
from kilonova.contract import exceptions
from kilonova.flow.plan import Again
from kilonova.flow.run import Run

LOG = logging.getLogger(__name__)

PATIENCE = 600.0
"""Seconds without any progress after which a peer that may have the cast counts as lost. Far beyond what choosing one
host takes it: what it claims, and what it finishes, is progress.
"""

SHORTEST, LONGEST = 2.0, 30.0
"""Seconds between two looks: a quarter of the flow's age, within these bounds."""


def give_way(run: Run, wanted: Sequence[str]) -> None:
    """Raises Again while a peer's conductor may be at work on the servers that are still `wanted`."""
    world: World = run.world
    age = clock.seconds() - run.row.created_at / 1000
    if not world.peers.near(since=clock.monotonic() - age):
        return
    seen = [len(wanted), _claimed(run, wanted)]
    left = run.frame.get("left")
    if left is None or left["seen"] != seen:
        run.frame["left"] = {"seen": seen, "since": clock.seconds()}
    elif clock.seconds() - left["since"] > PATIENCE:
        LOG.warning("build of server %s: no sign of a peer's conductor for %.0f s", run.subject_id, PATIENCE)
        return
    raise Again("a conductor of Nova's may have taken it", min(LONGEST, max(SHORTEST, age / 4)))


def _claimed(run: Run, wanted: Sequence[str]) -> int:
    """For how many of the servers, which are claimed for in this order, something is claimed."""
    before, counted = run.frame.get("left", {}).get("seen", [len(wanted), 0])
    claimed = max(0, counted - (before - len(wanted)))
    own = resources.serving(context(run))
    try:
        while claimed < len(wanted) and run.world.clients.placement.allocations_get(own, wanted[claimed]).allocations:
            claimed += 1
    except (ServiceError, exceptions.NovaException) as exc:
        # A look that fails says nothing.
        LOG.warning("what is claimed for server %s could not be read: %s", wanted[claimed], exc)
    return claimed
