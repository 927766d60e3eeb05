"""The domain a guest becomes, for a range of images and flavors."""

import pytest
from tests.fakes import guests

from kilonova.contract import exceptions, objects
from kilonova.virt.driver import BlockDevices, LocalDisk, Volume
from kilonova.virt.libvirt.config.element import to_xml
from kilonova.virt.libvirt.storage import _record
from kilonova.virt.libvirt.volumes import Source


@pytest.fixture
def domain(make_builder, layout):
    def make(sources=None, existing=None, **changes):
        spec = guests.spec(**changes)
        files = layout.instance(spec.instance.uuid)
        files.directory.mkdir(parents=True)
        for name in ("disk", "disk.local", "disk.swap", "disk.eph0", "disk.eph1"):
            _record(files, files.directory / name, "qcow2")
        builder = make_builder()
        shape = builder.shape(spec)
        return builder.domain(spec, shape, sources or {}, "instance-00000007", existing).element()

    return make


def flavored(**changes):
    return {"instance": guests.instance(flavor=guests.flavor(**changes))}


def targets(domain):
    return [
        (disk.get("device"), disk.find("target").get("dev"), disk.find("target").get("bus"))
        for disk in domain.iterfind("devices/disk")
    ]


def test_a_plain_guest(domain, layout):
    made = domain()
    uuid = made.findtext("uuid")
    assert made.get("type") == "qemu"
    assert made.findtext("name") == "instance-00000007"
    assert made.findtext("memory") == str(192 * 1024)
    assert made.find("os/type").attrib == {"arch": "x86_64", "machine": "pc"}
    assert made.find("os").get("firmware") is None
    assert [boot.get("dev") for boot in made.iterfind("os/boot")] == ["hd"]
    assert targets(made) == [("disk", "vda", "virtio")]
    assert made.find("devices/disk/source").get("file") == str(layout.instance(uuid).root)
    assert made.find("devices/serial/log").get("file") == str(layout.instance(uuid).console_log)
    assert made.find("devices/graphics").attrib == {"type": "vnc", "autoport": "yes", "listen": "127.0.0.1"}
    assert made.find("devices/input").attrib == {"type": "tablet", "bus": "usb"}
    assert made.find("devices/controller[@type='usb']").get("model") is None
    assert made.find("devices/memballoon/stats").get("period") == "10"
    assert made.find("devices/rng/backend").text == "/dev/urandom"
    assert made.find("devices/channel") is None
    assert made.find("devices/watchdog") is None
    assert {entry.get("name"): entry.text for entry in made.iterfind("sysinfo/system/entry")}["serial"] == uuid


def test_without_console_there_is_neither_video_nor_usb(domain, conf):
    conf.set_override("enabled", False, "vnc")
    made = domain()
    assert made.find("devices/video") is None
    assert made.find("devices/controller[@type='usb']").get("model") == "none"


def test_translation_cache_is_for_emulated_guests_only(domain, conf):
    conf.set_override("tb_cache_size", 32, "libvirt")
    assert domain().findtext("features/tcg/tb-cache") == "32"
    conf.set_override("virt_type", "kvm", "libvirt")
    made = domain()
    assert made.find("features/tcg") is None
    assert [timer.get("name") for timer in made.iterfind("clock/timer")] == ["pit", "rtc", "hpet"]


def test_config_drive_is_a_cdrom_on_the_machines_bus(domain):
    assert targets(domain(instance=guests.instance(config_drive="True")))[1] == ("cdrom", "hda", "ide")
    q35 = domain(instance=guests.instance(config_drive="True"), image_meta=guests.image(hw_machine_type="q35"))
    assert targets(q35)[1] == ("cdrom", "sda", "sata")


def test_vfat_config_drive_is_a_disk(domain, conf):
    conf.set_override("config_drive_format", "vfat")
    made = domain(instance=guests.instance(config_drive="True"))
    assert targets(made) == [("disk", "vda", "virtio"), ("disk", "vdb", "virtio")]
    assert made.find("devices/disk[2]/driver").get("type") == "raw"


def test_ephemeral_and_swap_follow_the_root_disk(domain):
    made = domain(**flavored(ephemeral_gb=2, swap=64))
    assert targets(made) == [(("disk"), f"vd{letter}", "virtio") for letter in "abc"]


