"""The parts of a guest that are neither disk, network nor display: architecture, features, clock, controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from oslo_config import cfg
from oslo_utils import strutils

from kilonova.contract import exceptions, objects
from kilonova.virt.libvirt import disks, display, firmware
from kilonova.virt.libvirt.config.devices import Input
from kilonova.virt.libvirt.config.disk import Controller, Disk
from kilonova.virt.libvirt.config.domain import Clock, Features, HyperV, Timer
from kilonova.virt.libvirt.config.element import Part

X86 = ("i686", "x86_64")
CACHE_MODES = frozenset({"default", "none", "writethrough", "writeback", "directsync", "unsafe"})
_USB_MODELS = frozenset({"none", "nec-xhci", "qemu-xhci"})
_SPOOFED_VENDOR = "1234567890ab"
_ALIASES = {"x86-64": "x86_64", "amd64": "x86_64", "i386": "i686", "i486": "i686", "i586": "i686", "arm64": "aarch64"}


def properties(image: objects.ImageMeta) -> dict[str, Any]:
    """The image's properties that are set, as plain data."""
    found = image.properties
    return {name: getattr(found, name) for name in found.fields if name in found}


def architecture(found: Mapping[str, Any], host: str) -> str:
    asked = str(found.get("hw_emulation_architecture") or found.get("hw_architecture") or host)
    return _ALIASES.get(asked.lower(), asked.lower())


def features(
    conf: cfg.ConfigOpts, arch: str, found: Mapping[str, Any], extra_specs: Mapping[str, str], os_type: str | None
) -> Features:
    hidden = any(
        strutils.bool_from_string(each)
        for each in (
            extra_specs.get("hide_hypervisor_id"),
            extra_specs.get("hw:hide_hypervisor_id"),
            found.get("img_hide_hypervisor_id"),
        )
    )
    pmu = extra_specs.get("hw:pmu", found.get("hw_pmu"))
    return Features(
        vmcoreinfo=arch in (*X86, "aarch64"),
        tcg_cache_mb=conf.libvirt.tb_cache_size if conf.libvirt.virt_type == "qemu" else None,
        kvm_hidden=hidden,
        pmu=strutils.bool_from_string(pmu) if pmu is not None else None,
        hyperv=HyperV(vendor_id=_SPOOFED_VENDOR if hidden else None) if os_type == "windows" else None,
    )


def clock(conf: cfg.ConfigOpts, arch: str, found: Mapping[str, Any], os_type: str | None) -> Clock:
    """Windows expects the clock to show local time. The timers are KVM's."""
    windows = os_type == "windows"
    offset = "localtime" if windows else "utc"
    if conf.libvirt.virt_type != "kvm":
        return Clock(offset)
    timers = [Timer("pit", tickpolicy="delay"), Timer("rtc", tickpolicy="catchup")]
    if arch in X86:
        timers.append(Timer("hpet", present=strutils.bool_from_string(found.get("hw_time_hpet", False))))
    if windows:
        timers.append(Timer("hypervclock", present=True))
    return Clock(offset, timers)


def maxphysaddr(found: Mapping[str, Any], extra_specs: Mapping[str, str]) -> dict[str, str] | None:
    """How many bits a physical address has in the guest."""
    mode = extra_specs.get("hw:maxphysaddr_mode") or found.get("hw_maxphysaddr_mode")
    bits = extra_specs.get("hw:maxphysaddr_bits") or found.get("hw_maxphysaddr_bits")
    if not mode:
        return None
    return {"mode": str(mode), **({"bits": str(bits)} if bits else {})}


def controllers(
    conf: cfg.ConfigOpts,
    arch: str,
    machine: str | None,
    found: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    devices: Sequence[Part],
) -> list[Controller]:
    """PCIe ports for plugging devices later, and USB only where something needs it (an emulated one costs cycles)."""
    made = []
    ports = conf.libvirt.num_pcie_ports
    if ports and firmware.is_pcie(machine):
        made = [Controller("pci", "pcie-root"), *(Controller("pci", "pcie-root-port") for _ in range(ports))]
    return [*made, Controller("usb", _usb_model(arch, found, extra_specs, devices), 0)]


def _usb_model(
    arch: str, found: Mapping[str, Any], extra_specs: Mapping[str, str], devices: Sequence[Part]
) -> str | None:
    if arch.startswith("ppc") or any(isinstance(each, Input | Disk) and each.bus == "usb" for each in devices):
        return None
    model = str(extra_specs.get("hw:usb_model") or found.get("hw_usb_model") or "none")
    if model not in _USB_MODELS:
        raise exceptions.Invalid(f"Invalid USB controller model {model}; allowed: {', '.join(sorted(_USB_MODELS))}")
    return model


def serial(source: str, uuid: str, capabilities: ET.Element) -> str | None:
    """The SMBIOS serial number by `[libvirt] sysinfo_serial`. Raises InternalError when the host has none."""
    if source == "unique":
        return uuid
    if source == "none":
        return None
    machine_id = Path("/etc/machine-id")
    if source == "os" or (source == "auto" and machine_id.exists()):
        try:
            return machine_id.read_text().split()[0]
        except (OSError, IndexError) as failure:
            raise exceptions.InternalError(err="sysinfo_serial: the host's machine id cannot be read") from failure
    return capabilities.findtext("host/uuid")


def chosen(conf: cfg.ConfigOpts, arch: str, machine: str | None, found: Mapping[str, Any]) -> dict[str, str | None]:
    """The image properties that were filled in by default, with what they became; None where the guest has none."""
    hardware = disks.Hardware.of(conf, arch, machine, found)
    bus = display.pointer_bus(conf, found) if conf.vnc.enabled else None
    return {
        "hw_machine_type": machine,
        "hw_disk_bus": hardware.bus("disk"),
        "hw_cdrom_bus": hardware.bus("cdrom"),
        "hw_input_bus": bus,
        "hw_pointer_model": "usbtablet" if bus else None,
        "hw_video_model": found.get("hw_video_model") or "virtio",
        "hw_vif_model": found.get("hw_vif_model") or ("virtio" if conf.libvirt.use_virtio_for_bridges else None),
    }
