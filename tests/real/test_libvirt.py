"""The libvirt driver against a real libvirtd and QEMU.

With the libvirtd at KILONOVA_LIBVIRT_URI, or one that the tests start (as root). Ports need Open vSwitch.
Two kinds of guests: a boot sector made here, and the image KILONOVA_GUEST_IMAGE (a qcow2 with a Linux that reads config
drives, says "login:" and "READY name" on its serial console and obeys the power button).
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree as ET

import libvirt
import pytest
from tests.fakes import guests
from tests.needs import check, lacking, needs
from tests.real import bootsector, private_libvirt

from kilonova.contract import exceptions, objects
from kilonova.contract.states import Power
from kilonova.metadata.configdrive import Documents
from kilonova.virt.driver import BlockDevices, GuestChange, LocalDisk, Services, Volume
from kilonova.virt.libvirt import tap
from kilonova.virt.libvirt.driver import LibvirtDriver

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

GUEST_IMAGE = os.environ.get("KILONOVA_GUEST_IMAGE", "")
BRIDGE = "br-kntest"


def uri() -> str:
    return os.environ["KILONOVA_LIBVIRT_URI"]


@pytest.fixture(scope="module", autouse=True)
def libvirtd(tmp_path_factory):
    if "KILONOVA_LIBVIRT_URI" in os.environ:
        yield
        return
    try:
        with (
            private_libvirt.running(tmp_path_factory.mktemp("libvirtd")) as (address, root),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv("KILONOVA_LIBVIRT_URI", address)
            patch.setenv("KILONOVA_LIBVIRT_ROOT", root)
            yield
    except private_libvirt.Unavailable as why:
        lacking("guests", str(why))


class Images:
    """Stands for the image service; counts what it gave out."""

    def __init__(self, source: pathlib.Path) -> None:
        self.source = source
        self.fetched = 0

    def fetch(self, ctxt, image_id, path):
        self.fetched += 1
        shutil.copy(self.source, path)


class Network:
    """Stands for the network service: answers at once, never, or with a failure."""

    def __init__(self) -> None:
        self.answer = "plugged"
        self.seen = []

    @contextlib.contextmanager
    def expect(self, uuid, events, timeout):
        self.seen.append(list(events))
        yield
        if self.answer != "plugged":
            raise exceptions.VirtualInterfaceCreateException()

    def pause(self, uuid, seconds):
        time.sleep(seconds)


class Host:
    def __init__(self, root: pathlib.Path, image: pathlib.Path) -> None:
        self.root = root
        self.conf = guests.configuration(
            state_path=str(root),
            instances_path=str(root / "instances"),
            libvirt__connection_uri=uri(),
            libvirt__virt_type="qemu",
            libvirt__cpu_mode="none",
            libvirt__tb_cache_size=32,
        )
        self.images = Images(image)
        self.network = Network()
        self.events = []
        self.driver = self.new_driver()
        self.made = []

    def new_driver(self):
        driver = LibvirtDriver(self.conf, "testhost", self.root, Services(self.images, self.network))
        driver.start("testhost", self.events.append)
        return driver

    def spec(self, **changes):
        spec = guests.spec(**{"image_meta": guests.image("raw"), **changes})
        self.made.append(spec)
        return spec

    def files(self, spec):
        return self.root / "instances" / spec.instance.uuid

    def wait_for(self, spec, text: bytes, seconds: float = 60) -> bytes:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if text in (output := self.driver.console_output(spec.instance)):
                return output
            time.sleep(0.2)
        pytest.fail(f"{text!r} did not appear; console: {self.driver.console_output(spec.instance)[-2000:]!r}")

    def clear(self):
        for spec in self.made:
            self.driver.destroy(None, spec.instance, spec.network_info, spec.block_devices)
        self.driver.stop()


@pytest.fixture
def host(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(bootsector.disk())
    # QEMU runs as another user: it must be able to look into the directory.
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(directory.stat().st_mode | 0o055)
    made = Host(tmp_path, image)
    yield made
    made.clear()


@pytest.fixture
def linux_host(host):
    check("guest-image")
    host.images.source = pathlib.Path(GUEST_IMAGE)
    return host


@pytest.fixture
def port():
    try:
        subprocess.run(["ovs-vsctl", "--timeout=5", "show"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        lacking("openvswitch", f"no Open vSwitch: {failure}")
    subprocess.run(
        ["ovs-vsctl", "--may-exist", "add-br", BRIDGE, "--", "set", "Bridge", BRIDGE, "datapath_type=netdev"],
        check=True,
    )
    vif = guests.ovs_port()
    vif["network"]["bridge"] = BRIDGE
    yield vif
    subprocess.run(["ovs-vsctl", "del-br", BRIDGE], check=True)


def ports_on_switch():
    return subprocess.run(
        ["ovs-vsctl", "list-ports", BRIDGE], check=True, capture_output=True, text=True
    ).stdout.split()


def test_life_of_a_guest(host):
    spec = host.spec(instance=guests.instance(config_drive="True"), metadata_files=lambda: {"openstack/a": b"x"})
    driver, instance = host.driver, spec.instance
    driver.spawn(None, spec)
    assert driver.guest(instance.uuid).power_state == Power.RUNNING
    assert driver.guests()[instance.uuid].internal_id is not None
    host.wait_for(spec, bootsector.MESSAGE.strip())
    assert sorted(path.name for path in host.files(spec).iterdir()) == [
        "console.log",
        "disk",
        "disk.config",
        "disk.info",
    ]
    assert json.loads((host.files(spec) / "disk.info").read_text())[str(host.files(spec) / "disk")] == "qcow2"
    assert instance.root_device_name == "/dev/vda"
    assert instance.system_metadata["image_hw_machine_type"] == "pc"

    driver.power_off(instance)
    assert driver.guest(instance.uuid).power_state == Power.SHUTDOWN
    driver.power_off(instance)
    driver.power_on(None, spec)
    host.wait_for(spec, bootsector.MESSAGE.strip())

    before = driver.guest(instance.uuid).internal_id
    driver.reboot(None, spec, hard=True)
    assert driver.guest(instance.uuid).internal_id != before
    assert driver.guest(instance.uuid).power_state == Power.RUNNING

    driver.destroy(None, instance, [], BlockDevices())
    with pytest.raises(exceptions.InstanceNotFound):
        driver.guest(instance.uuid)
    assert instance.uuid not in driver.guests()
    assert not host.files(spec).exists()
    driver.destroy(None, instance, [], BlockDevices())


def test_a_guest_that_ignores_the_power_button_is_reset(host):
    host.conf.set_override("wait_soft_reboot_seconds", 1, "libvirt")
    spec = host.spec()
    host.driver.spawn(None, spec)
    before = host.driver.guest(spec.instance.uuid).internal_id
    host.driver.reboot(None, spec, hard=False)
    assert host.driver.guest(spec.instance.uuid).internal_id != before


def test_the_image_is_fetched_once(host):
    for _ in range(2):
        host.driver.spawn(None, host.spec())
    assert host.images.fetched == 1


def test_an_agent_that_restarts_leaves_guests_alone(host):
    spec = host.spec()
    host.driver.spawn(None, spec)
    before = host.driver.guest(spec.instance.uuid)
    host.driver.stop()
    host.driver = host.new_driver()
    assert host.driver.guest(spec.instance.uuid) == before
    assert spec.instance.uuid in host.driver.guests()


def test_events_tell_what_guests_do_by_themselves(host):
    spec = host.spec()
    host.driver.spawn(None, spec)
    domain = libvirt.open(uri()).lookupByUUIDString(spec.instance.uuid)
    domain.suspend()
    domain.resume()
    deadline = time.monotonic() + 10
    wanted = {GuestChange.STARTED, GuestChange.PAUSED, GuestChange.RESUMED}
    while not wanted <= {event.change for event in host.events} and time.monotonic() < deadline:
        time.sleep(0.1)
    assert wanted <= {event.change for event in host.events if event.uuid == spec.instance.uuid}


def test_guests_of_others_are_not_ours(host):
    connection = libvirt.open(uri())
    name = f"other-{uuid.uuid4()}"
    other = connection.defineXML(
        f"<domain type='qemu'><name>{name}</name><memory>65536</memory><os><type>hvm</type></os></domain>"
    )
    try:
        assert other.UUIDString() not in host.driver.guests()
    finally:
        other.undefine()


def test_a_port_is_plugged_and_waited_for(host, port):
    spec = host.spec(network_info=[port], interface_tags={port["id"]: "mgmt"})
    host.driver.spawn(None, spec)
    (device,) = spec.instance.device_metadata.devices
    assert (device.mac, device.tags) == (port["address"], ["mgmt"])
    assert device.bus.address.startswith("0000:00:")
    assert host.network.seen == [[("network-vif-plugged", port["id"])]]
    assert ports_on_switch() == [port["devname"]]
    assert host.driver.guest(spec.instance.uuid).power_state == Power.RUNNING
    host.driver.destroy(None, spec.instance, [port], BlockDevices())
    assert ports_on_switch() == []


def test_what_the_record_forgot_is_unplugged(host, monkeypatch):
    """A port was deleted while its server ran, and its device did not go at once."""
    vif = guests.ovs_port(type="tap", details={})
    device = pathlib.Path("/sys/class/net") / vif["devname"]
    spec = host.spec(network_info=[vif])
    host.driver.spawn(None, spec)
    assert (device / "mtu").read_text().strip() == "1450"

    def busy(name):
        raise subprocess.CalledProcessError(2, ["ip"], stderr=b"busy")

    with monkeypatch.context() as patch:
        patch.setattr(tap, "delete", busy)
        host.driver.destroy(None, spec.instance, [], BlockDevices())
    assert device.exists()
    again = host.new_driver()
    try:
        assert spec.instance.uuid in again.leftovers()
        again.unplug(spec.instance.uuid)
        assert not device.exists()
        assert again.leftovers() == set()
    finally:
        again.stop()


def test_a_network_that_does_not_answer_leaves_nothing(host, port):
    host.network.answer = "late"
    spec = host.spec(network_info=[port])
    with pytest.raises(exceptions.VirtualInterfaceCreateException):
        host.driver.spawn(None, spec)
    assert ports_on_switch() == []
    assert not host.files(spec).exists()
    assert spec.instance.uuid not in host.driver.guests()


def test_a_network_that_does_not_answer_may_be_ignored(host, port):
    host.conf.set_override("vif_plugging_is_fatal", False)
    host.network.answer = "late"
    spec = host.spec(network_info=[port])
    host.driver.spawn(None, spec)
    assert host.driver.guest(spec.instance.uuid).power_state == Power.RUNNING


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"image_meta": guests.image("qcow2")}, exceptions.ImageUnacceptable),
        ({"image_meta": guests.image("raw", hw_machine_type="sun4u")}, exceptions.InvalidMachineType),
        ({"network_info": [guests.ovs_port(type="binding_failed")]}, exceptions.VirtualInterfacePlugException),
        (
            {
                "block_devices": BlockDevices(
                    volumes=[Volume("v", None, {"driver_volume_type": "x", "data": {}}, None, None)]
                )
            },
            exceptions.VolumeDriverNotFound,
        ),
        ({"block_devices": BlockDevices(ephemerals=[LocalDisk(1, format="zfs")])}, exceptions.InvalidBDMFormat),
    ],
)
def test_a_failed_build_leaves_nothing(host, changes, error):
    spec = host.spec(**changes)
    with pytest.raises(error):
        host.driver.spawn(None, spec)
    host.made.clear()
    assert not host.files(spec).exists()
    assert spec.instance.uuid not in host.driver.guests()
    assert [path.name for path in (host.root / "instances").glob("_base/*") if len(path.name) != 40] == []


def test_an_image_bigger_than_the_flavors_disk_is_refused(host):
    host.images.source.write_bytes(bootsector.disk())
    os.truncate(host.images.source, 2 << 30)
    with pytest.raises(exceptions.FlavorDiskSmallerThanImage):
        host.driver.spawn(None, host.spec())


KILLED = """
import sys, time, pathlib
sys.path.insert(0, {tests!r})
from tests.real import test_libvirt as t
host = t.Host(pathlib.Path({root!r}), pathlib.Path({image!r}))
spec = t.guests.spec(instance=t.guests.instance(uuid={uuid!r}), image_meta=t.guests.image("raw"))
class Stop:
    def expect(self, *_):
        raise AssertionError
