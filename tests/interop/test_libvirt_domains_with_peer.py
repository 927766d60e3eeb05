"""The same servers, described by the peer's libvirt driver and by ours: the domains must be the same.

A host that changes hands keeps its guests; what is different here is what guests would notice.
Needs PEER_PYTHON (a Python with the peer in it) and a libvirtd at KILONOVA_LIBVIRT_URI.
"""

import json
import os
import pathlib
import subprocess
from collections import Counter
from xml.etree import ElementTree as ET

import libvirt
import pytest
from tests.fakes import guests
from tests.interop.domain_lines import lines
from tests.interop.libvirt_modules import libvirt_for_others
from tests.needs import check, lacking

from kilonova.virt.libvirt import builder, cpu, storage
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.imagecache import ImageCache
from kilonova.virt.libvirt.paths import Layout
from kilonova.virt.libvirt.qemu_img import QemuImg

pytestmark = pytest.mark.interop

PEER = os.environ.get("PEER_PYTHON")
URI = os.environ.get("KILONOVA_LIBVIRT_URI", "qemu:///system")
check("peer", module=True)
try:
    libvirt.open(URI).close()
except libvirt.libvirtError as failure:
    lacking("libvirtd", f"no libvirt at {URI}: {failure}", module=True)

Q35 = {"hw_machine_type": "q35"}
PORT = guests.ovs_port()


def case(name, image=None, flavor=None, instance=None, network_info=(), options=(), disk_format="qcow2"):
    return pytest.param(
        {
            "image": guests.image(disk_format, **(image or {})),
            "instance": {"flavor": guests.flavor(**(flavor or {})), **(instance or {})},
            "network_info": list(network_info),
            "options": list(options),
        },
        id=name,
    )


