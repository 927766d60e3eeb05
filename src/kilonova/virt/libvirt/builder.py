"""From what a guest should be to the domain libvirt starts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from oslo_config import cfg
from oslo_utils import strutils

from kilonova.base import clock
from kilonova.virt import configdrive
from kilonova.virt.driver import GuestSpec
from kilonova.virt.hardware.cpu_topology import best_topology
from kilonova.virt.libvirt import (
    balloon,
    console,
    cpu,
    describe,
    disks,
    display,
    firmware,
    machine,
    network,
    rng,
    unsupported,
    volumes,
    watchdog,
)
from kilonova.virt.libvirt.config.devices import Channel, Sound
from kilonova.virt.libvirt.config.disk import IO_LIMITS, Controller, Disk
from kilonova.virt.libvirt.config.domain import Domain, Features, Kernel, OperatingSystem
from kilonova.virt.libvirt.config.element import Part
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.paths import InstanceFiles, Layout
from kilonova.virt.libvirt.qemu_img import supports_direct_io
from kilonova.virt.libvirt.storage import Storage

_KIB_PER_MIB = 1024
_CONSOLES = "console=tty0 console=ttyS0 console=hvc0"
_AGENT = "org.qemu.guest_agent.0"


@dataclasses.dataclass(frozen=True)
class Shape:
    """Everything about a guest's hardware that follows from flavor, image and host, worked out once."""

    properties: Mapping[str, Any]
    extra_specs: Mapping[str, str]
    arch: str
    machine: str | None
    places: Sequence[disks.Place]
    config_drive: bool


