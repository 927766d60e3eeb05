"""The wire objects: `objects.Instance(...)`, each loaded when it is first named.

One file per object or small family; `base.py` says what they share.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kilonova.contract.objects.aggregate import Aggregate as Aggregate
    from kilonova.contract.objects.aggregate import AggregateList as AggregateList
    from kilonova.contract.objects.base import WireObject as WireObject
    from kilonova.contract.objects.base import apply_updates as apply_updates
    from kilonova.contract.objects.base import manifest as manifest
    from kilonova.contract.objects.block_device_mapping import (
        BlockDeviceMapping as BlockDeviceMapping,
    )
    from kilonova.contract.objects.block_device_mapping import (
        BlockDeviceMappingList as BlockDeviceMappingList,
    )
    from kilonova.contract.objects.build_request import (
        BuildRequest as BuildRequest,
    )
    from kilonova.contract.objects.build_request import (
        BuildRequestList as BuildRequestList,
    )
    from kilonova.contract.objects.cell_mapping import CellMapping as CellMapping
    from kilonova.contract.objects.cell_mapping import CellMappingList as CellMappingList
    from kilonova.contract.objects.compute_node import ComputeNode as ComputeNode
    from kilonova.contract.objects.compute_node import ComputeNodeList as ComputeNodeList
    from kilonova.contract.objects.console_auth_token import ConsoleAuthToken as ConsoleAuthToken
    from kilonova.contract.objects.cpu_model import VirtCPUFeature as VirtCPUFeature
    from kilonova.contract.objects.cpu_model import VirtCPUModel as VirtCPUModel
    from kilonova.contract.objects.cpu_topology import VirtCPUTopology as VirtCPUTopology
    from kilonova.contract.objects.device_metadata import (
        DeviceBus as DeviceBus,
    )
    from kilonova.contract.objects.device_metadata import (
        DeviceMetadata as DeviceMetadata,
    )
    from kilonova.contract.objects.device_metadata import (
        DiskMetadata as DiskMetadata,
    )
    from kilonova.contract.objects.device_metadata import (
        IDEDeviceBus as IDEDeviceBus,
    )
    from kilonova.contract.objects.device_metadata import (
        InstanceDeviceMetadata as InstanceDeviceMetadata,
    )
    from kilonova.contract.objects.device_metadata import (
        NetworkInterfaceMetadata as NetworkInterfaceMetadata,
    )
    from kilonova.contract.objects.device_metadata import (
        PCIDeviceBus as PCIDeviceBus,
    )
    from kilonova.contract.objects.device_metadata import (
        SCSIDeviceBus as SCSIDeviceBus,
    )
    from kilonova.contract.objects.device_metadata import (
        ShareMetadata as ShareMetadata,
    )
    from kilonova.contract.objects.device_metadata import (
        USBDeviceBus as USBDeviceBus,
    )
    from kilonova.contract.objects.device_metadata import (
        XenDeviceBus as XenDeviceBus,
    )
    from kilonova.contract.objects.diagnostics import (
        CpuDiagnostics as CpuDiagnostics,
    )
    from kilonova.contract.objects.diagnostics import (
        Diagnostics as Diagnostics,
    )
    from kilonova.contract.objects.diagnostics import (
        DiskDiagnostics as DiskDiagnostics,
    )
    from kilonova.contract.objects.diagnostics import (
        MemoryDiagnostics as MemoryDiagnostics,
    )
    from kilonova.contract.objects.diagnostics import (
        NicDiagnostics as NicDiagnostics,
    )
    from kilonova.contract.objects.ec2 import (
        EC2Ids as EC2Ids,
    )
    from kilonova.contract.objects.ec2 import (
        EC2InstanceMapping as EC2InstanceMapping,
    )
    from kilonova.contract.objects.ec2 import (
        S3ImageMapping as S3ImageMapping,
    )
    from kilonova.contract.objects.external_event import InstanceExternalEvent as InstanceExternalEvent
    from kilonova.contract.objects.flavor import Flavor as Flavor
    from kilonova.contract.objects.flavor import FlavorList as FlavorList
    from kilonova.contract.objects.host_mapping import HostMapping as HostMapping
    from kilonova.contract.objects.host_mapping import HostMappingList as HostMappingList
    from kilonova.contract.objects.hv_spec import HVSpec as HVSpec
    from kilonova.contract.objects.image_meta import ImageMeta as ImageMeta
    from kilonova.contract.objects.image_meta_props import ImageMetaProps as ImageMetaProps
    from kilonova.contract.objects.instance import Instance as Instance
    from kilonova.contract.objects.instance import InstanceList as InstanceList
    from kilonova.contract.objects.instance_action import (
        InstanceAction as InstanceAction,
    )
    from kilonova.contract.objects.instance_action import (
        InstanceActionEvent as InstanceActionEvent,
    )
    from kilonova.contract.objects.instance_action import (
        InstanceActionEventList as InstanceActionEventList,
    )
    from kilonova.contract.objects.instance_action import (
        InstanceActionList as InstanceActionList,
    )
    from kilonova.contract.objects.instance_fault import (
        InstanceFault as InstanceFault,
    )
    from kilonova.contract.objects.instance_fault import (
        InstanceFaultList as InstanceFaultList,
    )
    from kilonova.contract.objects.instance_group import (
        InstanceGroup as InstanceGroup,
    )
    from kilonova.contract.objects.instance_group import (
        InstanceGroupList as InstanceGroupList,
    )
    from kilonova.contract.objects.instance_info_cache import InstanceInfoCache as InstanceInfoCache
    from kilonova.contract.objects.instance_mapping import (
        InstanceMapping as InstanceMapping,
    )
    from kilonova.contract.objects.instance_mapping import (
        InstanceMappingList as InstanceMappingList,
    )
    from kilonova.contract.objects.instance_numa_topology import (
        InstanceNUMACell as InstanceNUMACell,
    )
    from kilonova.contract.objects.instance_numa_topology import (
        InstanceNUMATopology as InstanceNUMATopology,
    )
    from kilonova.contract.objects.instance_pci_requests import (
        InstancePCIRequest as InstancePCIRequest,
    )
    from kilonova.contract.objects.instance_pci_requests import (
        InstancePCIRequests as InstancePCIRequests,
    )
    from kilonova.contract.objects.keypair import KeyPair as KeyPair
    from kilonova.contract.objects.keypair import KeyPairList as KeyPairList
    from kilonova.contract.objects.live_migrate_data import (
        HyperVLiveMigrateData as HyperVLiveMigrateData,
    )
    from kilonova.contract.objects.live_migrate_data import (
        LibvirtLiveMigrateBDMInfo as LibvirtLiveMigrateBDMInfo,
    )
    from kilonova.contract.objects.live_migrate_data import (
        LibvirtLiveMigrateData as LibvirtLiveMigrateData,
    )
    from kilonova.contract.objects.live_migrate_data import (
        LibvirtLiveMigrateNUMAInfo as LibvirtLiveMigrateNUMAInfo,
    )
    from kilonova.contract.objects.live_migrate_data import (
        VIFMigrateData as VIFMigrateData,
    )
    from kilonova.contract.objects.live_migrate_data import (
        VMwareLiveMigrateData as VMwareLiveMigrateData,
    )
    from kilonova.contract.objects.migration import Migration as Migration
    from kilonova.contract.objects.migration import MigrationList as MigrationList
    from kilonova.contract.objects.migration_context import MigrationContext as MigrationContext
    from kilonova.contract.objects.monitor_metric import (
        MonitorMetric as MonitorMetric,
    )
    from kilonova.contract.objects.monitor_metric import (
        MonitorMetricList as MonitorMetricList,
    )
    from kilonova.contract.objects.network_metadata import NetworkMetadata as NetworkMetadata
    from kilonova.contract.objects.network_request import (
        NetworkRequest as NetworkRequest,
    )
    from kilonova.contract.objects.network_request import (
        NetworkRequestList as NetworkRequestList,
    )
    from kilonova.contract.objects.numa_topology import (
        NUMACell as NUMACell,
    )
    from kilonova.contract.objects.numa_topology import (
        NUMAPagesTopology as NUMAPagesTopology,
    )
    from kilonova.contract.objects.numa_topology import (
        NUMATopology as NUMATopology,
    )
    from kilonova.contract.objects.numa_topology import (
        NUMATopologyLimits as NUMATopologyLimits,
    )
    from kilonova.contract.objects.pci_device import PciDevice as PciDevice
    from kilonova.contract.objects.pci_device import PciDeviceList as PciDeviceList
    from kilonova.contract.objects.pci_device_pool import (
        PciDevicePool as PciDevicePool,
    )
    from kilonova.contract.objects.pci_device_pool import (
        PciDevicePoolList as PciDevicePoolList,
    )
    from kilonova.contract.objects.quotas import Quotas as Quotas
    from kilonova.contract.objects.quotas import QuotasNoOp as QuotasNoOp
    from kilonova.contract.objects.request_group import (
        RequestGroup as RequestGroup,
    )
    from kilonova.contract.objects.request_group import (
        RequestLevelParams as RequestLevelParams,
    )
    from kilonova.contract.objects.request_spec import RequestSpec as RequestSpec
    from kilonova.contract.objects.resource import (
        LibvirtVPMEMDevice as LibvirtVPMEMDevice,
    )
    from kilonova.contract.objects.resource import (
        Resource as Resource,
    )
    from kilonova.contract.objects.resource import (
        ResourceList as ResourceList,
    )
    from kilonova.contract.objects.resource import (
        ResourceMetadata as ResourceMetadata,
    )
    from kilonova.contract.objects.scheduler_hints import (
        Destination as Destination,
    )
    from kilonova.contract.objects.scheduler_hints import (
        SchedulerLimits as SchedulerLimits,
    )
    from kilonova.contract.objects.scheduler_hints import (
        SchedulerRetries as SchedulerRetries,
    )
    from kilonova.contract.objects.security_group import (
        SecurityGroup as SecurityGroup,
    )
    from kilonova.contract.objects.security_group import (
        SecurityGroupList as SecurityGroupList,
    )
    from kilonova.contract.objects.selection import Selection as Selection
    from kilonova.contract.objects.service import Service as Service
    from kilonova.contract.objects.service import ServiceList as ServiceList
    from kilonova.contract.objects.share_mapping import (
        ShareMapping as ShareMapping,
    )
    from kilonova.contract.objects.share_mapping import (
        ShareMappingList as ShareMappingList,
    )
    from kilonova.contract.objects.tag import Tag as Tag
    from kilonova.contract.objects.tag import TagList as TagList
    from kilonova.contract.objects.task_log import TaskLog as TaskLog
    from kilonova.contract.objects.task_log import TaskLogList as TaskLogList
    from kilonova.contract.objects.trusted_certs import TrustedCerts as TrustedCerts
    from kilonova.contract.objects.virtual_interface import (
        VirtualInterface as VirtualInterface,
    )
    from kilonova.contract.objects.virtual_interface import (
        VirtualInterfaceList as VirtualInterfaceList,
    )
    from kilonova.contract.objects.volume_usage import VolumeUsage as VolumeUsage

SERVICE_VERSION = 74
"""The version that our services register; Nova's number for this release."""

