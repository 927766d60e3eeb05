"""<interface>: a guest's network card and what it is connected to on the host."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from xml.etree import ElementTree as ET

from kilonova.virt.libvirt.config.element import element

_Rate = Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Interface:
    """`type` ethernet uses the tap device `target` as it is, bridge lets libvirt put it into `bridge`.

    `managed=False` leaves a tap device alone that somebody else made. Bandwidth in kilobytes per second.
    """

    type: str
    mac: str
    target: str | None = None
    bridge: str | None = None
    model: str | None = None
    driver: str | None = None
    queues: int | None = None
    rx_queue_size: int | None = None
    packed: bool = False
    mtu: int | None = None
    managed: bool | None = None
    openvswitch_id: str | None = None
    inbound: _Rate = dataclasses.field(default_factory=dict)
    outbound: _Rate = dataclasses.field(default_factory=dict)

    def element(self) -> ET.Element:
        return element(
            "interface",
            element("mac", address=self.mac),
            element("model", type=self.model) if self.model else None,
            self._driver(),
            element("source", bridge=self.bridge) if self.bridge else None,
            element("mtu", size=self.mtu) if self.mtu else None,
            element("target", dev=self.target, managed=self.managed) if self.target else None,
            self._virtualport(),
            self._bandwidth(),
            type=self.type,
        )

    def _driver(self) -> ET.Element | None:
        if not self.driver and not self.packed:
            return None
        return element(
            "driver",
            name=self.driver,
            packed="on" if self.packed else None,
            queues=self.queues,
            rx_queue_size=self.rx_queue_size,
        )

    def _virtualport(self) -> ET.Element | None:
        if self.openvswitch_id is None:
            return None
        return element("virtualport", element("parameters", interfaceid=self.openvswitch_id), type="openvswitch")

    def _bandwidth(self) -> ET.Element | None:
        rates = (("inbound", self.inbound), ("outbound", self.outbound))
        parts = [element(name, **rate) for name, rate in rates if "average" in rate]
        return element("bandwidth", *parts) if parts else None
