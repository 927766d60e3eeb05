"""The <metadata> of a domain: what tools on the host read to tell whose guest it is.

Namespace, element names and order are those operators' scripts and monitoring agents know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from xml.etree import ElementTree as ET

NAMESPACE = "http://openstack.org/xmlns/libvirt/nova/1.1"
ET.register_namespace("nova", NAMESPACE)


def _node(tag: str, *children: ET.Element, text: object = None, **attributes: object) -> ET.Element:
    made = ET.Element(f"{{{NAMESPACE}}}{tag}", {name: str(value) for name, value in attributes.items()})
    if text is not None:
        made.text = str(text)
    made.extend(children)
    return made


@dataclasses.dataclass(frozen=True)
class FlavorInfo:
    """Sizes: memory and swap in MiB, disks in GiB."""

    name: str
    id: str
    memory: int
    disk: int
    swap: int
    ephemeral: int
    vcpus: int
    extra_specs: Mapping[str, str]

    def element(self) -> ET.Element:
        sizes = ("memory", "disk", "swap", "ephemeral", "vcpus")
        specs = (_node("extraSpec", name=name, text=value) for name, value in self.extra_specs.items())
        return _node(
            "flavor",
            *(_node(size, text=getattr(self, size)) for size in sizes),
            _node("extraSpecs", *specs),
            name=self.name,
            id=self.id,
        )


@dataclasses.dataclass(frozen=True)
class ImageInfo:
    uuid: str | None
    facts: Mapping[str, object]
    """containerFormat, diskFormat, minDisk, minRam, as far as known."""
    properties: Mapping[str, object]

    def element(self) -> ET.Element:
        facts = (_node(name, text=value) for name, value in self.facts.items() if value is not None)
        properties = (_node("property", name=name, text=value) for name, value in self.properties.items())
        return _node("image", *facts, _node("properties", *properties), uuid=self.uuid or "")


@dataclasses.dataclass(frozen=True)
class PortInfo:
    uuid: str
    addresses: Sequence[tuple[str, str, int]]
    """(type, address, IP version)."""

    def element(self) -> ET.Element:
        ips = (_node("ip", type=kind, address=address, ipVersion=version) for kind, address, version in self.addresses)
        return _node("port", *ips, uuid=self.uuid)


@dataclasses.dataclass(frozen=True)
class InstanceInfo:
    package: str
    name: str
    created: datetime
    flavor: FlavorInfo
    image: ImageInfo
    user: tuple[str, str] | None
    """(id, name)."""
    project: tuple[str, str] | None
    root: tuple[str, str]
    """(image or volume, uuid of the image if there is one)."""
    ports: Sequence[PortInfo]

    def element(self) -> ET.Element:
        named = (("user", self.user), ("project", self.project))
        owner = _node("owner", *(_node(tag, uuid=who[0], text=who[1]) for tag, who in named if who))
        parts = [
            _node("package", version=self.package),
            _node("name", text=self.name),
            _node("creationTime", text=self.created.strftime("%Y-%m-%d %H:%M:%S")),
            self.flavor.element(),
            self.image.element(),
            owner,
        ]
        parts.append(_node("root", type=self.root[0], uuid=self.root[1]))
        parts.append(_node("ports", *(port.element() for port in self.ports)))
        return _node("instance", *parts)
