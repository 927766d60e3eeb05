"""The metadata documents against the contract: listings, files, keys and their shapes, per version."""

import json

import pytest
from tests.contract import facts as novas

from kilonova.metadata import ec2
from kilonova.metadata.configdrive import drive_files
from kilonova.metadata.documents import VERSIONS, Documents, NotThere, VendorData
from kilonova.metadata.instance_data import Device, Ec2Facts, Ec2Ids, InstanceData, KeyPair
from kilonova.metadata.interfaces import interfaces_file
from kilonova.metadata.network_data import network_data

FACTS = novas.load("metadata")

SUBNET = {
    "cidr": "10.0.0.0/24",
    "version": 4,
    "gateway": {"address": "10.0.0.1"},
    "dns": [{"address": "8.8.8.8"}],
    "routes": [{"cidr": "192.168.1.0/24", "gateway": {"address": "10.0.0.254"}}],
    "ips": [
        {
            "address": "10.0.0.5",
            "version": 4,
            "type": "fixed",
            "floating_ips": [{"address": "172.24.4.5", "version": 4, "type": "floating"}],
        }
    ],
    "meta": {},
}
SUBNET6 = {
    "cidr": "fd00::/64",
    "version": 6,
    "gateway": {"address": "fd00::1"},
    "dns": [{"address": "fd00::8"}],
    "routes": [],
    "ips": [{"address": "fd00::5", "version": 6, "type": "fixed", "floating_ips": []}],
    "meta": {},
}


def vif(*subnets):
    return {
        "id": "vif1",
        "type": "ovs",
        "devname": "tap1",
        "address": "fa:16:3e:00:00:01",
        "network": {"id": "net1", "subnets": list(subnets), "meta": {"mtu": 1450}},
    }


EC2 = (["default"], {"ami": "vda", "root": "/dev/vda"})
MINIMAL = InstanceData(
    uuid="u",
    project_id="p",
    hostname="h",
    display_name="d",
    launch_index=0,
    availability_zone="nova",
    reservation_id="r-1",
    flavor_name="m1",
    ec2=lambda: Ec2Facts(Ec2Ids("i-00000001", "ami-00000001"), *EC2),
    network_info=[vif(SUBNET)],
)
FULL = InstanceData(
    **{
        **vars(MINIMAL),
        "ec2": lambda: Ec2Facts(Ec2Ids("i-00000001", "ami-00000001", "aki-00000001", "ari-00000001"), *EC2),
        "key_name": "k",
        "key_data": "ssh-rsa A",
        "keypair": KeyPair("k", "ssh", "ssh-rsa A"),
        "metadata": {"a": "b"},
        "user_data": b"data",
        "files": [("/etc/x", b"x")],
        "dedicated_cpus": [1, 2],
        "devices": [
            Device("nic", "pci", "0000:00:03.0", ["t"], {"mac": "fa", "vlan": 7, "vf_trusted": True}),
            Device("disk", "ide", "none", ["d"], {"serial": "s", "path": "/dev/vda"}),
            Device("share", "none", "none", None, {"share_id": "x", "tag": "y"}),
        ],
    }
)
SERVERS = {
    "full": Documents(FULL, VendorData({}), "novalocal", b"network config"),
    "minimal": Documents(MINIMAL, VendorData({}), "novalocal", b"network config"),
}


