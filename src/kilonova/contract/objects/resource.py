"""Resource."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireList, WireObject, register


@register
class Resource(WireObject):
    """A resource of a provider that has an identity of its own."""

    VERSION = "1.0"
    fields: Any = {
        "identifier": t.String(),
        "metadata": t.Object("ResourceMetadata", subclasses=True),
        "provider_uuid": t.UUID(),
        "resource_class": t.ResourceClassField(),
    }


@register
class ResourceMetadata(WireObject):
    """What is particular to a kind of resource; one subclass per kind."""

    VERSION = "1.0"


@register
class LibvirtVPMEMDevice(ResourceMetadata):
    """A namespace of persistent memory."""

    VERSION = "1.0"
    fields: Any = {
        "align": t.Integer(),
        "devpath": t.String(),
        "label": t.String(),
        "name": t.String(),
        "size": t.Integer(),
    }


@register
class ResourceList(WireList):
    """A list of Resource objects."""

    VERSION = "1.0"
    fields: Any = {
        "objects": t.Objects("Resource"),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
