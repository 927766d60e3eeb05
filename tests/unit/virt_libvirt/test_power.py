"""Switching off: asking first, asking again, and cutting the power."""

import libvirt
import pytest
from tests.waiting import of_this_thread

from kilonova.contract import exceptions
from kilonova.contract.states import Power
from kilonova.virt.libvirt import power
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.guest import Guest


def error(code):
    made = libvirt.libvirtError("test")
    made.err = (code, libvirt.VIR_FROM_QEMU, "test", 2, None, None, None, -1, -1)
    return made


class Domain:
    """A guest that obeys after `obeys` requests; its process dies after `dies` attempts."""

    def __init__(self, obeys=None, dies=1, state=libvirt.VIR_DOMAIN_RUNNING):
        self.obeys, self.dies, self.now = obeys, dies, state
        self.asked = self.cut = 0

    def state(self):
        return [self.now, 0]

    def ID(self):
        return 5 if self.now == libvirt.VIR_DOMAIN_RUNNING else -1

    def UUIDString(self):
        return "u"

    def shutdown(self):
        self.asked += 1
        if self.obeys is not None and self.asked >= self.obeys:
            self.now = libvirt.VIR_DOMAIN_SHUTOFF

    def destroy(self):
        self.cut += 1
        if self.now == libvirt.VIR_DOMAIN_SHUTOFF:
            raise error(libvirt.VIR_ERR_OPERATION_INVALID)
        if self.cut < self.dies:
            raise error(libvirt.VIR_ERR_OPERATION_TIMEOUT)
        self.now = libvirt.VIR_DOMAIN_SHUTOFF


class OneDomain(Connection):
    def __init__(self, domain):
        super().__init__("test", "host")
        self._domain = domain

    def get(self):
        return self

    def lookupByUUIDString(self, uuid):
        if self._domain is None:
            raise error(libvirt.VIR_ERR_NO_DOMAIN)
        return self._domain


@pytest.fixture
def time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.sleep", of_this_thread(lambda seconds: now.__setitem__(0, now[0] + seconds)))
    return {"now": lambda: now[0], "sleep": lambda seconds: now.__setitem__(0, now[0] + seconds)}


def guest(domain):
    return Guest(OneDomain(domain), "u")


def test_a_guest_that_obeys(time):
    domain = Domain(obeys=1)
    assert power.shut_down(guest(domain), 60, 10, **time)
    assert (domain.asked, domain.cut) == (1, 0)


def test_a_guest_that_was_not_listening_is_asked_again(time):
    domain = Domain(obeys=3)
    assert power.shut_down(guest(domain), 60, 10, **time)
    assert domain.asked == 3
    assert 20 <= time["now"]() <= 21


def test_a_guest_that_never_obeys(time):
    domain = Domain()
    assert not power.shut_down(guest(domain), 30, 10, **time)
    assert domain.asked == 4
    assert time["now"]() <= 31


def test_a_guest_that_is_off_is_not_asked(time):
    domain = Domain(state=libvirt.VIR_DOMAIN_SHUTOFF)
    assert power.shut_down(guest(domain), 30, 10, **time)
    assert domain.asked == 0


def test_a_guest_that_is_gone_is_off(time):
    assert power.shut_down(guest(None), 30, 10, **time)
    power.off(guest(None), 0, 0)


def test_without_time_the_power_is_cut_at_once(time):
    domain = Domain()
    power.off(guest(domain), 0, 0)
    assert (domain.asked, domain.cut) == (0, 1)


def test_cutting_the_power_of_a_guest_that_is_off(time):
    power.off(guest(Domain(state=libvirt.VIR_DOMAIN_SHUTOFF)), 0, 0)


def test_a_process_that_takes_its_time(time):
    domain = Domain(dies=3)
    power.off(guest(domain), 0, 0)
    assert domain.now == libvirt.VIR_DOMAIN_SHUTOFF


def test_a_process_that_does_not_end(time):
    with pytest.raises(exceptions.InstancePowerOffFailure):
        power.off(guest(Domain(dies=100)), 0, 0)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (libvirt.VIR_DOMAIN_NOSTATE, Power.PENDING),
        (libvirt.VIR_DOMAIN_RUNNING, Power.RUNNING),
        (libvirt.VIR_DOMAIN_BLOCKED, Power.RUNNING),
        (libvirt.VIR_DOMAIN_PAUSED, Power.PAUSED),
        (libvirt.VIR_DOMAIN_SHUTDOWN, Power.SHUTDOWN),
        (libvirt.VIR_DOMAIN_SHUTOFF, Power.SHUTDOWN),
        (libvirt.VIR_DOMAIN_CRASHED, Power.CRASHED),
        (libvirt.VIR_DOMAIN_PMSUSPENDED, Power.SUSPENDED),
    ],
)
def test_power_states(state, expected):
    assert guest(Domain(state=state)).info().power_state == expected


def test_an_unknown_guest():
    assert not guest(None).exists()
    with pytest.raises(exceptions.InstanceNotFound):
        guest(None).info()
