"""What the host has: resources, inventory and traits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
import os_traits
from oslo_config import cfg
from oslo_log import log

from kilonova.contract import exceptions
from kilonova.virt.driver import Inventory, NodeResources
from kilonova.virt.libvirt import cpu, firmware, machine, network
from kilonova.virt.libvirt.config.element import parse
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.paths import Layout
from kilonova.virt.libvirt.storage import disk_space

LOG = log.getLogger(__name__)

_GIB = 1024**3
_KIB_PER_MIB = 1024
_MODES = {"hvm": "hvm", "exe": "exe", "linux": "xen", "xen": "xen"}
SOUND_MODELS = ("ac97", "es1370", "ich6", "ich9", "pcspk", "sb16", "usb")
_PROBED_MACHINES = {"x86_64": ("pc", "q35"), "i686": ("pc", "q35"), "aarch64": ("virt",), "armv7l": ("virt",)}
"""Machine types whose devices are published; the rest of a long list adds nothing to them."""
_TRAITS_SINCE = {
    "COMPUTE_SECURITY_STATELESS_FIRMWARE": 8_006_000,
    "COMPUTE_ADDRESS_SPACE_EMULATED": 8_007_000,
    "COMPUTE_ADDRESS_SPACE_PASSTHROUGH": 8_007_000,
}
"""Traits that need nothing but a libvirt that is young enough: it does not say whether it can."""


class HostFacts:
    def __init__(
        self, conf: cfg.ConfigOpts, connection: Connection, layout: Layout, processors: cpu.Processors
    ) -> None:
        self._conf = conf
        self._connection = connection
        self._layout = layout
        self._processors = processors
        self._traits: set[str] | None = None

    def resources(self) -> NodeResources:
        connection = self._connection.get()
        space = disk_space(self._layout.instances)
        domains = connection.listAllDomains()
        return NodeResources(
            hostname=connection.getHostname(),
            hypervisor_type=connection.getType(),
            hypervisor_version=self._connection.versions[1],
            vcpus=self.vcpus(),
            memory_mb=self.memory_mb(),
            local_gb=space.total // _GIB,
            vcpus_used=sum(_vcpus(domain) for domain in domains),
            memory_mb_used=used_memory_mb(),
            local_gb_used=space.used // _GIB,
            disk_available_least=(space.free - sum(_promised(domain) for domain in domains)) // _GIB,
            cpu_info=json.dumps(cpu_info(self._connection.capabilities, self._connection.host_features)),
            supported_instances=supported_instances(self._connection.capabilities),
        )

    def inventory(self) -> dict[str, Inventory]:
        """Resource classes whose total is zero are left out: Placement refuses them."""
        disk = disk_space(self._layout.instances).total // _GIB
        totals = {"VCPU": self.vcpus(), "MEMORY_MB": self.memory_mb(), "DISK_GB": disk}
        return {name: Inventory(total=total, max_unit=total) for name, total in totals.items() if total > 0}

    def vcpus(self) -> int:
        """Processors that are switched on."""
        return int(sum(self._connection.get().getCPUMap()[1]))

    def memory_mb(self) -> int:
        return int(self._connection.get().getInfo()[1])

    def traits(self) -> set[str]:
        if self._traits is None:
            self._traits = self._find_traits()
        return set(self._traits)

    def _find_traits(self) -> set[str]:
        arch = cpu.host_arch(self._connection.capabilities)
        found = self._processors.traits() | {f"HW_ARCH_{arch.upper()}", "COMPUTE_NET_VIRTIO_PACKED"}
        found |= {f"COMPUTE_NET_VIF_MODEL_{_trait(model)}" for model in self._vif_models()}
        found |= {f"COMPUTE_SOUND_MODEL_{_trait(model)}" for model in SOUND_MODELS}
        found |= {f"COMPUTE_ARCH_{guest.upper()}" for guest in self._native_architectures(arch)}
        found |= {trait for trait, version in _TRAITS_SINCE.items() if self._connection.versions[0] >= version}
        if hyperthreading(self._connection.capabilities):
            found.add("HW_CPU_HYPERTHREADING")
        for device in self._device_capabilities(arch):
            if firmware.supports_secure_boot(device):
                found.add(os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT)
            found |= {f"COMPUTE_STORAGE_BUS_{_trait(bus)}" for bus in _values(device, "disk", "bus")}
            found |= {f"COMPUTE_GRAPHICS_MODEL_{_trait(model)}" for model in _values(device, "video", "modelType")}
        return found & set(os_traits.get_traits())

    def _vif_models(self) -> Iterator[str]:
        with_igb = self._connection.versions >= (9_003_000, 8_000_000)
        yield from (model for model in network.VIF_MODELS if with_igb or model != "igb")

    def _native_architectures(self, arch: str) -> set[str]:
        # A guest of another architecture needs settings this driver does not make.
        return {arch, "i686"} if arch == "x86_64" else {arch}

    def _device_capabilities(self, arch: str) -> Iterator[ET.Element]:
        for kind in _PROBED_MACHINES.get(arch, (None,)):
            try:
                yield self._connection.domain_capabilities(arch, kind, self._conf.libvirt.virt_type)
            except exceptions.Invalid as failure:
                LOG.info("%s", failure)


def _trait(name: str) -> str:
    return name.replace("-", "_").upper()


def _values(capabilities: ET.Element, device: str, enumeration: str) -> set[str]:
    return {value.text or "" for value in capabilities.iterfind(f"devices/{device}/enum[@name='{enumeration}']/value")}


def hyperthreading(capabilities: ET.Element) -> bool:
    """Whether some core runs several threads."""
    siblings = (each.get("siblings", "") for each in capabilities.iterfind("host/topology/cells/cell/cpus/cpu"))
    return any("," in each or "-" in each for each in siblings)


def cpu_info(capabilities: ET.Element, features: Iterable[str]) -> dict[str, Any]:
    """The host's processor as the scheduler and the API's hypervisor pages show it."""
    found = capabilities.find("host/cpu")
    processor = found if found is not None else ET.Element("cpu")
    topology = processor.find("topology")
    shape = topology.attrib if topology is not None else {}
    cells = len(capabilities.findall("host/topology/cells/cell")) or 1
    info: dict[str, Any] = {
        "arch": processor.findtext("arch"),
        "model": processor.findtext("model"),
        "vendor": processor.findtext("vendor"),
        "topology": {"cells": cells, **{part: int(shape.get(part, 1)) for part in ("sockets", "cores", "threads")}},
        "features": sorted(features),
    }
    physical = processor.find("maxphysaddr")
    if physical is not None:
        info["maxphysaddr"] = {"mode": physical.get("mode"), "bits": int(physical.get("bits", 0)) or None}
    return info


def supported_instances(capabilities: ET.Element) -> list[list[str]]:
    """(architecture, hypervisor type, vm mode) of every kind of guest the hypervisor can run."""
    found = []
    for guest in capabilities.iterfind("guest"):
        arch = guest.find("arch")
        mode = _MODES.get(guest.findtext("os_type") or "")
        if arch is None or mode is None:
            continue
        name = machine.architecture({"hw_architecture": arch.get("name", "")}, "")
        found += [[name, domain.get("type", ""), mode] for domain in arch.iterfind("domain")]
    return found


def used_memory_mb() -> int:
    """Memory that is neither free nor only holds file pages."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    sizes = {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1}
    available = sum(sizes.get(name, 0) for name in ("MemFree", "Buffers", "Cached"))
    return max(0, sizes["MemTotal"] - available) // _KIB_PER_MIB


