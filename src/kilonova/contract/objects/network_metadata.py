"""Network metadata."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class NetworkMetadata(WireObject):
    """Physical networks and tunnels as far as they bind to NUMA nodes."""

    VERSION = "1.0"
    fields: Any = {
        "physnets": t.SetOfStrings(),
        "tunneled": t.Boolean(),
    }