def test_requested_ephemerals_replace_the_flavors(domain):
    disks = BlockDevices(ephemerals=[LocalDisk(1), LocalDisk(1, device_name="/dev/vdf")], swap=LocalDisk(32))
    made = domain(block_devices=disks, **flavored(ephemeral_gb=2))
    assert [target for _, target, _ in targets(made)] == ["vda", "vdb", "vdf", "vdc"]


def test_an_iso_boots_from_cdrom(domain):
    made = domain(image_meta=guests.image("iso"))
    assert targets(made) == [("cdrom", "hda", "ide")]
    assert [boot.get("dev") for boot in made.iterfind("os/boot")] == ["cdrom"]


def test_scsi_disks_are_numbered(domain):
    image = guests.image(hw_disk_bus="scsi", hw_scsi_model="virtio-scsi")
    made = domain(image_meta=image, **flavored(swap=64))
    assert targets(made) == [("disk", "sda", "scsi"), ("disk", "sdb", "scsi")]
    assert [each.get("unit") for each in made.iterfind("devices/disk/address")] == ["0", "1"]
    assert made.find("devices/controller[@type='scsi']").get("model") == "virtio-scsi"


def test_a_boot_volume_is_the_root_disk(domain):
    volume = Volume(
        "11111111-1111-1111-1111-111111111111",
        None,
        {"driver_volume_type": "iscsi", "data": {"qos_specs": {"read_iops_sec": "100"}}, "serial": "s1"},
        "/dev/vda",
        0,
    )
    other = Volume(
        "22222222-2222-2222-2222-222222222222", None, {"driver_volume_type": "local", "data": {}}, None, None
    )
    disks = BlockDevices("/dev/vda", [volume, other])
    sources = {volume.volume_id: Source("/dev/sdx"), other.volume_id: Source("/vol", "file")}
    made = domain(sources, block_devices=disks, instance=guests.instance(image_ref=""))
    first, second = made.findall("devices/disk")
    assert first.get("type") == "block"
    assert first.find("source").get("dev") == "/dev/sdx"
    assert first.findtext("serial") == "s1"
    assert first.findtext("iotune/read_iops_sec") == "100"
    assert first.find("driver").get("cache") == "none"
    assert second.find("target").get("dev") == "vdb"
    assert second.findtext("serial") == other.volume_id
    assert [boot.get("dev") for boot in made.iterfind("os/boot")] == ["hd"]


def test_a_ceph_volume_is_read_by_the_hypervisor(domain, make_builder):
    from kilonova.virt.libvirt.config.disk import NetworkSource

    volume = Volume("11111111-1111-1111-1111-111111111111", None, {"driver_volume_type": "rbd", "data": {}}, None, None)
    source = Source(NetworkSource("rbd", "pool/v", [("10.0.0.9", "6789")], "cinder", "ceph", "abc"))
    made = domain({volume.volume_id: source}, block_devices=BlockDevices(volumes=[volume]))
    disk = made.findall("devices/disk")[1]
    assert disk.get("type") == "network"
    assert disk.find("source").attrib == {"protocol": "rbd", "name": "pool/v"}
    assert disk.find("source/host").attrib == {"name": "10.0.0.9", "port": "6789"}
    assert disk.find("auth").get("username") == "cinder"
    assert disk.find("auth/secret").attrib == {"type": "ceph", "uuid": "abc"}


def test_an_ovs_port_is_a_tap_that_os_vif_connects(domain):
    port = guests.ovs_port()
    made = domain(network_info=[port]).find("devices/interface")
    assert made.get("type") == "ethernet"
    assert made.find("target").attrib == {"dev": port["devname"]}
    assert made.find("mtu").get("size") == "1450"
    assert made.find("driver").get("name") == "qemu"
    assert made.find("model").get("type") == "virtio"


def test_a_hybrid_port_hangs_on_its_own_bridge(domain):
    port = guests.ovs_port(details={"ovs_hybrid_plug": True})
    made = domain(network_info=[port]).find("devices/interface")
    assert made.get("type") == "bridge"
    assert made.find("source").get("bridge") == f"qbr{port['id']}"[:14]


def test_a_port_whose_tap_is_made_beforehand_is_left_alone(domain):
    port = guests.ovs_port(details={"ovs_create_tap": True})
    assert domain(network_info=[port]).find("devices/interface/target").get("managed") == "no"