def _vcpus(domain: libvirt.virDomain) -> int:
    """Processors a running guest uses; none when it vanished meanwhile."""
    try:
        return int(domain.info()[3]) if domain.isActive() else 0
    except libvirt.libvirtError as failure:
        LOG.debug("A guest is not counted: %s", failure)
        return 0


def _promised(domain: libvirt.virDomain) -> int:
    """Bytes that the guest's local disks may still grow by."""
    try:
        found = parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
        paths = [_local_path(disk) for disk in found.iterfind("devices/disk[@type='file'][@device='disk']")]
        sizes = [domain.blockInfo(path) for path in paths if path]
    except libvirt.libvirtError as failure:
        LOG.debug("A guest's disks are not counted: %s", failure)
        return 0
    return sum(max(0, capacity - physical) for capacity, _, physical in sizes)


def _local_path(disk: ET.Element) -> str | None:
    source = disk.find("source")
    return source.get("file") if source is not None else None


CAPABILITIES = {
    "supports_device_tagging": True,
    "supports_multiattach": True,
    "supports_image_type_aki": True,
    "supports_image_type_ami": True,
    "supports_image_type_ari": True,
    "supports_image_type_iso": True,
    "supports_image_type_qcow2": True,
    "supports_image_type_raw": True,
}
"""What the driver can do at all, by the names the agent and Placement's traits know."""