class Builder:
    def __init__(
        self, conf: cfg.ConfigOpts, connection: Connection, layout: Layout, storage: Storage, processors: cpu.Processors
    ) -> None:
        self._conf = conf
        self._connection = connection
        self._layout = layout
        self._storage = storage
        self._processors = processors

    def shape(self, guest: GuestSpec) -> Shape:
        """Raises InvalidMachineType, UnsupportedHardware, TooManyDiskDevices, and Invalid for what is not built."""
        instance, image = guest.instance, guest.image_meta
        properties = machine.properties(image)
        extra_specs = instance.flavor.extra_specs or {}
        unsupported.refuse(properties, extra_specs)
        unsupported.refuse_volumes(guest.block_devices.volumes)
        arch = machine.architecture(properties, cpu.host_arch(self._connection.capabilities))
        kind = firmware.machine_type(self._conf, arch, properties)
        firmware.check_machine(self._connection.capabilities, arch, kind, image)
        with_drive = configdrive.required(self._conf, instance, image)
        places = disks.plan(
            disks.Hardware.of(self._conf, arch, kind, properties),
            guest.block_devices,
            is_iso="disk_format" in image and image.disk_format == "iso",
            ephemeral_gb=instance.flavor.ephemeral_gb,
            swap_mb=instance.flavor.swap,
            config_drive=configdrive.device_type(self._conf.config_drive_format) if with_drive else None,
        )
        return Shape(properties, extra_specs, arch, kind, places, with_drive)

    def domain(
        self,
        guest: GuestSpec,
        shape: Shape,
        sources: Mapping[str, volumes.Source],
        name: str,
        existing: ET.Element | None = None,
    ) -> Domain:
        """The guest's domain. `sources` are the connected volumes by id; `existing` is its present domain, if any."""
        instance, flavor = guest.instance, guest.instance.flavor
        host_arch = cpu.host_arch(self._connection.capabilities)
        native = shape.arch == host_arch
        topology = best_topology(flavor.vcpus, shape.extra_specs, shape.properties)
        x86 = shape.arch in machine.X86
        system = self._os(guest, shape, existing)
        return Domain(
            type=self._conf.libvirt.virt_type if native else "qemu",
            uuid=instance.uuid,
            name=name,
            memory_kib=flavor.memory_mb * _KIB_PER_MIB,
            vcpus=flavor.vcpus,
            os=system,
            features=self._features(shape, instance.os_type, system),
            clock=machine.clock(self._conf, shape.arch, shape.properties, instance.os_type),
            cpu=self._processors.guest(flavor, topology, machine.maxphysaddr(shape.properties, shape.extra_specs))
            if native
            else None,
            cpu_tune=cpu.tuning(shape.extra_specs),
            metadata=describe.metadata(guest, clock.now()),
            sysinfo=describe.system_info(instance.uuid, self._serial(instance.uuid)) if x86 else None,
            devices=self._devices(guest, shape, sources, name),
        )

    @functools.cached_property
    def cache_mode(self) -> str:
        """Past the host's page cache where the file system can: a crash of the host then loses no acknowledged write,
        and the guest can be moved."""
        return "none" if supports_direct_io(self._layout.instances) else "writeback"

    def _os(self, guest: GuestSpec, shape: Shape, existing: ET.Element | None) -> OperatingSystem:
        capabilities = self._connection.domain_capabilities(shape.arch, shape.machine, self._conf.libvirt.virt_type)
        asked = shape.properties.get("hw_boot_menu", shape.extra_specs.get("hw:boot_menu", False))
        kernel = self._kernel(guest, shape)
        return OperatingSystem(
            arch=shape.arch,
            machine=shape.machine,
            firmware=firmware.choose(shape.properties, shape.extra_specs, shape.arch, capabilities, existing),
            kernel=kernel,
            boot_devices=() if kernel else disks.boot_devices(shape.places),
            smbios=shape.arch in machine.X86,
            boot_menu=strutils.bool_from_string(asked),
        )

    def _features(self, shape: Shape, os_type: str | None, system: OperatingSystem) -> Features:
        found = machine.features(self._conf, shape.arch, shape.properties, shape.extra_specs, os_type)
        pinned = system.firmware.pinned if system.firmware else None
        return dataclasses.replace(found, system_management_mode=pinned is not None and pinned.system_management_mode)

    def _kernel(self, guest: GuestSpec, shape: Shape) -> Kernel | None:
        instance = guest.instance
        if not instance.kernel_id:
            return None
        files = self._layout.instance(instance.uuid)
        cmdline = f"root=/dev/{shape.places[0].target} {_CONSOLES}"
        if self._conf.libvirt.virt_type == "qemu":
            cmdline += " no_timer_check"
        cmdline = shape.properties.get("os_command_line") or cmdline
        return Kernel(str(files.kernel), cmdline, str(files.ramdisk) if instance.ramdisk_id else None)

    def _devices(self, guest: GuestSpec, shape: Shape, sources: Mapping[str, volumes.Source], name: str) -> list[Part]:
        properties, specs, conf = shape.properties, shape.extra_specs, self._conf
        files = self._layout.instance(guest.instance.uuid)
        found: list[Part] = [*self._disks(guest, shape, sources, files)]
        found += network.interfaces(conf, guest.network_info, properties, specs, guest.instance.flavor.vcpus)
        found.append(console.device(files.console_log))
        if model := properties.get("hw_sound_model") or specs.get("hw:sound_model"):
            found.append(Sound(model))
        found += display.devices(conf, shape.arch, properties, specs)
        if strutils.bool_from_string(properties.get("hw_qemu_guest_agent", False)):
            found.append(Channel(_AGENT, f"/var/lib/libvirt/qemu/{_AGENT}.{name}.sock"))
        found += filter(None, [rng.device(conf, specs)])
        found += machine.controllers(conf, shape.arch, shape.machine, properties, specs, found)
        found += filter(None, [watchdog.device(shape.arch, properties, specs)])
        found.append(balloon.device(conf))
        return found

    def _disks(
        self, guest: GuestSpec, shape: Shape, sources: Mapping[str, volumes.Source], files: InstanceFiles
    ) -> list[Part]:
        volumes_by_id = {each.volume_id: each for each in guest.block_devices.volumes}
        discard = self._conf.libvirt.hw_disk_discard
        made: list[Disk] = []
        for place in shape.places:
            if place.name in volumes_by_id:
                made.append(
                    volumes.disk(
                        volumes_by_id[place.name], place, sources[place.name], self._cache(sources[place.name]), discard
                    )
                )
            else:
                made.append(self._local(place, shape, files, discard))
        controller = shape.properties.get("hw_scsi_model")
        if controller == "virtio-scsi":
            made = _numbered(made)
        return [*made, *([Controller("scsi", controller, 0)] if controller else [])]

    def _local(self, place: disks.Place, shape: Shape, files: InstanceFiles, discard: str | None) -> Disk:
        path = files.directory / place.name
        is_drive = place.name == disks.CONFIG
        limits = {name: shape.extra_specs.get(f"quota:disk_{name}") for name in IO_LIMITS}
        return Disk(
            source=str(path),
            target=place.target,
            bus=place.bus,
            device=place.device,
            format="raw" if is_drive else self._storage.disk_format(files, Path(path)),
            cache=self._configured_cache("file") or self.cache_mode,
            io=None if is_drive else self._storage.driver_io,
            discard=discard,
            limits={name: int(value) for name, value in limits.items() if value is not None},
        )

    def _cache(self, source: volumes.Source) -> str | None:
        kind = source.source_type if isinstance(source.source, str) else "network"
        return self._configured_cache(kind) or ("none" if kind == "block" else self.cache_mode)

    def _configured_cache(self, kind: str) -> str | None:
        for pair in self._conf.libvirt.disk_cachemodes:
            name, _, mode = pair.partition("=")
            if name == kind and mode in machine.CACHE_MODES:
                return str(mode)
        return None

    def _serial(self, uuid: str) -> str | None:
        return machine.serial(self._conf.libvirt.sysinfo_serial, uuid, self._connection.capabilities)


def _numbered(made: Sequence[Disk]) -> list[Disk]:
    """Units on the SCSI controller by hand: libvirt would only count to seven."""
    unit = 0
    found = []
    for disk in made:
        if disk.bus == "scsi":
            disk = dataclasses.replace(disk, scsi_unit=unit)
            unit += 1
        found.append(disk)
    return found
