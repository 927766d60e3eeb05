"""Hv spec."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Limit, WireObject, register
from kilonova.contract.objects.enums import Architecture, HVType, VMMode


@register
class HVSpec(WireObject):
    """What a hypervisor can run: architecture, type and mode."""

    VERSION = "1.2"
    fields: Any = {
        "arch": t.Choice(Architecture),
        "hv_type": t.Choice(HVType),
        "vm_mode": t.Choice(VMMode),
    }
    LIMITS = {
        "hv_type": {"vz": Limit("1.0", instead="parallels")},
    }
