"""Counting again after the fact: of requests that raced past the API's check, those over the limit are taken back."""

from __future__ import annotations

from kilonova.conductor.world import World
from kilonova.contract import objects
from kilonova.contract.context import RequestContext


def recheck(world: World, ctxt: RequestContext, spec: objects.RequestSpec, count: int) -> None:
    """Raise TooManyInstances when the project or user is over its limit now, the new servers included."""
    if world.recheck is not None and world.conf.quota.recheck_quota:
        world.recheck(ctxt, spec, count)
