"""Counting again after the fact: of requests that raced past the API's check, the later ones are taken back."""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.conductor.world import World
from kilonova.contract import objects
from kilonova.contract.context import RequestContext


def recheck(world: World, ctxt: RequestContext, spec: objects.RequestSpec, uuids: Sequence[str]) -> None:
    """Raise TooManyInstances when the project or user is over its limit with these servers and those before them."""
    if world.recheck is not None and world.conf.quota.recheck_quota:
        world.recheck(ctxt, spec, uuids)
