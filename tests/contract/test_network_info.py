"""The network-info model has exactly Nova's keys and defaults."""

from __future__ import annotations

import pytest
from tests.contract import facts as novas

from kilonova.contract import network_info as ni


@pytest.fixture(scope="module")
def classes() -> dict:
    found: dict = novas.load("extra")["network_model"]["classes"]
    return found


def a_vif() -> ni.Vif:
    subnet = ni.subnet(
        "10.0.0.0/24",
        gateway="10.0.0.1",
        dns=["8.8.8.8"],
        routes=[ni.route("0.0.0.0/0", "10.0.0.1")],
        ips=[ni.fixed_ip("10.0.0.5", ["192.0.2.7"])],
    )
    network = ni.network("net", label="private", bridge="br-int", subnets=[subnet], mtu=1442)
    return ni.vif("1234567890abcdef", "fa:16:3e:00:00:01", network, type="ovs", ovs_interfaceid="1234567890abcdef")


def test_keys_are_novas(classes):
    vif = a_vif()
    network = vif["network"]
    subnet = network["subnets"][0]
    built = {
        "VIF": vif,
        "Network": network,
        "Subnet": subnet,
        "Route": subnet["routes"][0],
        "FixedIP": subnet["ips"][0],
        "IP": subnet["gateway"],
    }
    assert {name: set(entry) for name, entry in built.items()} == {name: set(classes[name]["keys"]) for name in built}


def test_device_name_fits_the_kernel():
    assert a_vif()["devname"] == "tap1234567890a"[: ni.NIC_NAME_LEN]


def test_addresses_list_fixed_before_floating():
    assert [each["address"] for each in ni.addresses(a_vif())] == ["10.0.0.5", "192.0.2.7"]


def test_survives_json():
    info = [a_vif()]
    assert ni.loads(ni.dumps(info)) == info
    assert ni.loads(None) == []


@pytest.mark.parametrize("text", ["10.0.0", "not an ip"])
def test_malformed_address_is_refused(text):
    with pytest.raises(ValueError):
        ni.fixed_ip(text)
