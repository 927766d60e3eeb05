"""Guests that an agent of Nova's made, and that ours takes over."""

from types import SimpleNamespace

import pytest
from tests.fakes import guests

from kilonova.compute.events import ExternalEvents
from kilonova.compute.lanes import Preempted
from kilonova.contract import exceptions
from kilonova.virt.driver import Services
from kilonova.virt.libvirt import driver


@pytest.fixture
def made(conf, connection, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "Connection", lambda *_: connection)
    return driver.LibvirtDriver(conf, "host", tmp_path, Services(None, ExternalEvents(cancelled=Preempted)))


@pytest.mark.parametrize("begin", ["power_on", "hard reboot"])
def test_a_guest_that_cannot_be_made_anew_stays(made, monkeypatch, begin):
    destroyed = []
    monkeypatch.setattr(made, "destroy", lambda *args, **_: destroyed.append(args))
    monkeypatch.setattr(made, "_guest", lambda uuid: SimpleNamespace(exists=lambda: False))
    flavor = guests.flavor(extra_specs={"hw:numa_nodes": "2"})
    spec = guests.spec(instance=guests.instance(flavor=flavor))
    with pytest.raises(exceptions.Invalid, match="NUMA nodes"):
        made.power_on(None, spec) if begin == "power_on" else made.reboot(None, spec, hard=True)
    assert destroyed == []


def test_what_is_not_built_is_said_before_the_start(conf):
    assert list(driver.LibvirtDriver.wrong(conf)) == []
    conf.set_override("virt_type", "lxc", "libvirt")
    conf.set_override("images_type", "rbd", "libvirt")
    assert list(driver.LibvirtDriver.wrong(conf)) == [
        "[libvirt] virt_type lxc is not supported; it can be kvm, qemu",
        "[libvirt] images_type rbd is not supported; it can be default, qcow2, raw, flat",
    ]
