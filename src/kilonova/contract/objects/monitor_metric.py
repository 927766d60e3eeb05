"""Monitor metric."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireList, WireObject, register
from kilonova.contract.objects.enums import MonitorMetricType


@register
class MonitorMetric(WireObject):
    """A measured value of a host."""

    VERSION = "1.1"
    fields: Any = {
        "name": t.Choice(MonitorMetricType),
        "numa_membw_values": t.DictOfIntegers(nullable=True),
        "source": t.String(),
        "timestamp": t.DateTime(),
        "value": t.Integer(),
    }
    REMOVED = {
        "numa_membw_values": "1.0",
    }


@register
class MonitorMetricList(WireList):
    """A list of MonitorMetric objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("MonitorMetric"),
    }
