"""Request spec."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class RequestSpec(WireObject):
    """Everything that decides where a server may be placed."""

    VERSION = "1.15"
    fields: Any = {
        "id": t.Integer(),
        "availability_zone": t.String(nullable=True),
        "flavor": t.Object("Flavor"),
        "force_hosts": t.ListOfStrings(nullable=True),
        "force_nodes": t.ListOfStrings(nullable=True),
        "ignore_hosts": t.ListOfStrings(nullable=True),
        "image": t.Object("ImageMeta", nullable=True),
        "instance_group": t.Object("InstanceGroup", nullable=True),
        "instance_uuid": t.UUID(),
        "is_bfv": t.Boolean(),
        "limits": t.Object("SchedulerLimits", nullable=True),
        "network_metadata": t.Object("NetworkMetadata"),
        "num_instances": t.Integer(default=1),
        "numa_topology": t.Object("InstanceNUMATopology", nullable=True),
        "pci_requests": t.Object("InstancePCIRequests", nullable=True),
        "project_id": t.String(nullable=True),
        "request_level_params": t.Object("RequestLevelParams"),
        "requested_destination": t.Object("Destination", nullable=True, default=None),
        "requested_networks": t.Object("NetworkRequestList"),
        "requested_resources": t.Objects("RequestGroup", nullable=True, default=None),
        "retry": t.Object("SchedulerRetries", nullable=True),
        "scheduler_hints": t.DictOfListOfStrings(nullable=True),
        "security_groups": t.Object("SecurityGroupList"),
        "user_id": t.String(nullable=True),
    }
    REMOVED = {
        "is_bfv": "1.10",
        "network_metadata": "1.9",
        "request_level_params": "1.12",
        "requested_destination": "1.5",
        "requested_networks": "1.13",
        "requested_resources": "1.11",
        "security_groups": "1.7",
        "user_id": "1.8",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid",
        "get_by_instance_uuids": "instance_uuids",
    }
