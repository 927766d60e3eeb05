"""Compute node."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireList, WireObject, register


@register
class ComputeNode(Persistent, WireObject):
    """What a hypervisor node has and uses."""

    VERSION = "1.19"
    fields: Any = {
        "id": t.Integer(read_only=True),
        "uuid": t.UUID(read_only=True),
        "cpu_allocation_ratio": t.Float(),
        "cpu_info": t.String(nullable=True),
        "current_workload": t.Integer(nullable=True),
        "disk_allocation_ratio": t.Float(),
        "disk_available_least": t.Integer(nullable=True),
        "free_disk_gb": t.Integer(nullable=True),
        "free_ram_mb": t.Integer(nullable=True),
        "host": t.String(nullable=True),
        "host_ip": t.IPAddress(nullable=True),
        "hypervisor_hostname": t.String(nullable=True),
        "hypervisor_type": t.String(),
        "hypervisor_version": t.Integer(),
        "local_gb": t.Integer(),
        "local_gb_used": t.Integer(),
        "mapped": t.Integer(),
        "memory_mb": t.Integer(),
        "memory_mb_used": t.Integer(),
        "metrics": t.String(nullable=True),
        "numa_topology": t.String(nullable=True),
        "pci_device_pools": t.Object("PciDevicePoolList", nullable=True),
        "ram_allocation_ratio": t.Float(),
        "running_vms": t.Integer(nullable=True),
        "service_id": t.Integer(nullable=True),
        "stats": t.DictOfNullableStrings(nullable=True),
        "supported_hv_specs": t.Objects("HVSpec"),
        "vcpus": t.Integer(),
        "vcpus_used": t.Integer(),
    }
    REMOVED = {
        "cpu_allocation_ratio": "1.13",
        "disk_allocation_ratio": "1.15",
        "host": "1.6",
        "host_ip": "1.3",
        "mapped": "1.16",
        "numa_topology": "1.4",
        "pci_device_pools": "1.8",
        "ram_allocation_ratio": "1.13",
        "stats": "1.2",
        "supported_hv_specs": "1.5",
        "uuid": "1.14",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "prune_stats=False",
    }
    CLASS_METHODS = {
        "get_by_host_and_nodename": "host, nodename",
        "get_by_id": "compute_id",
        "get_by_nodename": "hypervisor_hostname",
        "get_by_service_id": "service_id",
        "get_by_uuid": "compute_uuid",
        "get_first_node_by_host_for_old_compat": "host, use_slave=False",
    }


@register
class ComputeNodeList(WireList):
    """A list of ComputeNode objects."""

    VERSION = "1.17"
    fields: Any = {
        "objects": t.Objects("ComputeNode"),
    }
    CLASS_METHODS = {
        "_get_by_service": "service_id, use_slave=False",
        "get_all": "",
        "get_all_by_host": "host, use_slave=False",
        "get_all_by_not_mapped": "mapped_less_than",
        "get_all_by_uuids": "compute_uuids",
        "get_by_hypervisor": "hypervisor_match",
        "get_by_pagination": "limit=None, marker=None",
    }
