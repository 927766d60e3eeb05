"""Cpu topology."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class VirtCPUTopology(WireObject):
    """Sockets, cores and threads of a guest."""

    VERSION = "1.0"
    fields: Any = {
        "cores": t.Integer(nullable=True, default=1),
        "sockets": t.Integer(nullable=True, default=1),
        "threads": t.Integer(nullable=True, default=1),
    }