def shape(value):
    """The contract's notation: type names, lists with the shapes of their elements, dictionaries by key."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return ["list", *({json.dumps(shape(each), sort_keys=True): shape(each) for each in value}.values())]
    return type(value).__name__


def normal(expected):
    """Device shapes without the keys some device of the kind may leave out in our sample."""
    return {**expected, "devices": ["list"]} if "devices" in expected else expected


@pytest.mark.parametrize("kind", ["full", "minimal"])
@pytest.mark.parametrize("version", [*VERSIONS, "latest"])
def test_openstack_version(version, kind):
    expected = FACTS["openstack"][version][kind]
    served = SERVERS[kind]
    assert served.lookup(f"/openstack/{version}").body.decode().split("\n") == expected["listing"]
    for name, facts in expected["files"].items():
        document = served.lookup(f"/openstack/{version}/{name}")
        assert document.content_type == facts.get("content_type", "text/plain"), name
    document = json.loads(served.lookup(f"/openstack/{version}/meta_data.json").body)
    keys = expected["files"]["meta_data.json"]["keys"]
    assert set(document) == set(keys)
    assert normal(shape(document)) == {
        **normal(keys),
        **{name: shape(document[name]) for name in ("files", "keys", "meta", "dedicated_cpus") if name in keys},
    }


@pytest.mark.parametrize("version", [*VERSIONS, "latest"])
def test_devices_have_the_contracts_keys(version):
    document = json.loads(SERVERS["full"].lookup(f"/openstack/{version}/meta_data.json").body)
    expected = FACTS["openstack"][version]["full"]["files"]["meta_data.json"]["keys"].get("devices")
    if expected is None:
        assert "devices" not in document
        return
    assert {each["type"]: set(each) for each in document["devices"]} == {
        "nic" if "mac" in each else "share" if "share_id" in each else "disk": set(each) for each in expected[1:]
    }


@pytest.mark.parametrize("kind", ["full", "minimal"])
@pytest.mark.parametrize("version", [*ec2.VERSIONS, "latest"])
def test_ec2_version(version, kind):
    expected = FACTS["ec2"][version][kind]
    served = SERVERS[kind]
    assert served.lookup(f"/{version}").body.decode() == expected["printed_root"]
    assert served.lookup(f"/{version}/meta-data").body.decode().split("\n") == expected["printed_meta_data"]
    tree = ec2.tree(served.data, served.hostname, version)
    assert set(tree) == set(expected["keys"])
    assert set(tree["meta-data"]) == set(expected["keys"]["meta-data"])


@pytest.mark.parametrize("path", sorted(FACTS["paths"]))
def test_path(path):
    facts = FACTS["paths"][path]
    if facts.get("status") == 404:
        with pytest.raises(NotThere):
            SERVERS["full"].lookup(path)
        return
    document = SERVERS["full"].lookup(path)
    assert document.content_type == facts["content_type"]
    if not facts["printed"].startswith("("):
        assert document.body.decode() == facts["printed"]


def test_config_drive_files():
    skipped = frozenset(FACTS["config_drive_skip_versions_default"].split())
    assert sorted(drive_files(SERVERS["full"], skipped)) == sorted(FACTS["config_drive_files_default"])


DHCP4 = {**SUBNET, "meta": {"dhcp_server": "10.0.0.2"}}
SLAAC6 = {**SUBNET6, "meta": {"ipv6_address_mode": "slaac", "dhcp_server": "fd00::2"}}


@pytest.mark.parametrize(
    ("name", "vifs"),
    [
        ("none", []),
        ("static v4", [vif(SUBNET)]),
        ("static dual stack", [vif(SUBNET, SUBNET6)]),
        ("dhcp", [vif(DHCP4, SLAAC6)]),
    ],
)
def test_network_data(name, vifs):
    assert (network_data(vifs) or {}) == FACTS["network_data_examples"][name]["doc"]


@pytest.mark.parametrize("meta", [{"dhcp_server": "10.0.0.2"}, {"enable_dhcp": True}, {"enable_dhcp": False}, {}])
def test_all_documents_agree_on_who_tells_the_settings(meta):
    """With OVN no port tells of a DHCP server; the subnet says that there is one."""
    served = bool(meta.get("dhcp_server") or meta.get("enable_dhcp"))
    made = vif({**SUBNET, "meta": meta})
    made["network"]["meta"]["injected"] = True
    found = network_data([made])
    assert found["networks"][0]["type"] == ("ipv4_dhcp" if served else "ipv4")
    assert found["links"][0]["mtu"] == (None if served else 1450)
    assert (interfaces_file([made]) is None) is served


def test_network_data_obeys_the_published_schema():
    import jsonschema

    jsonschema.validate(network_data([vif(SUBNET, SUBNET6)]), FACTS["network_data_schema"])
