"""Which disks a guest has and by which names and buses it sees them."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.virt.driver import BlockDevices, LocalDisk, Volume

ROOT = "disk"
LOCAL = "disk.local"
SWAP = "disk.swap"
CONFIG = "disk.config"

BUSES = frozenset({"virtio", "scsi", "ide", "usb", "fdc", "sata"})
_PREFIXES = {"ide": "hd", "virtio": "vd", "scsi": "sd", "usb": "sd", "fdc": "fd", "sata": "sd"}
_BUS_OF_PREFIX = {"hd": "ide", "vd": "virtio", "sd": "scsi", "fd": "fdc"}
_TYPES = frozenset({"disk", "cdrom", "floppy", "lun"})
_BOOT_DEVICES = {"disk": "hd", "lun": "hd", "cdrom": "cdrom", "floppy": "fd"}
_NO_IDE = ("ppc", "ppc64", "ppcle", "ppc64le", "s390", "s390x", "aarch64")
_IDE_DISKS = 4
_MANY = 26 * 27


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a disk appears in the guest. `order` is its turn when the guest boots, None if it does not boot from it."""

    name: str
    """The file's name in the guest's directory, or the volume's id."""
    target: str
    bus: str
    device: str = "disk"
    order: int | None = None


@dataclasses.dataclass(frozen=True)
class Hardware:
    """What decides about buses and names: the image's properties, the machine and the operator's options."""

    arch: str
    machine: str | None
    properties: Mapping[str, Any]
    prefix: str | None = None
    limit: int | None = None
    """Most disks; None for no limit."""

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, arch: str, machine: str | None, properties: Mapping[str, Any]) -> Hardware:
        limit = conf.compute.max_disk_devices_to_attach
        return cls(arch, machine, properties, conf.libvirt.disk_prefix, limit if limit >= 0 else None)

    def bus(self, device: str) -> str:
        """The bus for a kind of device. Raises UnsupportedHardware for one this hypervisor does not have."""
        asked = self.properties.get("hw_disk_bus" if device in ("disk", "lun") else f"hw_{device}_bus")
        if asked:
            if asked not in BUSES:
                raise exceptions.UnsupportedHardware(model=asked, virt="qemu")
            return str(asked)
        if device == "cdrom":
            return self._cdrom_bus()
        return "fdc" if device == "floppy" else "virtio"

    def _cdrom_bus(self) -> str:
        if self.arch in _NO_IDE:
            return "scsi"
        return "sata" if self.machine and "q35" in self.machine else "ide"


class _Names:
    """Hands out device names; `taken` are those the request already fixed."""

    def __init__(self, hardware: Hardware, taken: Iterable[str]) -> None:
        self._hardware = hardware
        self._taken = set(taken)
        self._used: set[str] = set()

    def use(self, name: str) -> str:
        self._used.add(name)
        return name

    def free(self, bus: str) -> str:
        """The next free name on the bus. Raises TooManyDiskDevices."""
        limit = _IDE_DISKS if bus == "ide" else self._hardware.limit
        for suffix in letters(limit if limit is not None else _MANY):
            name = f"{self._hardware.prefix or _PREFIXES[bus]}{suffix}"
            if name not in self._used and name not in self._taken:
                return self.use(name)
        raise exceptions.TooManyDiskDevices(maximum=limit if limit is not None else _MANY)


def letters(count: int) -> Iterator[str]:
    """a, b, ... z, aa, ab ..."""
    for index in range(count):
        first, last = divmod(index, 26)
        yield (string.ascii_lowercase[first - 1] if first else "") + string.ascii_lowercase[last]


def strip(device: str | None) -> str:
    return (device or "").removeprefix("/dev/")


def plan(
    hardware: Hardware,
    block_devices: BlockDevices,
    *,
    is_iso: bool,
    ephemeral_gb: int,
    swap_mb: int,
    config_drive: str | None,
) -> list[Place]:
    """All disks in the order they are attached: root, ephemeral, swap, config drive, volumes.

    `is_iso` makes the root disk a CD-ROM. `ephemeral_gb` and `swap_mb` are the flavor's, used where the request lists
    no such disk of its own. `config_drive` is how the config drive appears (cdrom or disk), None for none.
    Raises UnsupportedHardware, TooManyDiskDevices.
    """
    named: list[Volume | LocalDisk] = [*block_devices.volumes, *block_devices.ephemerals]
    names = _Names(hardware, filter(None, (strip(_name_of(each)) for each in named)))
    places = [_root(hardware, names, block_devices, is_iso)]
    places += _ephemerals(hardware, names, block_devices.ephemerals, ephemeral_gb)
    places += _swap(hardware, names, block_devices.swap, swap_mb)
    volumes = [_volume(hardware, names, each) for each in block_devices.volumes if each.boot_index != 0]
    if config_drive:
        bus = hardware.bus(config_drive)
        places.append(Place(CONFIG, names.free(bus), bus, config_drive))
    return places + volumes


def boot_devices(places: Sequence[Place]) -> list[str]:
    """libvirt's names of what to boot from, each once, in order."""
    ordered = sorted((each for each in places if each.order is not None), key=lambda each: each.order or 0)
    return list(dict.fromkeys(_BOOT_DEVICES[each.device] for each in ordered))


def _name_of(disk: Volume | LocalDisk) -> str | None:
    return disk.mount_device if isinstance(disk, Volume) else disk.device_name


def _root(hardware: Hardware, names: _Names, block_devices: BlockDevices, is_iso: bool) -> Place:
    volume = block_devices.boot_volume
    device = "cdrom" if is_iso else "disk"
    if volume is not None:
        fixed = strip(volume.mount_device) or strip(block_devices.root_device_name)
        return _placed(hardware, names, volume.volume_id, fixed, volume.disk_bus, volume.device_type or device, 1)
    bus = hardware.bus(device)
    fixed = strip(block_devices.root_device_name)
    return Place(ROOT, names.use(fixed) if fixed else names.free(bus), bus, device, 1)


def _ephemerals(hardware: Hardware, names: _Names, asked: Sequence[LocalDisk], flavor_gb: int) -> list[Place]:
    if not asked:
        if flavor_gb <= 0:
            return []
        bus = hardware.bus("disk")
        return [Place(LOCAL, names.free(bus), bus)]
    return [
        _placed(hardware, names, f"disk.eph{index}", strip(disk.device_name), disk.disk_bus, "disk", None)
        for index, disk in enumerate(asked)
    ]


def _swap(hardware: Hardware, names: _Names, asked: LocalDisk | None, flavor_mb: int) -> list[Place]:
    if (asked.size if asked else flavor_mb) <= 0:
        return []
    disk = asked or LocalDisk(flavor_mb)
    return [_placed(hardware, names, SWAP, strip(disk.device_name), disk.disk_bus, "disk", None)]


def _volume(hardware: Hardware, names: _Names, volume: Volume) -> Place:
    order = volume.boot_index + 1 if volume.boot_index is not None and volume.boot_index > 0 else None
    fixed = strip(volume.mount_device)
    return _placed(hardware, names, volume.volume_id, fixed, volume.disk_bus, volume.device_type or "disk", order)


def _placed(
    hardware: Hardware, names: _Names, name: str, fixed: str, bus: str | None, device: str, order: int | None
) -> Place:
    kind = device if device in _TYPES else "disk"
    if bus not in BUSES:
        bus = _BUS_OF_PREFIX.get(fixed[:2]) if fixed else None
    chosen = bus or hardware.bus(kind)
    return Place(name, names.use(fixed) if fixed else names.free(chosen), chosen, kind, order)