HOMES = {
    "Aggregate": "aggregate",
    "AggregateList": "aggregate",
    "BlockDeviceMapping": "block_device_mapping",
    "BlockDeviceMappingList": "block_device_mapping",
    "BuildRequest": "build_request",
    "BuildRequestList": "build_request",
    "CellMapping": "cell_mapping",
    "CellMappingList": "cell_mapping",
    "ComputeNode": "compute_node",
    "ComputeNodeList": "compute_node",
    "ConsoleAuthToken": "console_auth_token",
    "CpuDiagnostics": "diagnostics",
    "Destination": "scheduler_hints",
    "DeviceBus": "device_metadata",
    "DeviceMetadata": "device_metadata",
    "Diagnostics": "diagnostics",
    "DiskDiagnostics": "diagnostics",
    "DiskMetadata": "device_metadata",
    "EC2Ids": "ec2",
    "EC2InstanceMapping": "ec2",
    "Flavor": "flavor",
    "FlavorList": "flavor",
    "HVSpec": "hv_spec",
    "HostMapping": "host_mapping",
    "HostMappingList": "host_mapping",
    "HyperVLiveMigrateData": "live_migrate_data",
    "IDEDeviceBus": "device_metadata",
    "ImageMeta": "image_meta",
    "ImageMetaProps": "image_meta_props",
    "Instance": "instance",
    "InstanceAction": "instance_action",
    "InstanceActionEvent": "instance_action",
    "InstanceActionEventList": "instance_action",
    "InstanceActionList": "instance_action",
    "InstanceDeviceMetadata": "device_metadata",
    "InstanceExternalEvent": "external_event",
    "InstanceFault": "instance_fault",
    "InstanceFaultList": "instance_fault",
    "InstanceGroup": "instance_group",
    "InstanceGroupList": "instance_group",
    "InstanceInfoCache": "instance_info_cache",
    "InstanceList": "instance",
    "InstanceMapping": "instance_mapping",
    "InstanceMappingList": "instance_mapping",
    "InstanceNUMACell": "instance_numa_topology",
    "InstanceNUMATopology": "instance_numa_topology",
    "InstancePCIRequest": "instance_pci_requests",
    "InstancePCIRequests": "instance_pci_requests",
    "KeyPair": "keypair",
    "KeyPairList": "keypair",
    "LibvirtLiveMigrateBDMInfo": "live_migrate_data",
    "LibvirtLiveMigrateData": "live_migrate_data",
    "LibvirtLiveMigrateNUMAInfo": "live_migrate_data",
    "LibvirtVPMEMDevice": "resource",
    "MemoryDiagnostics": "diagnostics",
    "Migration": "migration",
    "MigrationContext": "migration_context",
    "MigrationList": "migration",
    "MonitorMetric": "monitor_metric",
    "MonitorMetricList": "monitor_metric",
    "NUMACell": "numa_topology",
    "NUMAPagesTopology": "numa_topology",
    "NUMATopology": "numa_topology",
    "NUMATopologyLimits": "numa_topology",
    "NetworkInterfaceMetadata": "device_metadata",
    "NetworkMetadata": "network_metadata",
    "NetworkRequest": "network_request",
    "NetworkRequestList": "network_request",
    "NicDiagnostics": "diagnostics",
    "PCIDeviceBus": "device_metadata",
    "PciDevice": "pci_device",
    "PciDeviceList": "pci_device",
    "PciDevicePool": "pci_device_pool",
    "PciDevicePoolList": "pci_device_pool",
    "Quotas": "quotas",
    "QuotasNoOp": "quotas",
    "RequestGroup": "request_group",
    "RequestLevelParams": "request_group",
    "RequestSpec": "request_spec",
    "Resource": "resource",
    "ResourceList": "resource",
    "ResourceMetadata": "resource",
    "S3ImageMapping": "ec2",
    "SCSIDeviceBus": "device_metadata",
    "SchedulerLimits": "scheduler_hints",
    "SchedulerRetries": "scheduler_hints",
    "SecurityGroup": "security_group",
    "SecurityGroupList": "security_group",
    "Selection": "selection",
    "Service": "service",
    "ServiceList": "service",
    "ShareMapping": "share_mapping",
    "ShareMappingList": "share_mapping",
    "ShareMetadata": "device_metadata",
    "Tag": "tag",
    "TagList": "tag",
    "TaskLog": "task_log",
    "TaskLogList": "task_log",
    "TrustedCerts": "trusted_certs",
    "USBDeviceBus": "device_metadata",
    "VIFMigrateData": "live_migrate_data",
    "VMwareLiveMigrateData": "live_migrate_data",
    "VirtCPUFeature": "cpu_model",
    "VirtCPUModel": "cpu_model",
    "VirtCPUTopology": "cpu_topology",
    "VirtualInterface": "virtual_interface",
    "VirtualInterfaceList": "virtual_interface",
    "VolumeUsage": "volume_usage",
    "XenDeviceBus": "device_metadata",
}
"""Object name -> module of this package."""

_BASE = ("WireObject", "apply_updates", "manifest")


def load(name: str) -> Any:
    """The class of that name. Raises UnsupportedObjectError when there is none."""
    if name not in HOMES:
        from kilonova.contract.objects.base import UnsupportedObjectError

        raise UnsupportedObjectError(objtype=name)
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)


def names() -> list[str]:
    """All object names."""
    return list(HOMES)


def __getattr__(name: str) -> Any:
    if name in HOMES:
        found = load(name)
    elif name in _BASE:
        found = getattr(importlib.import_module(f"{__name__}.base"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    setattr(sys.modules[__name__], name, found)
    return found
