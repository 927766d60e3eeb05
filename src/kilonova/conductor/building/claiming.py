"""One server, one claim, on its host: compared before the host is asked, and at the end where two may have chosen."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from kilonova.conductor import records
from kilonova.conductor.building import resources
from kilonova.conductor.world import Place, context
from kilonova.contract import objects
from kilonova.contract.states import VM, Task
from kilonova.flow.run import Run

LOG = logging.getLogger(__name__)


class LostClaimError(Exception):
    """The host is not to be asked: nothing is claimed for the server there, or can be."""


def hold(run: Run, server: objects.Instance, chosen: objects.Selection) -> None:
    """Make sure that what is claimed for the server is claimed on this host. Raises LostClaimError.

    A message that came twice, or a worker that was believed dead, may have had hosts chosen a second time since. Where
    nothing is claimed, this is a repeat and the host gave the server back: it is not to be asked again.
    """
    if _wanted(chosen) is None:
        return
    held = _held(run, server)
    if not held:
        raise LostClaimError(f"what was claimed on host {chosen.service_host} is gone")
    if not _is_on(held, chosen):
        LOG.warning("server %s goes to host %s, its claim is elsewhere: %s", server.uuid, chosen.service_host, held)
        _claim_anew(run, server, chosen)


def settle(run: Run, place: Place, candidates: Sequence[objects.Selection]) -> None:
    """The claim follows the server to whichever of the candidates built it; it ends with one that is gone, or failed.

    A host that had no room by the books keeps the server all the same: it runs there.
    """
    server = place.database.query(records.look, run.subject_id)
    chosen = next((each for each in candidates if server is not None and each.service_host == server.host), None)
    if server is not None and chosen is not None and not _is_on(_held(run, server), chosen):
        try:
            _claim_anew(run, server, chosen)
        except LostClaimError as exc:
            LOG.error("server %s runs without a claim: %s", server.uuid, exc)
        # Its host may have let go of the claim meanwhile, because its user deleted it.
        server = place.database.query(records.look, run.subject_id)
    if server is None or _ends(server):
        run.guard()
        resources.release_allocations(run.world, context(run), run.subject_id)


def _claim_anew(run: Run, server: objects.Instance, chosen: objects.Selection) -> None:
    own = resources.serving(context(run))
    run.guard()
    resources.release_allocations(run.world, own, server.uuid)
    wanted = _wanted(chosen)
    if not run.world.clients.placement.claim(own, server.uuid, wanted, server.project_id, server.user_id):
        raise LostClaimError(f"host {chosen.service_host} has no room any more")


def _held(run: Run, server: objects.Instance) -> set[str]:
    """Providers that something is claimed of for the server."""
    own = resources.serving(context(run))
    return set(run.world.clients.placement.allocations_get(own, server.uuid).allocations)


def _is_on(held: set[str], chosen: objects.Selection) -> bool:
    """A host that was chosen without Placement has no say in it."""
    wanted = _wanted(chosen)
    return wanted is None or held == set(wanted["allocations"])


def _ends(server: objects.Instance) -> bool:
    return (server.vm_state == VM.ERROR and server.host is None) or server.task_state == Task.DELETING


def _wanted(chosen: objects.Selection) -> Any:
    return json.loads(chosen.allocation_request) if chosen.allocation_request else None
