"""The <domain> itself: identity, processors, firmware, features and clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from kilonova.virt.libvirt.config.element import Part, element


@dataclasses.dataclass(frozen=True)
class SystemInfo:
    """SMBIOS strings the guest sees; `serial` and `uuid` identify it."""

    manufacturer: str
    product: str
    version: str
    serial: str | None
    uuid: str
    family: str = "Virtual Machine"

    def element(self) -> ET.Element:
        entries = dataclasses.asdict(self)
        return element(
            "sysinfo",
            element("system", *(element("entry", name=k, text=v) for k, v in entries.items() if v is not None)),
            type="smbios",
        )


@dataclasses.dataclass(frozen=True)
class Firmware:
    """UEFI. libvirt chooses the loader, with `secure` one that enforces signatures; or it is `pinned`."""

    secure: bool = False
    stateless: bool = False
    pinned: PinnedFirmware | None = None

    @property
    def selection(self) -> str | None:
        return None if self.pinned else "efi"

    def parts(self) -> list[ET.Element]:
        if self.pinned:
            return [self.pinned.loader, *([self.pinned.nvram] if self.pinned.nvram is not None else [])]
        feature = element("firmware", element("feature", name="secure-boot", enabled=self.secure))
        if not (self.secure or self.stateless):
            # libvirt 9.0 does not take a loader that is explicitly not secure along with its own choice.
            return [feature]
        return [feature, element("loader", secure=self.secure, stateless=True if self.stateless else None)]


@dataclasses.dataclass(frozen=True)
class PinnedFirmware:
    """What libvirt chose when the domain was first defined. It is kept, as another loader would not find the guest's
    variables where they are."""

    loader: ET.Element
    nvram: ET.Element | None
    system_management_mode: bool


@dataclasses.dataclass(frozen=True)
class Kernel:
    """Direct kernel boot; paths on the host."""

    path: str
    cmdline: str
    initrd: str | None = None


@dataclasses.dataclass(frozen=True)
class OperatingSystem:
    arch: str
    machine: str | None
    type: str = "hvm"
    firmware: Firmware | None = None
    kernel: Kernel | None = None
    boot_devices: Sequence[str] = ()
    smbios: bool = False
    boot_menu: bool = False

    def element(self) -> ET.Element:
        kernel = self.kernel
        return element(
            "os",
            element("type", arch=self.arch, machine=self.machine, text=self.type),
            *(self.firmware.parts() if self.firmware else ()),
            element("kernel", text=kernel.path) if kernel else None,
            element("initrd", text=kernel.initrd) if kernel and kernel.initrd else None,
            element("cmdline", text=kernel.cmdline) if kernel else None,
            *(element("boot", dev=device) for device in self.boot_devices),
            element("smbios", mode="sysinfo") if self.smbios else None,
            element("bootmenu", enable=True) if self.boot_menu else None,
            firmware=self.firmware.selection if self.firmware else None,
        )


@dataclasses.dataclass(frozen=True)
class Features:
    """`tcg_cache_mb`: size of the emulator's translation cache. `hyperv`: enlightenments for Windows guests."""

    acpi: bool = True
    apic: bool = True
    vmcoreinfo: bool = False
    tcg_cache_mb: int | None = None
    kvm_hidden: bool = False
    pmu: bool | None = None
    system_management_mode: bool = False
    hyperv: Part | None = None

    def element(self) -> ET.Element:
        cache = element("tb-cache", unit="MiB", text=self.tcg_cache_mb)
        return element(
            "features",
            element("acpi") if self.acpi else None,
            element("apic") if self.apic else None,
            element("tcg", cache) if self.tcg_cache_mb else None,
            self.hyperv,
            element("smm", state="on") if self.system_management_mode else None,
            element("vmcoreinfo") if self.vmcoreinfo else None,
            element("kvm", element("hidden", state="on")) if self.kvm_hidden else None,
            element("pmu", state="on" if self.pmu else "off") if self.pmu is not None else None,
        )


@dataclasses.dataclass(frozen=True)
class HyperV:
    """Enlightenments of the Hyper-V interface, as Windows guests use them."""

    features: Sequence[str] = ("vapic", "vpindex", "runtime", "synic", "reset", "frequencies", "tlbflush", "ipi")
    spinlock_retries: int = 8191
    vendor_id: str | None = None

    def element(self) -> ET.Element:
        return element(
            "hyperv",
            element("relaxed", state="on"),
            element("spinlocks", state="on", retries=self.spinlock_retries),
            *(element(name, state="on") for name in self.features),
            element("vendor_id", state="on", value=self.vendor_id) if self.vendor_id else None,
        )


@dataclasses.dataclass(frozen=True)
class Timer:
    name: str
    tickpolicy: str | None = None
    present: bool | None = None

    def element(self) -> ET.Element:
        return element("timer", name=self.name, tickpolicy=self.tickpolicy, present=self.present)


@dataclasses.dataclass(frozen=True)
class Clock:
    offset: str = "utc"
    timers: Sequence[Timer] = ()

    def element(self) -> ET.Element:
        return element("clock", *self.timers, offset=self.offset)


@dataclasses.dataclass(frozen=True)
class Cpu:
    """`mode` is libvirt's (host-model, host-passthrough, custom) or None for the hypervisor's default model."""

    mode: str | None
    model: str | None
    sockets: int
    cores: int
    threads: int
    features: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Flag -> policy (require, disable)."""
    maxphysaddr: Mapping[str, str] | None = None

    def element(self) -> ET.Element:
        return element(
            "cpu",
            element("model", text=self.model) if self.model else None,
            element("topology", sockets=self.sockets, cores=self.cores, threads=self.threads),
            element("maxphysaddr", **self.maxphysaddr) if self.maxphysaddr else None,
            *(element("feature", policy=policy, name=name) for name, policy in sorted(self.features.items())),
            mode=self.mode,
            match="exact",
        )


@dataclasses.dataclass(frozen=True)
class CpuTune:
    """Scheduler limits; shares are relative, period and quota in microseconds."""

    shares: int | None = None
    period: int | None = None
    quota: int | None = None

    def element(self) -> ET.Element:
        values = dataclasses.asdict(self).items()
        return element("cputune", *(element(name, text=value) for name, value in values if value is not None))


@dataclasses.dataclass(frozen=True)
class Domain:
    """A whole guest; memory in KiB."""

    type: str
    uuid: str
    name: str
    memory_kib: int
    vcpus: int
    os: OperatingSystem
    io_threads: int = 1
    features: Features = dataclasses.field(default_factory=Features)
    clock: Clock = dataclasses.field(default_factory=Clock)
    cpu: Part | None = None
    cpu_tune: Part | None = None
    metadata: Part | None = None
    sysinfo: Part | None = None
    devices: Sequence[Part] = ()

    def element(self) -> ET.Element:
        return element(
            "domain",
            element("uuid", text=self.uuid),
            element("name", text=self.name),
            element("memory", text=self.memory_kib),
            element("vcpu", text=self.vcpus),
            element("metadata", self.metadata) if self.metadata else None,
            self.sysinfo,
            self.os,
            self.features,
            element("iothreads", text=self.io_threads),
            self.cpu_tune,
            self.clock,
            self.cpu,
            element("devices", *self.devices),
            type=self.type,
        )