@pytest.mark.parametrize("kind", ["binding_failed", "unbound", "bridge", "hw_veb", None])
def test_other_ports_are_refused(domain, kind):
    with pytest.raises(exceptions.VirtualInterfacePlugException):
        domain(network_info=[guests.ovs_port(type=kind)])


def test_queues_under_kvm(domain, conf):
    conf.set_override("virt_type", "kvm", "libvirt")
    image = guests.image(hw_vif_multiqueue_enabled=True)
    made = domain(network_info=[guests.ovs_port()], image_meta=image, **flavored(vcpus=4))
    assert made.find("devices/interface/driver").attrib == {"name": "vhost", "queues": "4"}


def test_bandwidth_of_the_flavor(domain):
    specs = {"quota:vif_inbound_average": "100", "quota:vif_outbound_average": "50", "quota:vif_outbound_peak": "60"}
    made = domain(network_info=[guests.ovs_port()], **flavored(extra_specs=specs)).find("devices/interface/bandwidth")
    assert made.find("inbound").attrib == {"average": "100"}
    assert made.find("outbound").attrib == {"average": "50", "peak": "60"}


def test_uefi(domain):
    made = domain(image_meta=guests.image(hw_firmware_type="uefi", hw_machine_type="q35"))
    assert made.find("os").get("firmware") == "efi"
    assert made.find("os/loader") is None
    assert made.find("os/firmware/feature").attrib == {"name": "secure-boot", "enabled": "no"}


def test_secure_boot(domain):
    image = guests.image(hw_firmware_type="uefi", hw_machine_type="q35", os_secure_boot="required")
    assert domain(image_meta=image).find("os/loader").get("secure") == "yes"


def test_the_present_firmware_is_kept(domain, tmp_path):
    from xml.etree import ElementTree as ET

    loader = tmp_path / "code"
    loader.touch()
    present = ET.fromstring(
        f"<domain><os><loader type='pflash' secure='no'>{loader}</loader><nvram>/vars</nvram></os>"
        "<features><smm state='on'/></features></domain>"
    )
    image = guests.image(hw_firmware_type="uefi")
    made = domain(existing=present, image_meta=image)
    assert made.find("os").get("firmware") is None
    assert made.findtext("os/loader") == str(loader)
    assert made.findtext("os/nvram") == "/vars"
    assert made.find("features/smm").get("state") == "on"
    present.find("os/loader").set("secure", "yes")
    assert domain(existing=present, image_meta=image).find("os").get("firmware") == "efi"
    present.find("os/loader").set("secure", "no")
    loader.unlink()
    assert domain(existing=present, image_meta=image).find("os").get("firmware") == "efi"


def test_direct_kernel_boot(domain, layout):
    instance = guests.instance(kernel_id=guests.IMAGE_ID, ramdisk_id=guests.IMAGE_ID)
    made = domain(instance=instance)
    files = layout.instance(instance.uuid)
    assert made.findtext("os/kernel") == str(files.kernel)
    assert made.findtext("os/initrd") == str(files.ramdisk)
    assert made.findtext("os/cmdline").startswith("root=/dev/vda ")
    assert made.find("os/boot") is None


def test_limits_of_the_flavor(domain):
    specs = {"quota:cpu_shares": "512", "quota:cpu_quota": "10000", "quota:disk_read_iops_sec": "77"}
    made = domain(**flavored(extra_specs=specs))
    assert {each.tag: each.text for each in made.find("cputune")} == {"shares": "512", "quota": "10000"}
    assert made.findtext("devices/disk/iotune/read_iops_sec") == "77"
    with pytest.raises(exceptions.Invalid):
        domain(**flavored(extra_specs={"quota:cpu_shares": "many"}))


def test_watchdog_agent_and_sound(domain):
    image = guests.image(hw_watchdog_action="reset", hw_qemu_guest_agent=True, hw_sound_model="ich9")
    made = domain(image_meta=image)
    assert made.find("devices/watchdog").attrib == {"model": "i6300esb", "action": "reset"}
    assert made.find("devices/channel/target").get("name") == "org.qemu.guest_agent.0"
    assert made.find("devices/sound").get("model") == "ich9"


def test_pcie_ports(domain, conf):
    conf.set_override("num_pcie_ports", 3, "libvirt")
    q35 = domain(image_meta=guests.image(hw_machine_type="q35"))
    models = [each.get("model") for each in q35.iterfind("devices/controller[@type='pci']")]
    assert models == ["pcie-root", *["pcie-root-port"] * 3]
    assert domain().find("devices/controller[@type='pci']") is None