CASES = [
    case("plain"),
    case("q35", Q35),
    case("port", network_info=[PORT]),
    case("hybrid port", network_info=[guests.ovs_port(details={"ovs_hybrid_plug": True})]),
    case("port with its own tap", network_info=[guests.ovs_port(details={"ovs_create_tap": True})]),
    case("port not delegated", network_info=[guests.ovs_port(delegate_create=False)]),
    case("tap port", network_info=[guests.ovs_port(type="tap")]),
    case("bandwidth", network_info=[PORT], flavor={"extra_specs": {"quota:vif_inbound_average": "9"}}),
    case("e1000", {"hw_vif_model": "e1000"}, network_info=[PORT]),
    case("packed ring", {"hw_virtio_packed_ring": True}, network_info=[PORT]),
    case("config drive", instance={"config_drive": "True"}),
    case("config drive on q35", Q35, instance={"config_drive": "True"}),
    case("vfat config drive", instance={"config_drive": "True"}, options=[(None, "config_drive_format", "vfat")]),
    case("flavor disks", flavor={"ephemeral_gb": 1, "swap": 64}, instance={"ephemeral_gb": 1}),
    case("scsi", {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi"}, flavor={"swap": 64}),
    case("ide", {"hw_disk_bus": "ide"}, flavor={"swap": 64}),
    case("iso", disk_format="iso"),
    case("uefi", {**Q35, "hw_firmware_type": "uefi"}),
    case("secure boot", {**Q35, "hw_firmware_type": "uefi", "os_secure_boot": "required"}),
    case("agent", {"hw_qemu_guest_agent": True}),
    case("watchdog", {"hw_watchdog_action": "reset"}),
    case("sound", {"hw_sound_model": "ich9"}),
    case("video", {"hw_video_model": "vga", "hw_video_ram": 8}, flavor={"extra_specs": {"hw_video:ram_max_mb": "16"}}),
    case("input", {"hw_input_bus": "virtio"}),
    case("no rng", flavor={"extra_specs": {"hw_rng:allowed": "false"}}),
    case("rng rate", flavor={"extra_specs": {"hw_rng:rate_bytes": "5", "hw_rng:rate_period": "7"}}),
    case("cpu quota", flavor={"extra_specs": {"quota:cpu_quota": "9000", "quota:cpu_shares": "7"}}),
    case("disk quota", flavor={"extra_specs": {"quota:disk_total_iops_sec": "55"}}),
    case("topology", {"hw_cpu_threads": 2}, flavor={"vcpus": 4, "extra_specs": {"hw:cpu_max_sockets": "2"}}),
    case("boot menu", {"hw_boot_menu": True}),
    case("hidden hypervisor", {"img_hide_hypervisor_id": True}),
    case("pmu", flavor={"extra_specs": {"hw:pmu": "false"}}),
    case("windows", instance={"os_type": "windows"}),
    case("kernel", instance={"kernel_id": guests.IMAGE_ID, "ramdisk_id": guests.IMAGE_ID}),
    case("host model", options=[("libvirt", "cpu_mode", "host-model")]),
    case("model", options=[("libvirt", "cpu_mode", "custom"), ("libvirt", "cpu_models", ["Nehalem"])]),
    case("flags", options=[("libvirt", "cpu_mode", "host-model"), ("libvirt", "cpu_model_extra_flags", ["-PDPE1GB"])]),
    case("no console", options=[("vnc", "enabled", False)]),
    case("no balloon", options=[("libvirt", "mem_stats_period_seconds", 0)]),
    case("translation cache", options=[("libvirt", "tb_cache_size", 32)]),
    case("pcie ports", Q35, options=[("libvirt", "num_pcie_ports", 5)]),
    case("kvm", options=[("libvirt", "virt_type", "kvm")]),
    case(
        "kvm queues",
        {"hw_vif_multiqueue_enabled": True},
        {"vcpus": 4},
        network_info=[PORT],
        options=[("libvirt", "virt_type", "kvm")],
    ),
    case(
        "kvm receive queue",
        network_info=[PORT],
        options=[("libvirt", "virt_type", "kvm"), ("libvirt", "rx_queue_size", 512)],
    ),
    case("discard", options=[("libvirt", "hw_disk_discard", "unmap")]),
    case("cache", options=[("libvirt", "disk_cachemodes", ["file=writethrough"])]),
    case("prefix", options=[("libvirt", "disk_prefix", "sd")]),
    case("serial of the host", options=[("libvirt", "sysinfo_serial", "hardware")]),
    case("no serial", options=[("libvirt", "sysinfo_serial", "none")]),
    case("ps2 mouse", options=[(None, "pointer_model", "ps2mouse")]),
]

OPTIONS = [("libvirt", "connection_uri", URI), ("libvirt", "virt_type", "qemu"), ("libvirt", "cpu_mode", "none")]


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """The peer's domains of all cases, by case."""
    root = tmp_path_factory.mktemp("peer")
    modules = libvirt_for_others(root / "modules")
    servers = [(parameters.values[0], guests.instance(**parameters.values[0]["instance"])) for parameters in CASES]
    given = {
        "options": [*OPTIONS, (None, "instances_path", str(root / "instances")), (None, "state_path", str(root))],
        "cases": [
            {
                "instance": instance.obj_to_primitive(),
                "image": each["image"].obj_to_primitive(),
                "network_info": each["network_info"],
                "options": each["options"],
                "block_devices": {
                    "root_device_name": None,
                    "ephemerals": [],
                    "swap": None,
                    "block_device_mapping": [],
                },
            }
            for each, instance in servers
        ],
    }
    (root / "instances").mkdir()
    done = subprocess.run(
        [PEER, str(pathlib.Path(__file__).with_name("peer_domain.py"))],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": str(modules)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    domains = json.loads(done.stdout)
    return root, {id(each): (instance, xml) for (each, instance), xml in zip(servers, domains, strict=True)}


@pytest.mark.parametrize("parameters", CASES)
def test_domain(parameters, peer):
    root, domains = peer
    instance, theirs = domains[id(parameters)]
    assert theirs.startswith("<domain"), theirs
    conf = guests.configuration(instances_path=str(root / "instances"), state_path=str(root))
    for group, name, value in (*OPTIONS, *parameters["options"]):
        conf.set_override(name, value, group)
    layout = Layout(root / "instances", "_base")
    connection = Connection(URI, "host")
    qemu_img = QemuImg(conf)
    made = builder.Builder(
        conf,
        connection,
        layout,
        storage.Storage(conf, layout, ImageCache(conf, layout, None, qemu_img), qemu_img),
        cpu.Processors(conf, connection),
    )
    files = layout.instance(instance.uuid)
    files.directory.mkdir(exist_ok=True)
    for name in ("disk", "disk.local", "disk.swap"):
        storage._record(files, files.directory / name, "qcow2")
    spec = guests.spec(instance=instance, image_meta=parameters["image"], network_info=parameters["network_info"])
    shape_of_it = made.shape(spec)
    ours = Counter(lines(made.domain(spec, shape_of_it, {}, f"instance-{instance.id:08x}").element()))
    expected = Counter(lines(ET.fromstring(theirs)))
    assert {"ours": sorted(ours - expected), "theirs": sorted(expected - ours)} == {"ours": [], "theirs": []}
