"""Ports as os-vif's objects, and which of them are plugged by whom."""

import subprocess

import os_vif
import os_vif.exception
import pytest
from tests.fakes import guests

from kilonova.contract import exceptions
from kilonova.virt.libvirt import network, tap

OWNER = network.Owner("00000000-0000-0000-0000-000000000001", "instance-00000001", "p")


@pytest.fixture(autouse=True)
def plugins():
    network.initialize()


@pytest.fixture
def plugged(monkeypatch):
    seen = []
    monkeypatch.setattr(os_vif, "plug", lambda vif, owner: seen.append((vif, owner)))
    return seen


def test_an_ovs_port(plugged):
    port = guests.ovs_port()
    network.plug([port], OWNER)
    vif, owner = plugged[0]
    assert type(vif).__name__ == "VIFOpenVSwitch"
    assert vif.vif_name == port["devname"]
    assert vif.bridge_name == vif.network.bridge == "br-int"
    assert vif.port_profile.interface_id == port["id"]
    assert vif.port_profile.datapath_type == "netdev"
    assert vif.port_profile.create_port
    assert vif.network.mtu == 1450
    assert (owner.uuid, owner.name, owner.project_id) == (OWNER.uuid, OWNER.name, "p")


def test_a_hybrid_port(plugged):
    port = guests.ovs_port(details={"ovs_hybrid_plug": True})
    network.plug([port], OWNER)
    vif = plugged[0][0]
    assert type(vif).__name__ == "VIFBridge"
    assert vif.bridge_name == f"qbr{port['id']}"[:14]


def test_a_tap_made_beforehand_has_the_guests_queues(plugged):
    port = guests.ovs_port(details={"ovs_create_tap": True})
    network.plug([port], OWNER, multiqueue=True)
    profile = plugged[0][0].port_profile
    assert profile.create_tap
    assert profile.multiqueue


def test_a_routed_port_is_a_tap(monkeypatch, plugged):
    made = []
    monkeypatch.setattr(tap, "create", lambda *args: made.append(args))
    monkeypatch.setattr(tap, "delete", lambda name: made.append(name))
    port = guests.ovs_port(type="tap")
    network.plug([port], OWNER)
    network.unplug([port], OWNER)
    assert made == [(port["devname"], False, 1450), port["devname"]]
    assert plugged == []


def test_a_switch_that_refuses(monkeypatch):
    def refuse(vif, owner):
        raise os_vif.exception.PlugException(vif=vif, err="no")

    monkeypatch.setattr(os_vif, "plug", refuse)
    with pytest.raises(exceptions.VirtualInterfacePlugException, match="no"):
        network.plug([guests.ovs_port()], OWNER)


def test_a_tap_that_cannot_be_made(monkeypatch):
    def fail(*_):
        raise subprocess.CalledProcessError(2, "ip", stderr=b"Operation not permitted")

    monkeypatch.setattr(tap, "create", fail)
    with pytest.raises(exceptions.VirtualInterfacePlugException, match="not permitted"):
        network.plug([guests.ovs_port(type="tap")], OWNER)


def test_unplugging_goes_on_past_failures(monkeypatch):
    seen = []

    def unplug(vif, owner):
        seen.append(vif.id)
        if len(seen) == 1:
            raise os_vif.exception.UnplugException(vif=vif, err="busy")

    monkeypatch.setattr(os_vif, "unplug", unplug)
    ports = [guests.ovs_port(), guests.ovs_port(type="binding_failed"), guests.ovs_port()]
    failures = network.unplug(ports, OWNER)
    assert seen == [ports[0]["id"], ports[2]["id"]]
    assert len(failures) == 1
    assert ports[0]["id"] in failures[0]


@pytest.mark.parametrize("vnic", ["direct", "macvtap", "vdpa", "remote-managed"])
def test_hardware_ports_are_refused(vnic):
    with pytest.raises(exceptions.VirtualInterfacePlugException, match=vnic):
        network.kind_of(guests.ovs_port(vnic_type=vnic))


def test_only_ports_that_are_down_are_waited_for():
    down, up, unknown = guests.ovs_port(), guests.ovs_port(active=True), guests.ovs_port()
    del unknown["active"]
    assert network.events_of([down, up, unknown]) == [("network-vif-plugged", down["id"])]


@pytest.mark.parametrize(
    ("properties", "specs", "vcpus", "expected"),
    [
        ({}, {}, 4, False),
        ({"hw_vif_multiqueue_enabled": True}, {}, 4, True),
        ({"hw_vif_multiqueue_enabled": True}, {}, 1, False),
        ({}, {"hw:vif_multiqueue_enabled": "yes"}, 2, True),
    ],
)
def test_multiqueue(properties, specs, vcpus, expected):
    assert network.wants_multiqueue(properties, specs, vcpus) is expected