def test_windows_guests_get_their_clock_and_enlightenments(domain, conf):
    conf.set_override("virt_type", "kvm", "libvirt")
    made = domain(instance=guests.instance(os_type="windows"))
    assert made.find("clock").get("offset") == "localtime"
    assert made.find("features/hyperv/relaxed").get("state") == "on"


@pytest.mark.parametrize(
    ("specs", "properties"),
    [
        ({"hw:cpu_policy": "dedicated"}, {}),
        ({"hw:mem_page_size": "large"}, {}),
        ({"hw:numa_nodes": "2"}, {}),
        ({"hw:tpm_version": "2.0"}, {}),
        ({"pci_passthrough:alias": "gpu:1"}, {}),
        ({}, {"hw_mem_encryption": True}),
    ],
)
def test_what_cannot_be_given_is_refused(domain, specs, properties):
    with pytest.raises(exceptions.Invalid, match="yet"):
        domain(image_meta=guests.image(**properties), **flavored(extra_specs=specs))


@pytest.mark.parametrize("encrypted", [True, False, None])
def test_an_encrypted_volume_is_refused(domain, encrypted):
    """Its guest would write in the clear."""
    data = {"name": "p/v"} if encrypted is None else {"name": "p/v", "encrypted": encrypted}
    volume = Volume("v", None, {"driver_volume_type": "rbd", "data": data}, "/dev/vdb", None)
    disks = BlockDevices(volumes=[volume])
    if encrypted:
        with pytest.raises(exceptions.VolumeEncryptionNotSupported, match="rbd"):
            domain(block_devices=disks)
    else:
        assert len(targets(domain({"v": Source("/dev/v")}, block_devices=disks))) == 2


def test_unknown_machine_type(domain):
    with pytest.raises(exceptions.InvalidMachineType, match="pc-i440fx"):
        domain(image_meta=guests.image(hw_machine_type="sun4u"))


def test_metadata_names_owner_flavor_image_and_ports(domain):
    instance = guests.instance(system_metadata={"owner_user_name": "Ann", "owner_project_name": "Demo"})
    port = guests.ovs_port()
    made = domain(instance=instance, network_info=[port], image_meta=guests.image(hw_disk_bus="virtio"))
    space = {"n": "http://openstack.org/xmlns/libvirt/nova/1.1"}
    found = made.find("metadata/n:instance", space)
    assert found.findtext("n:owner/n:user", namespaces=space) == "Ann"
    assert found.find("n:flavor", space).get("name") == "m1.tiny"
    assert found.find("n:root", space).attrib == {"type": "image", "uuid": guests.IMAGE_ID}
    assert found.find("n:ports/n:port", space).get("uuid") == port["id"]
    assert found.find("n:ports/n:port/n:ip", space).attrib == {"type": "fixed", "address": "10.0.0.5", "ipVersion": "4"}
    assert found.findtext("n:image/n:properties/n:property", namespaces=space) == "virtio"


def test_cache_mode_of_the_operator(domain, conf):
    conf.set_override("disk_cachemodes", ["file=unsafe", "block=bogus"], "libvirt")
    assert domain().find("devices/disk/driver").get("cache") == "unsafe"


def test_xml_is_well_formed_for_odd_names(make_builder, layout):
    spec = guests.spec(instance=guests.instance(display_name="a<b>&\"'ü"))
    files = layout.instance(spec.instance.uuid)
    files.directory.mkdir(parents=True)
    _record(files, files.root, "raw")
    builder = make_builder()
    xml = to_xml(builder.domain(spec, builder.shape(spec), {}, "x"))
    assert "a&lt;b&gt;&amp;" in xml


def test_objects_are_the_real_ones():
    assert isinstance(guests.spec().instance, objects.Instance)


def test_metadata_has_the_smallest_disk_of_the_servers_record(domain):
    made = domain(instance=guests.instance(system_metadata={"image_min_disk": "7", "image_disk_format": "qcow2"}))
    space = "{http://openstack.org/xmlns/libvirt/nova/1.1}"
    image = made.find(f"metadata/{space}instance/{space}image")
    assert [image.findtext(f"{space}{name}") for name in ("minDisk", "minRam", "diskFormat")] == ["7", "0", "qcow2"]
