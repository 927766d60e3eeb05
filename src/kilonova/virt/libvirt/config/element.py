"""Building XML elements from Python values."""

from __future__ import annotations

from typing import Protocol
from xml.etree import ElementTree as ET

Value = str | int | bool | None


class Part(Protocol):
    """Anything that has an XML form."""

    def element(self) -> ET.Element: ...


def as_text(value: str | int | bool) -> str:
    """libvirt writes truth as yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def element(tag: str, *children: ET.Element | Part | None, text: Value = None, **attributes: Value) -> ET.Element:
    """An element; attributes and children that are None are left out. A trailing underscore in a name is dropped."""
    made = ET.Element(
        tag, {name.rstrip("_"): as_text(value) for name, value in attributes.items() if value is not None}
    )
    if text is not None:
        made.text = as_text(text)
    made.extend(child if isinstance(child, ET.Element) else child.element() for child in children if child is not None)
    return made


def to_xml(part: Part) -> str:
    """The part as a document, indented for people who read `virsh dumpxml`."""
    root = part.element()
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def parse(xml: str) -> ET.Element:
    """What libvirtd answered; it made the document itself."""
    return ET.fromstring(xml)  # noqa: S314
