"""What guests do by themselves, as the agent hears of it."""

import threading
import time

import libvirt
import pytest

from kilonova.virt.driver import GuestChange, GuestEvent
from kilonova.virt.libvirt.events import Events, change_of


@pytest.fixture
def heard():
    return []


@pytest.fixture
def events(heard):
    made = Events(heard.append, stop_delay=0.15)
    made.start()
    yield made
    made.stop()


def until(condition, seconds=3.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_a_stop_is_told_when_nothing_follows(events, heard):
    events.put(GuestEvent("a", GuestChange.STOPPED))
    time.sleep(0.05)
    assert heard == []
    assert until(lambda: heard == [GuestEvent("a", GuestChange.STOPPED)])


def test_a_stop_that_is_followed_by_a_start_was_a_reboot(events, heard):
    events.put(GuestEvent("a", GuestChange.STOPPED))
    events.put(GuestEvent("b", GuestChange.STOPPED))
    events.put(GuestEvent("a", GuestChange.STARTED))
    assert until(lambda: GuestEvent("b", GuestChange.STOPPED) in heard)
    assert GuestEvent("a", GuestChange.STOPPED) not in heard
    assert GuestEvent("a", GuestChange.STARTED) in heard


def test_others_are_told_at_once_and_in_order(events, heard):
    changes = [GuestChange.STARTED, GuestChange.PAUSED, GuestChange.RESUMED]
    for change in changes:
        events.put(GuestEvent("a", change))
    assert until(lambda: [event.change for event in heard] == changes, 0.1)


def test_a_handler_that_fails_hears_the_next_one():
    heard = []

    def handle(event):
        heard.append(event.uuid)
        raise RuntimeError("broken")

    events = Events(handle)
    events.start()
    events.put(GuestEvent("a", GuestChange.STARTED))
    events.put(GuestEvent("b", GuestChange.STARTED))
    assert until(lambda: heard == ["a", "b"])
    events.stop()


def test_stopping_does_not_wait_for_held_back_events(heard):
    events = Events(heard.append, stop_delay=60)
    events.start()
    events.put(GuestEvent("a", GuestChange.STOPPED))
    started = time.monotonic()
    events.stop()
    assert time.monotonic() - started < 1
    assert heard == []


def test_a_handler_may_stop_the_events():
    done = threading.Event()

    def handle(event):
        events.stop()
        done.set()

    events = Events(handle)
    events.start()
    events.put(GuestEvent("a", GuestChange.STARTED))
    assert done.wait(2)


@pytest.mark.parametrize(
    ("event", "detail", "change"),
    [
        (libvirt.VIR_DOMAIN_EVENT_STARTED, 0, GuestChange.STARTED),
        (libvirt.VIR_DOMAIN_EVENT_STOPPED, 0, GuestChange.STOPPED),
        (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_PAUSED, GuestChange.PAUSED),
        (
            libvirt.VIR_DOMAIN_EVENT_SUSPENDED,
            libvirt.VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY,
            GuestChange.POSTCOPY_STARTED,
        ),
        (
            libvirt.VIR_DOMAIN_EVENT_SUSPENDED,
            libvirt.VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED,
            GuestChange.MIGRATION_COMPLETED,
        ),
        (libvirt.VIR_DOMAIN_EVENT_DEFINED, 0, None),
        (libvirt.VIR_DOMAIN_EVENT_UNDEFINED, 0, None),
    ],
)
def test_names_of_events(event, detail, change):
    assert change_of(event, detail) == change
