"""<disk> and the controllers disks hang on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from kilonova.virt.libvirt.config.element import element

IO_LIMITS = (
    "read_bytes_sec",
    "read_iops_sec",
    "write_bytes_sec",
    "write_iops_sec",
    "total_bytes_sec",
    "total_iops_sec",
)
"""Limits a disk can have, in the order libvirt lists them; bytes or operations per second."""

_SOURCE_ATTRIBUTE = {"file": "file", "block": "dev"}


@dataclasses.dataclass(frozen=True)
class NetworkSource:
    """Bytes that the hypervisor itself reads from a storage cluster."""

    protocol: str
    name: str
    hosts: Sequence[tuple[str, str | None]]
    """(address, port)."""
    username: str | None = None
    secret_type: str | None = None
    secret_uuid: str | None = None

    def elements(self) -> list[ET.Element]:
        hosts = (element("host", name=name, port=port) for name, port in self.hosts)
        parts = [element("source", *hosts, protocol=self.protocol, name=self.name)]
        if self.username and self.secret_uuid:
            secret = element("secret", type=self.secret_type or self.protocol, uuid=self.secret_uuid)
            parts.append(element("auth", secret, username=self.username))
        return parts


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk, CD-ROM or LUN; `source` is a path of the host (`source_type` file or block) or a network source."""

    source: str | NetworkSource
    target: str
    bus: str
    format: str
    source_type: str = "file"
    device: str = "disk"
    cache: str | None = None
    io: str | None = None
    discard: str | None = None
    serial: str | None = None
    readonly: bool = False
    shareable: bool = False
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    scsi_unit: int | None = None
    """Place on the virtio-scsi controller; libvirt chooses one where it is None."""

    def element(self) -> ET.Element:
        tuning = [element(name, text=self.limits[name]) for name in IO_LIMITS if name in self.limits]
        return element(
            "disk",
            element("driver", name="qemu", type=self.format, cache=self.cache, discard=self.discard, io=self.io),
            *self._source(),
            element("target", dev=self.target, bus=self.bus),
            element("serial", text=self.serial) if self.serial and self.device != "lun" else None,
            element("iotune", *tuning) if tuning else None,
            element("readonly") if self.readonly else None,
            element("shareable") if self.shareable else None,
            element("address", type="drive", controller=0, unit=self.scsi_unit) if self.scsi_unit is not None else None,
            type="network" if isinstance(self.source, NetworkSource) else self.source_type,
            device=self.device,
        )

    def _source(self) -> list[ET.Element]:
        if isinstance(self.source, NetworkSource):
            return self.source.elements()
        return [element("source", **{_SOURCE_ATTRIBUTE[self.source_type]: self.source})]


@dataclasses.dataclass(frozen=True)
class Controller:
    type: str
    model: str | None = None
    index: int | None = None

    def element(self) -> ET.Element:
        return element("controller", type=self.type, index=self.index, model=self.model)
