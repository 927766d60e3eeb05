"""Each of Nova's periodic tasks that we say we do has a timer, and the timer obeys the task's option."""

from __future__ import annotations

import pytest
from tests.unit.compute.world import World

from kilonova.cmd.contract_parts import DUTIES, Duty
from kilonova.reconcile.host import loops

OF_HOSTS = [duty for duty in DUTIES if duty.manager == "ComputeManager"]


def spacing(world: World, duty: Duty) -> float | None:
    """Seconds between two runs of the timer of a host that starts now; None when there is none."""
    host = world.host(loops=loops.make)
    found = {timer.name: timer.spacing for timer in host.agent.timers.timers}
    world.stop()
    return found.get(duty.timer)


@pytest.fixture
def quiet(world: World) -> World:
    """Timers are there, but have not begun."""
    world.set(periodic_enable=True, periodic_fuzzy_delay=60, instance_build_timeout=3600)
    return world


@pytest.mark.parametrize("duty", [duty for duty in OF_HOSTS if duty.option], ids=lambda duty: duty.task)
def test_the_timer_obeys_the_option(quiet: World, duty: Duty) -> None:
    for value, expected in ((7, 7), (-1, None), (0, None if duty.zero_is_never else 60)):
        quiet.set(**{str(duty.option): value})
        assert spacing(quiet, duty) == expected, value


@pytest.mark.parametrize("duty", [duty for duty in OF_HOSTS if not duty.option], ids=lambda duty: duty.task)
def test_the_timer_is_there(quiet: World, duty: Duty) -> None:
    assert spacing(quiet, duty) == 60
