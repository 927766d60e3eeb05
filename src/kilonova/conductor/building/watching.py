"""Resting until the server's record says how its build ended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kilonova.base import clock
from kilonova.conductor import records
from kilonova.conductor.building import resources, sending
from kilonova.conductor.failures import describe
from kilonova.conductor.hosts import Life
from kilonova.conductor.world import Place, World, context
from kilonova.contract import exceptions, objects
from kilonova.contract.states import VM, Task
from kilonova.flow import offers
from kilonova.flow.plan import Finish, Retry
from kilonova.flow.run import Run
from kilonova.flow.store import EventKind

LOG = logging.getLogger(__name__)

UNTIRING = Retry(on=(Exception,), but=(exceptions.BuildAbortException,), attempts=1_000_000, base=1.0, cap=30.0)
"""A look that fails (a database is away) says nothing about the build; the flow's deadline ends the watch."""

LATE = 60.0
"""Seconds after a build's deadline at which its flow ends whatever it waits for; a look, which says more, is first."""

SELDOM_LOOKS = 4
"""How many times the shortest pause the longest one is."""


class Next:
    """What the flow does when its cast has to be repeated, or when the host is lost before it took the server."""

    def resend(self, run: Run, place: Place) -> None:
        raise NotImplementedError

    def elsewhere(self, run: Run, place: Place, reason: str) -> None:
        raise NotImplementedError


def look(run: Run, place: Place, following: Next) -> bool:
    """One look at the server: True when its build ended (ACTIVE, or ERROR with the host's own fault).

    Raises Finish when there is nothing to wait for, BuildAbortException when the build was given up here: the server is
    in ERROR by then, and unwinding cleans up after it.
    """
    server = place.database.query(records.look, run.subject_id)
    if server is None:
        _gone(run, place)
        raise Finish("the server was deleted")
    if server.task_state in (Task.DELETING, Task.SOFT_DELETING):
        return False
    if server.vm_state != VM.BUILDING:
        return True
    if later_try(run, place):
        if run.row.op == offers.RESCHEDULE:
            raise Finish("a later try has the server")
        return False
    if clock.seconds() > run.frame["deadline_at"]:
        return _give_up(run, place, "it did not come to an end in time")
    if records.waits_for_host(server):
        return _unanswered(run, place, following)
    return _building(run, place, server)


def later_try(run: Run, place: Place) -> bool:
    """Whether a younger try on an alternate is under way."""
    mine = run.frame.get("attempt", 0)
    tries = place.store.active(run.subject_id, offers.RESCHEDULE)
    return any(row.id != run.row.id and row.frame.get("attempt", 0) > mine for row in tries)


def _gone(run: Run, place: Place) -> None:
    """The user was faster. A host that still works on the server cleans up itself; what nobody holds is let go here."""
    world, ctxt = run.world, context(run)
    run.guard()
    resources.release_allocations(world, ctxt, run.subject_id)
    ended = place.database.query(records.look_back, run.subject_id)
    if ended is not None:
        resources.release_ports(world, ctxt, ended)


def project_of(run: Run) -> str | None:
    return run.row.project_id or run.frame["context"].get("project_id")


def _unanswered(run: Run, place: Place, following: Next) -> bool:
    world: World = run.world
    if run.frame["sent"]["host"] is None or not sending.due_again(run, world.conf.kilonova.flow_resend):
        return False
    host = run.frame["sent"]["host"]
    if not world.clients.placement.allocations_get(resources.serving(context(run)), run.subject_id).allocations:
        # Hosts release the claim before they give a server back; the cast that says so was lost.
        following.elsewhere(run, place, f"host {host} gave the server back")
        return False
    state = world.life(place, context(run), host)
    if state is Life.UNSURE:
        return False
    if state is Life.UP:
        following.resend(run, place)
        run.note(EventKind.RESENT, f"build_and_run_instance to {host}, time {run.frame['sent']['times']}")
    else:
        LOG.warning("host %s took no notice of server %s and is %s", host, run.subject_id, state)
        following.elsewhere(run, place, f"host {host} is {state}")
    return False


def _building(run: Run, place: Place, server: objects.Instance) -> bool:
    """A host has it. The host's journal finishes or reports after a restart; a host that stays away does not."""
    world: World = run.world
    down_time = world.conf.service_down_time
    if server.host is None or world.life(place, context(run), server.host) in (Life.UP, Life.UNSURE):
        run.frame.pop("down_since", None)
        return False
    since = run.frame.setdefault("down_since", clock.seconds())
    if clock.seconds() - since < down_time:
        return False
    return _give_up(run, place, f"host {server.host} stopped reporting while it built the server")


def _give_up(run: Run, place: Place, why: str) -> bool:
    error = exceptions.BuildAbortException(instance_uuid=run.subject_id, reason=why)
    if not place.database.run(records.fail, context(run), run.subject_id, describe(error), run.world.host):
        return False
    raise error


def revoke(run: Run, place: Place) -> bool:
    """First of all undoing after a cast: take the server back from whoever may still build it; see records.revoke."""
    assert run.failure is not None
    args = (context(run), run.subject_id, run.failure, run.world.host)
    run.frame["kept"] = not place.database.run(records.revoke, *args)
    return not run.frame["kept"]


def pause(run: Run) -> float:
    """Seconds between two looks, longer ones the longer the cast is ago: a cloud that is busy is not made busier."""
    shortest = float(run.world.conf.kilonova.flow_watch)
    return max(shortest, min(SELDOM_LOOKS * shortest, (clock.seconds() - run.frame["sent"]["at"]) / 2))


def deadline_at(seconds: float) -> Any:
    """The time, as frames keep it, so many seconds from now."""
    return clock.seconds() + seconds


def until_late(frame: Mapping[str, Any]) -> float:
    """Seconds from now until the deadline of a build's flow."""
    return float(max(0.0, frame["deadline_at"] - clock.seconds()) + LATE)
