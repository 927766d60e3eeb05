"""The objects of versioned notifications: `notifications.load("FlavorPayload")`, each module loaded when first asked.

One file per kind of payload; `base.py` says what they share, `events.py` which event types there are.
"""

from __future__ import annotations

import importlib
from typing import Any

HOMES = {
    "AggregateCacheNotification": "aggregate",
    "AggregateCachePayload": "aggregate",
    "AggregateNotification": "aggregate",
    "AggregatePayload": "aggregate",
    "AuditPeriodPayload": "instance_parts",
    "BlockDevicePayload": "instance_parts",
    "CellMappingPayload": "request_spec",
    "ComputeTaskNotification": "compute_task",
    "ComputeTaskPayload": "compute_task",
    "DestinationPayload": "request_spec",
    "EventType": "base",
    "ExceptionNotification": "exception",
    "ExceptionPayload": "exception",
    "FlavorNotification": "flavor",
    "FlavorPayload": "flavor",
    "ImageMetaPayload": "image",
    "ImageMetaPropsPayload": "image",
    "InstanceActionNotification": "instance_actions",
    "InstanceActionPayload": "instance",
    "InstanceActionRebuildNotification": "instance_actions",
    "InstanceActionRebuildPayload": "instance_actions",
    "InstanceActionRescueNotification": "instance_actions",
    "InstanceActionRescuePayload": "instance_actions",
    "InstanceActionResizePrepNotification": "instance_actions",
    "InstanceActionResizePrepPayload": "instance_actions",
    "InstanceActionShareNotification": "instance_actions",
    "InstanceActionSharePayload": "instance_actions",
    "InstanceActionSnapshotNotification": "instance_actions",
    "InstanceActionSnapshotPayload": "instance_actions",
    "InstanceActionVolumeNotification": "instance_actions",
    "InstanceActionVolumePayload": "instance_actions",
    "InstanceActionVolumeSwapNotification": "instance_actions",
    "InstanceActionVolumeSwapPayload": "instance_actions",
    "InstanceCreateNotification": "instance_actions",
    "InstanceCreatePayload": "instance_actions",
    "InstanceExistsNotification": "instance_usage",
    "InstanceExistsPayload": "instance_usage",
    "InstanceNUMACellPayload": "request_spec",
    "InstanceNUMATopologyPayload": "request_spec",
    "InstancePCIRequestPayload": "request_spec",
    "InstancePCIRequestsPayload": "request_spec",
    "InstancePayload": "instance",
    "InstanceStateUpdatePayload": "instance_parts",
    "InstanceUpdateNotification": "instance_usage",
    "InstanceUpdatePayload": "instance_usage",
    "IpPayload": "instance_parts",
    "KeypairNotification": "keypair",
    "KeypairPayload": "keypair",
    "LibvirtErrorNotification": "libvirt",
    "LibvirtErrorPayload": "libvirt",
    "MetricPayload": "metrics",
    "MetricsNotification": "metrics",
    "MetricsPayload": "metrics",
    "NotificationPublisher": "base",
    "RequestSpecPayload": "request_spec",
    "SchedulerRetriesPayload": "request_spec",
    "SelectDestinationsNotification": "request_spec",
    "ServerGroupNotification": "server_group",
    "ServerGroupPayload": "server_group",
    "ServiceStatusNotification": "service",
    "ServiceStatusPayload": "service",
    "SharePayload": "instance_parts",
    "VirtCPUTopologyPayload": "request_spec",
    "VolumeUsageNotification": "volume",
    "VolumeUsagePayload": "volume",
}
"""Object name -> module of this package."""


def load(name: str) -> Any:
    """The class of that name. Raises KeyError when there is none."""
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)


def names() -> list[str]:
    """All object names."""
    return list(HOMES)