from kilonova.virt.libvirt import {module} as module
real = module.{name}
def die(*args, **kwargs):
    if {after!r}: real(*args, **kwargs)
    import os
    os.kill(os.getpid(), 9)
module.{name} = die
host.driver.spawn(None, spec)
"""


@pytest.mark.parametrize(
    ("module", "name", "after"),
    [
        ("storage", "_record", False),
        ("storage", "_record", True),
        ("driver", "define", False),
        ("driver", "define", True),
    ],
)
def test_a_killed_agent_leaves_what_destroy_and_spawn_can_clear(host, module, name, after):
    spec = host.spec()
    script = KILLED.format(
        tests=str(pathlib.Path(__file__).parents[2]),
        root=str(host.root),
        image=str(host.images.source),
        uuid=spec.instance.uuid,
        module=module,
        name=name,
        after=after,
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert done.returncode == -9, done.stderr.decode()
    host.driver.spawn(None, spec)
    host.wait_for(spec, bootsector.MESSAGE.strip())
    host.driver.destroy(None, spec.instance, [], BlockDevices())
    assert not host.files(spec).exists()
    assert spec.instance.uuid not in host.driver.guests()


def test_a_running_guest_is_not_built_again(host):
    spec = host.spec()
    host.driver.spawn(None, spec)
    before = host.driver.guest(spec.instance.uuid)
    with pytest.raises(exceptions.InstanceExists):
        host.driver.spawn(None, spec)
    assert host.driver.guest(spec.instance.uuid) == before


def test_ephemeral_swap_and_local_volume(host):
    volume_file = host.root / "volume.raw"
    volume_file.write_bytes(b"\0" * (8 << 20))
    volume = Volume(
        "11111111-1111-1111-1111-111111111111",
        None,
        {"driver_volume_type": "local", "data": {"device_path": str(volume_file)}},
        "/dev/vdx",
        None,
    )
    disks = BlockDevices(
        volumes=[volume], ephemerals=[LocalDisk(1, format="ext4"), LocalDisk(1, format="vfat")], swap=LocalDisk(16)
    )
    spec = host.spec(block_devices=disks)
    host.driver.spawn(None, spec)
    domain = libvirt.open(uri()).lookupByUUIDString(spec.instance.uuid)
    assert domain.blockInfo("vdx")[0] == 8 << 20
    assert domain.blockInfo("vdb")[0] == 1 << 30
    cached = sorted(path.name for path in (host.root / "instances" / "_base").iterdir())
    assert [name.split("_")[0] for name in cached if "_" in name] == ["ephemeral", "ephemeral", "swap"]


def with_volume(host, bus):
    """A guest that runs with a volume, and whether its domain (running, defined) has it."""
    file = host.root / "volume.raw"
    file.write_bytes(b"\0" * (8 << 20))
    name = "/dev/vdx" if bus == "virtio" else "/dev/sdx"
    connection = {"driver_volume_type": "local", "data": {"device_path": str(file)}}
    volume = Volume("11111111-1111-1111-1111-111111111111", None, connection, name, None)
    spec = host.spec(
        image_meta=guests.image("raw", hw_disk_bus=bus, hw_scsi_model="virtio-scsi"),
        block_devices=BlockDevices(volumes=[volume]),
    )
    host.driver.spawn(None, spec)

    def has_it():
        domain = libvirt.open(uri()).lookupByUUIDString(spec.instance.uuid)
        return [volume.volume_id in domain.XMLDesc(flags) for flags in (0, libvirt.VIR_DOMAIN_XML_INACTIVE)]

    assert has_it() == [True, True]
    return spec, volume, has_it


def test_a_stopped_guest_lets_go_of_a_volume_and_starts_with_it_again(host):
    spec, volume, has_it = with_volume(host, "virtio")
    host.driver.power_off(spec.instance)
    host.driver.detach_volume(spec.instance, volume)
    host.driver.detach_volume(spec.instance, volume)
    assert has_it() == [False, False]
    host.driver.power_on(None, spec)
    assert has_it() == [True, True]


def test_a_running_guest_lets_go_of_a_scsi_disk_by_itself(host):
    spec, volume, has_it = with_volume(host, "scsi")
    host.driver.detach_volume(spec.instance, volume)
    assert has_it() == [False, False]
    assert host.driver.guest(spec.instance.uuid).power_state == Power.RUNNING


def test_a_guest_that_does_not_answer_keeps_its_disk(host):
    host.conf.set_override("device_detach_attempts", 2, "libvirt")
    host.conf.set_override("device_detach_timeout", 1, "libvirt")
    spec, volume, has_it = with_volume(host, "virtio")
    with pytest.raises(exceptions.DeviceDetachFailed, match="asked 2 times"):
        host.driver.detach_volume(spec.instance, volume)
    assert has_it() == [True, True]


def test_guests_share_a_volume_and_the_last_one_ends_its_connection(host, monkeypatch):
    file = host.root / "volume.raw"
    file.write_bytes(b"\0" * (8 << 20))
    connection = {"driver_volume_type": "local", "data": {"device_path": str(file)}, "multiattach": True}
    volume = Volume("11111111-1111-1111-1111-111111111111", None, connection, "/dev/vdx", None)
    disconnected = []
    monkeypatch.setattr(host.driver._volumes, "disconnect", lambda each, force=True: disconnected.append(force))
    first, second = (host.spec(block_devices=BlockDevices(volumes=[volume])) for _ in range(2))
    host.driver.spawn(None, first)
    host.driver.spawn(None, second)
    host.driver.power_off(first.instance)
    host.driver.power_on(None, first)
    host.driver.power_off(first.instance)
    host.driver.detach_volume(first.instance, volume)
    assert disconnected == []
    assert host.driver.guest(second.instance.uuid).power_state == Power.RUNNING
    host.driver.destroy(None, second.instance, [], second.block_devices)
    assert disconnected == [True]


def test_flat_images_are_whole(host):
    host.conf.set_override("images_type", "flat", "libvirt")
    host.driver.stop()
    host.driver = host.new_driver()
    spec = host.spec()
    host.driver.spawn(None, spec)
    assert json.loads((host.files(spec) / "disk.info").read_text())[str(host.files(spec) / "disk")] == "raw"
    assert (host.files(spec) / "disk").stat().st_size == 1 << 30
    host.wait_for(spec, bootsector.MESSAGE.strip())


@pytest.mark.parametrize("secure", ["disabled", "required"])
def test_uefi_variables_survive_a_hard_reboot(host, secure):
    image = guests.image("raw", hw_firmware_type="uefi", hw_machine_type="q35", os_secure_boot=secure)
    spec = host.spec(image_meta=image)
    try:
        host.driver.spawn(None, spec)
    except (exceptions.UEFINotSupported, exceptions.SecureBootNotSupported) as failure:
        lacking("uefi", str(failure))
    domain = libvirt.open(uri()).lookupByUUIDString(spec.instance.uuid)
    before = ET.fromstring(domain.XMLDesc())
    nvram = pathlib.Path(os.environ.get("KILONOVA_LIBVIRT_ROOT", "/"), before.findtext("os/nvram").strip("/"))
    assert nvram.exists()
    assert (before.find("os/loader").get("secure") == "yes") is (secure == "required")
    written = nvram.stat().st_ino
    host.driver.reboot(None, spec, hard=True)
    after = ET.fromstring(libvirt.open(uri()).lookupByUUIDString(spec.instance.uuid).XMLDesc())
    assert after.findtext("os/loader") == before.findtext("os/loader")
    assert nvram.stat().st_ino == written
    host.driver.destroy(None, spec.instance, [], BlockDevices())
    assert not nvram.exists()


@pytest.mark.parametrize("mode", [None, "host-model", "custom"])
def test_processor_modes_start(host, mode):
    host.conf.set_override("cpu_mode", mode, "libvirt")
    if mode == "custom":
        host.conf.set_override("cpu_models", ["Nehalem"], "libvirt")
    host.driver.stop()
    host.driver = host.new_driver()
    spec = host.spec()
    host.driver.spawn(None, spec)
    host.wait_for(spec, bootsector.MESSAGE.strip())


def test_builds_at_once(host, port):
    specs = [host.spec(network_info=[_another(port, number)]) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda spec: host.driver.spawn(None, spec), specs))
    assert host.images.fetched == 1
    assert {spec.instance.uuid for spec in specs} <= set(host.driver.guests())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda s: host.driver.destroy(None, s.instance, s.network_info, s.block_devices), specs))
    assert ports_on_switch() == []


def _another(port, number):
    identifier = str(uuid.uuid4())
    return {
        **port,
        "id": identifier,
        "ovs_interfaceid": identifier,
        "devname": f"tap{identifier}"[:14],
        "address": f"fa:16:3e:00:01:{number:02x}",
    }


def test_the_host_describes_itself(host):
    (node, node_uuid), *_ = host.driver.nodes().items()
    assert host.driver.nodes() == {node: node_uuid}
    resources = host.driver.resources(node)
    assert resources.hypervisor_type == "QEMU"
    assert resources.memory_mb > resources.memory_mb_used > 0
    assert ["x86_64", "qemu", "hvm"] in [list(each) for each in resources.supported_instances]
    assert json.loads(resources.cpu_info)["arch"] == "x86_64"
    assert set(host.driver.inventory(node)) == {"VCPU", "MEMORY_MB", "DISK_GB"}
    assert {"HW_ARCH_X86_64", "COMPUTE_STORAGE_BUS_VIRTIO"} <= host.driver.traits(node)
    assert "up" in host.driver.uptime()
    assert host.driver.volume_connector(guests.instance())["host"] == "testhost"


def test_a_linux_guest_reads_its_config_drive_and_obeys(linux_host):
    host = linux_host
    instance = guests.instance(
        config_drive="True",
        hostname="kiln",
        keypairs=objects.KeyPairList(objects=[]),
        metadata={"a": "b"},
    )
    documents = Documents(host.conf)
    spec = host.spec(
        instance=instance,
        image_meta=guests.image("qcow2"),
        metadata_files=lambda: documents.files(instance, [], admin_password="sesame"),
    )
    host.driver.spawn(None, spec)
    host.wait_for(spec, b"login:", 120)
    host.wait_for(spec, b"READY kiln", 120)
    before = host.driver.guest(instance.uuid).internal_id
    started = time.monotonic()
    host.driver.reboot(None, spec, hard=False)
    assert time.monotonic() - started < 60
    assert host.driver.guest(instance.uuid).internal_id != before
    host.wait_for(spec, b"login:", 120)
    host.driver.power_off(instance, 60, 10)
    assert host.driver.guest(instance.uuid).power_state == Power.SHUTDOWN


@needs("libvirtd-restart")
def test_events_go_on_after_libvirtd_was_restarted(host):
    """KILONOVA_LIBVIRTD_RESTART is a command that does it."""
    spec = host.spec()
    host.driver.spawn(None, spec)
    before = host.driver.guest(spec.instance.uuid)
    subprocess.run(os.environ["KILONOVA_LIBVIRTD_RESTART"], shell=True, check=True, timeout=60)
    deadline = time.monotonic() + 30
    while GuestChange.PAUSED not in {event.change for event in host.events} and time.monotonic() < deadline:
        time.sleep(1)
        with contextlib.suppress(libvirt.libvirtError):
            domain = libvirt.open(uri()).lookupByUUIDString(spec.instance.uuid)
            domain.suspend()
            domain.resume()
    assert GuestChange.PAUSED in {event.change for event in host.events}
    assert host.driver.guest(spec.instance.uuid).internal_id == before.internal_id
