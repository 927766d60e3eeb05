"""The smaller devices, one dataclass each."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree as ET

from kilonova.virt.libvirt.config.element import element


@dataclasses.dataclass(frozen=True)
class SerialPort:
    """A pty whose output virtlogd also writes to `log`."""

    log: str

    def element(self) -> ET.Element:
        return element("serial", element("log", file=self.log, append="off"), type="pty")


@dataclasses.dataclass(frozen=True)
class Channel:
    """A virtio channel over a Unix socket of the host, as the guest agent uses it."""

    name: str
    path: str

    def element(self) -> ET.Element:
        return element(
            "channel",
            element("source", mode="bind", path=self.path),
            element("target", type="virtio", name=self.name),
            type="unix",
        )


@dataclasses.dataclass(frozen=True)
class Graphics:
    type: str
    listen: str

    def element(self) -> ET.Element:
        return element("graphics", type=self.type, autoport=True, listen=self.listen)


@dataclasses.dataclass(frozen=True)
class Video:
    """Video memory in KiB."""

    model: str
    vram_kib: int | None = None

    def element(self) -> ET.Element:
        return element("video", element("model", type=self.model, vram=self.vram_kib))


@dataclasses.dataclass(frozen=True)
class Input:
    type: str
    bus: str

    def element(self) -> ET.Element:
        return element("input", type=self.type, bus=self.bus)


@dataclasses.dataclass(frozen=True)
class Rng:
    """A source of randomness; at most `rate_bytes` per `rate_period` milliseconds."""

    path: str
    rate_bytes: int | None = None
    rate_period: int | None = None

    def element(self) -> ET.Element:
        limited = self.rate_bytes and self.rate_period
        return element(
            "rng",
            element("rate", period=self.rate_period, bytes=self.rate_bytes) if limited else None,
            element("backend", model="random", text=self.path),
            model="virtio",
        )


@dataclasses.dataclass(frozen=True)
class Watchdog:
    action: str
    model: str

    def element(self) -> ET.Element:
        return element("watchdog", model=self.model, action=self.action)


@dataclasses.dataclass(frozen=True)
class Sound:
    model: str

    def element(self) -> ET.Element:
        return element("sound", model=self.model)


@dataclasses.dataclass(frozen=True)
class MemoryBalloon:
    """`period` is how often the guest reports its memory, in seconds; None means no balloon at all."""

    period: int | None

    def element(self) -> ET.Element:
        return element(
            "memballoon",
            element("stats", period=self.period) if self.period else None,
            model="virtio" if self.period else "none",
            autodeflate="on",
            freePageReporting="on",
        )
