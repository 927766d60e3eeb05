"""Notifications of a host's metrics."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t
from kilonova.contract.objects.enums import MonitorMetricType


@declare
class MetricPayload(Payload):
    """One measurement."""

    VERSION = "1.0"
    fields: Any = {
        "name": t.Choice(MonitorMetricType),
        "numa_membw_values": t.DictOfIntegers(nullable=True),
        "source": t.String(),
        "timestamp": t.DateTime(),
        "value": t.Integer(),
    }
    SOURCES = taken("monitor_metric", fields)


@declare
class MetricsPayload(Payload):
    """The measurements of a node."""

    VERSION = "1.0"
    fields: Any = {
        "host": t.String(),
        "host_ip": t.String(),
        "metrics": t.Objects("MetricPayload"),
        "nodename": t.String(),
    }


@declare
class MetricsNotification(Notification):
    """A node measured itself."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("MetricsPayload"),
    }
