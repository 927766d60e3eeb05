"""A domain as lines, to compare what two implementations make of the same server."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

NOVA = "{http://openstack.org/xmlns/libvirt/nova/1.1}"
OWN = (f"{NOVA}package", f"{NOVA}creationTime")
"""What each implementation says of itself."""


def lines(element: Element, path: str = "") -> Iterator[str]:
    """An element as lines of path, attributes and text; the order of siblings means nothing in a domain."""
    here = f"{path}/{element.tag.replace(NOVA, '')}"
    if element.tag in OWN or (element.tag == "entry" and element.get("name") == "version"):
        return
    if element.tag == "loader" and element.attrib == {"secure": "no"}:
        # The peer says it twice; libvirt 9.0 refuses a domain that does.
        return
    yield f"{here} {sorted(element.attrib.items())} {(element.text or '').strip()}"
    # Devices are told apart by what they are, so that a part of one is not taken for another's.
    inner = here + (f"[{element.get('type')}]" if path.endswith("/devices") else "")
    for child in element:
        yield from lines(child, inner)
