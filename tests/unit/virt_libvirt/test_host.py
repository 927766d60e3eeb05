"""What the host says of itself, names, devices with tags, and volumes."""

from xml.etree import ElementTree as ET

import pytest
from oslo_config import cfg
from tests.fakes import guests

from kilonova.contract import exceptions, objects
from kilonova.virt.driver import BlockDevices, Volume
from kilonova.virt.libvirt import capabilities, console, device_metadata, disks, names, privileged, volumes
from kilonova.virt.libvirt.config.disk import NetworkSource


def test_processor_of_the_host(connection):
    info = capabilities.cpu_info(connection.capabilities, connection.host_features)
    assert info["arch"] == "x86_64"
    assert info["topology"] == {"cells": 1, "sockets": 1, "cores": 2, "threads": 2}
    assert info["features"] == ["aes", "avx", "svm"]
    assert info["maxphysaddr"] == {"mode": "emulate", "bits": 46}


def test_kinds_of_guests(connection):
    assert capabilities.supported_instances(connection.capabilities) == [
        ["x86_64", "qemu", "hvm"],
        ["x86_64", "kvm", "hvm"],
        ["aarch64", "qemu", "hvm"],
    ]


def test_traits(conf, connection, layout):
    from kilonova.virt.libvirt.cpu import Processors

    found = capabilities.HostFacts(conf, connection, layout, Processors(conf, connection)).traits()
    assert {
        "HW_ARCH_X86_64",
        "HW_CPU_X86_AVX",
        "HW_CPU_HYPERTHREADING",
        "COMPUTE_STORAGE_BUS_SATA",
        "COMPUTE_GRAPHICS_MODEL_VGA",
        "COMPUTE_NET_VIF_MODEL_E1000E",
        "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        "COMPUTE_SECURITY_STATELESS_FIRMWARE",
        "COMPUTE_ADDRESS_SPACE_EMULATED",
        "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    } <= found
    assert "COMPUTE_NET_VIF_MODEL_IGB" not in found
    assert "COMPUTE_ARCH_AARCH64" not in found


@pytest.mark.parametrize(
    ("template", "expected"),
    [("instance-%08x", "instance-0000002a"), ("%(hostname)s-%(id)d", "vm1-42"), ("%(nonsense)s", None)],
)
def test_names(conf, template, expected):
    conf.set_override("instance_name_template", template)
    instance = guests.instance(id=42)
    assert names.domain_name(conf, instance) == (expected or instance.uuid)


DOMAIN = """<domain><devices>
<disk type='block'><target dev='vdb' bus='virtio'/>
<address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/></disk>
<disk type='file'><target dev='hda' bus='ide'/><address type='drive' controller='0' bus='0' target='0' unit='0'/></disk>
<interface type='ethernet'><mac address='fa:16:3e:00:00:01'/>
<address type='pci' domain='0x0000' bus='0x00' slot='0x03' function='0x0'/></interface>
</devices></domain>"""


def tagged(**changes):
    return device_metadata.of(guests.spec(**changes), ET.fromstring(DOMAIN))


def test_a_tagged_interface():
    port = guests.ovs_port()
    found = tagged(network_info=[port], interface_tags={port["id"]: "mgmt"})
    (device,) = found.devices
    assert isinstance(device, objects.NetworkInterfaceMetadata)
    assert (device.mac, device.tags, device.bus.address) == ("fa:16:3e:00:00:01", ["mgmt"], "0000:00:03.0")


def test_a_tagged_volume():
    uuid = "11111111-1111-1111-1111-111111111111"
    volume = Volume(uuid, None, {}, "/dev/vdb", None, tag="db")
    (device,) = tagged(block_devices=BlockDevices(volumes=[volume])).devices
    assert (device.serial, device.path, device.tags) == (uuid, "/dev/vdb", ["db"])
    assert device.bus.address == "0000:00:05.0"


def test_a_tagged_disk_on_a_controller():
    volume = Volume("11111111-1111-1111-1111-111111111111", None, {}, "/dev/hda", None, tag="cd")
    (device,) = tagged(block_devices=BlockDevices(volumes=[volume])).devices
    assert isinstance(device.bus, objects.IDEDeviceBus)
    assert "address" not in device.bus


def test_devices_without_tags_are_not_told():
    volume = Volume("11111111-1111-1111-1111-111111111111", None, {}, "/dev/vdb", None)
    assert tagged(network_info=[guests.ovs_port()], block_devices=BlockDevices(volumes=[volume])) is None


def test_names_of_disks_go_on_after_z():
    found = list(disks.letters(30))
    assert found[:2] == ["a", "b"]
    assert found[25:28] == ["z", "aa", "ab"]


def test_too_many_disks(conf):
    hardware = disks.Hardware("x86_64", "pc", {"hw_disk_bus": "ide"})
    many = BlockDevices(volumes=[Volume(str(n), None, {}, None, None, disk_bus="ide") for n in range(4)])
    with pytest.raises(exceptions.TooManyDiskDevices):
        disks.plan(hardware, many, is_iso=False, ephemeral_gb=0, swap_mb=0, config_drive=None)
    conf.set_override("max_disk_devices_to_attach", 2, "compute")
    limited = disks.Hardware.of(conf, "x86_64", "pc", {})
    with pytest.raises(exceptions.TooManyDiskDevices, match="2"):
        disks.plan(limited, many, is_iso=False, ephemeral_gb=1, swap_mb=1, config_drive=None)


def test_names_that_are_taken_are_not_given_again():
    volume = Volume("v", None, {}, "/dev/vdb", None)
    places = disks.plan(
        disks.Hardware("x86_64", "pc", {}),
        BlockDevices(volumes=[volume]),
        is_iso=False,
        ephemeral_gb=1,
        swap_mb=1,
        config_drive="disk",
    )
    assert {place.name: place.target for place in places} == {
        "disk": "vda",
        "disk.local": "vdc",
        "disk.swap": "vdd",
        "v": "vdb",
        "disk.config": "vde",
    }


def volume(kind, **data):
    return Volume("11111111-1111-1111-1111-111111111111", None, {"driver_volume_type": kind, "data": data}, None, None)


@pytest.mark.parametrize("kind", ["local", "gpfs"])
def test_a_volume_that_is_a_path(conf, tmp_path, kind):
    file = tmp_path / "v"
    file.write_bytes(b"x")
    made = volumes.Volumes(conf, "host")
    assert made.connect(volume(kind, device_path=str(file))) == volumes.Source(str(file), "file")
    with pytest.raises(exceptions.DiskNotFound) as raised:
        made.connect(volume(kind, device_path="/nonexistent"))
    assert "/nonexistent" not in str(raised.value)
    made.disconnect(volume(kind, device_path=str(file)))


def test_a_ceph_volume(conf):
    conf.set_override("rbd_user", "nova", "libvirt")
    conf.set_override("rbd_secret_uuid", "s", "libvirt")
    made = volumes.Volumes(conf, "host")
    found = made.connect(volume("rbd", name="p/v", hosts=["10.0.0.1"], ports=["6789"])).source
    assert found == NetworkSource("rbd", "p/v", [("10.0.0.1", "6789")], "nova", "ceph", "s")
    given = volume("rbd", name="p/v", auth_enabled=True, auth_username="cinder", secret_uuid="c")
    assert made.connect(given).source.username == "cinder"
    conf.set_override("rbd_user", None, "libvirt")
    assert made.connect(volume("rbd", name="p/v", auth_enabled=False)).source.username is None


def test_an_unknown_kind_of_volume(conf):
    with pytest.raises(exceptions.VolumeDriverNotFound):
        volumes.Volumes(conf, "host").connect(volume("floppynet"))


def test_volumes_of_brick(conf, monkeypatch):
    from os_brick.initiator import connector

    calls = []

    class Connector:
        def connect_volume(self, data):
            calls.append(("connect", data))
            return {"type": "block", "path": "/dev/null"}

        def disconnect_volume(self, data, device, force=False, ignore_errors=False):
            calls.append(("disconnect", data))

    monkeypatch.setattr(
        connector.InitiatorConnector, "factory", lambda protocol, *_, **options: calls.append(protocol) or Connector()
    )
    made = volumes.Volumes(conf, "host")
    assert made.connect(volume("iscsi", target_iqn="i")) == volumes.Source("/dev/null", "file")
    made.disconnect(volume("iscsi", target_iqn="i"))
    assert calls == ["ISCSI", ("connect", {"target_iqn": "i"}), "ISCSI", ("disconnect", {"target_iqn": "i"})]


def test_a_shared_volume_has_no_cache():
    place = disks.Place("v", "vdb", "virtio")
    shared = Volume("v", None, {"data": {"access_mode": "ro", "discard": True}, "multiattach": True}, None, None)
    disk = volumes.disk(shared, place, volumes.Source("/dev/x"), "writeback", None)
    assert (disk.cache, disk.shareable, disk.readonly, disk.discard) == ("none", True, True, "unmap")


def test_the_console_is_read_across_rotated_logs(tmp_path):
    privileged.context.set_client_mode(False)
    log = tmp_path / "console.log"
    assert console.tail(log) == b""
    log.write_bytes(b"new")
    (tmp_path / "console.log.0").write_bytes(b"middle-")
    (tmp_path / "console.log.1").write_bytes(b"old-")
    assert console.tail(log) == b"old-middle-new"
    assert console.tail(log, 5) == b"e-new"


def test_libraries_learn_of_our_configuration_files(conf, tmp_path):
    file = tmp_path / "nova.conf"
    file.write_text("[os_vif_ovs]\novsdb_connection = unix:/somewhere\n")
    conf([], default_config_files=[str(file)])
    privileged.prepare(conf)
    from kilonova.virt.libvirt import network

    network.initialize()
    assert cfg.CONF.os_vif_ovs.ovsdb_connection == "unix:/somewhere"
    cfg.CONF.clear()
