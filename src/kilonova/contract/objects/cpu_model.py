"""Cpu model."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register
from kilonova.contract.objects.enums import Architecture, CPUFeaturePolicy, CPUMatch, CPUMode


@register
class VirtCPUFeature(WireObject):
    """A CPU feature and whether a guest has it."""

    VERSION = "1.0"
    fields: Any = {
        "name": t.String(),
        "policy": t.Choice(CPUFeaturePolicy, nullable=True),
    }


@register
class VirtCPUModel(WireObject):
    """The CPU of a guest."""

    VERSION = "1.0"
    fields: Any = {
        "arch": t.Choice(Architecture, nullable=True),
        "features": t.Objects("VirtCPUFeature", default=[]),
        "match": t.Choice(CPUMatch, nullable=True),
        "mode": t.Choice(CPUMode, nullable=True),
        "model": t.String(nullable=True),
        "topology": t.Object("VirtCPUTopology", nullable=True),
        "vendor": t.String(nullable=True),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
    }
