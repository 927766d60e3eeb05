"""Live migrate data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kilonova.contract import exceptions
from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register, version_tuple


@register
class HyperVLiveMigrateData(WireObject):
    """What Hyper-V hosts tell each other before a live migration."""

    VERSION = "1.5"
    fields: Any = {
        "is_shared_instance_path": t.Boolean(),
        "is_volume_backed": t.Boolean(),
        "migration": t.Object("Migration"),
        "old_vol_attachment_ids": t.DictOfStrings(),
        "pci_dev_map_src_dst": t.DictOfStrings(),
        "vifs": t.Objects("VIFMigrateData"),
        "wait_for_vif_plugged": t.Boolean(),
    }
    REMOVED = {
        "is_shared_instance_path": "1.0",
        "old_vol_attachment_ids": "1.1",
        "pci_dev_map_src_dst": "1.4",
        "vifs": "1.3",
        "wait_for_vif_plugged": "1.2",
    }


@register
class LibvirtLiveMigrateBDMInfo(WireObject):
    """How a volume is attached on the destination of a live migration."""

    VERSION = "1.1"
    fields: Any = {
        "boot_index": t.Integer(nullable=True),
        "bus": t.String(),
        "connection_info_json": t.String(),
        "dev": t.String(),
        "encryption_secret_uuid": t.UUID(nullable=True),
        "format": t.String(nullable=True),
        "serial": t.String(),
        "type": t.String(),
    }
    REMOVED = {
        "encryption_secret_uuid": "1.0",
    }


@register
class LibvirtLiveMigrateData(WireObject):
    """What libvirt hosts tell each other before a live migration."""

    VERSION = "1.14"
    fields: Any = {
        "bdms": t.Objects("LibvirtLiveMigrateBDMInfo"),
        "block_migration": t.Boolean(),
        "disk_available_mb": t.Integer(nullable=True),
        "disk_over_commit": t.Boolean(),
        "dst_cpu_shared_set_info": t.SetOfIntegers(),
        "dst_numa_info": t.Object("LibvirtLiveMigrateNUMAInfo"),
        "dst_supports_mdev_live_migration": t.Boolean(),
        "dst_supports_numa_live_migration": t.Boolean(),
        "dst_wants_file_backed_memory": t.Boolean(),
        "file_backed_memory_discard": t.Boolean(),
        "filename": t.String(),
        "graphics_listen_addr_spice": t.IPAddress(nullable=True),
        "graphics_listen_addr_vnc": t.IPAddress(nullable=True),
        "image_type": t.String(),
        "instance_relative_path": t.String(),
        "is_shared_block_storage": t.Boolean(),
        "is_shared_instance_path": t.Boolean(),
        "is_volume_backed": t.Boolean(),
        "migration": t.Object("Migration"),
        "old_vol_attachment_ids": t.DictOfStrings(),
        "pci_dev_map_src_dst": t.DictOfStrings(),
        "serial_listen_addr": t.String(nullable=True),
        "serial_listen_ports": t.ListOfIntegers(),
        "source_mdev_types": t.DictOfStrings(),
        "src_supports_native_luks": t.Boolean(),
        "src_supports_numa_live_migration": t.Boolean(),
        "supported_perf_events": t.ListOfStrings(),
        "target_connect_addr": t.String(nullable=True),
        "target_mdevs": t.DictOfStrings(),
        "vifs": t.Objects("VIFMigrateData"),
        "vtpm_secret_uuid": t.UUID(nullable=True),
        "vtpm_secret_value": t.SensitiveString(nullable=True),
        "wait_for_vif_plugged": t.Boolean(),
    }
    WITHOUT_VTPM: ClassVar[Mapping[str, str]] = {
        "dst_cpu_shared_set_info": "1.11",
        "dst_numa_info": "1.9",
        "dst_supports_mdev_live_migration": "1.10",
        "dst_supports_numa_live_migration": "1.9",
        "dst_wants_file_backed_memory": "1.6",
        "file_backed_memory_discard": "1.7",
        "old_vol_attachment_ids": "1.3",
        "pci_dev_map_src_dst": "1.12",
        "serial_listen_ports": "1.1",
        "source_mdev_types": "1.10",
        "src_supports_native_luks": "1.4",
        "src_supports_numa_live_migration": "1.9",
        "supported_perf_events": "1.2",
        "target_connect_addr": "1.0",
        "target_mdevs": "1.10",
        "vifs": "1.8",
        "wait_for_vif_plugged": "1.5",
    }
    """As `REMOVED`, but what cannot be sent at all with a vTPM has no such list in the contract."""

    def obj_make_compatible(self, primitive: dict[str, Any], target_version: str) -> None:
        """As every object; a guest with a vTPM cannot go to a receiver older than 1.14, its secret would be lost."""
        super().obj_make_compatible(primitive, target_version)
        target = version_tuple(target_version)
        has_vtpm = "vtpm_secret_uuid" in primitive or "vtpm_secret_value" in primitive
        if target < (1, 14) and has_vtpm:
            reason = f"a vTPM cannot be said in version {target_version}"
            raise exceptions.ObjectActionError(action="obj_make_compatible", reason=reason)
        for field, version in self.WITHOUT_VTPM.items():
            if field in primitive and target <= version_tuple(version):
                del primitive[field]


@register
class LibvirtLiveMigrateNUMAInfo(WireObject):
    """Where CPUs and memory of a guest are fixed on the destination."""

    VERSION = "1.0"
    fields: Any = {
        "cell_pins": t.DictOfSetOfIntegers(),
        "cpu_pins": t.DictOfSetOfIntegers(),
        "emulator_pins": t.SetOfIntegers(),
        "sched_priority": t.Integer(),
        "sched_vcpus": t.SetOfIntegers(),
    }


@register
class VIFMigrateData(WireObject):
    """How one interface is plugged on the destination of a live migration."""

    VERSION = "1.0"
    fields: Any = {
        "host": t.String(),
        "port_id": t.String(),
        "profile_json": t.String(),
        "source_vif": t.NetworkVIFModelField(),
        "vif_details_json": t.String(),
        "vif_type": t.String(),
        "vnic_type": t.String(),
    }


@register
class VMwareLiveMigrateData(WireObject):
    """What VMware hosts tell each other before a live migration."""

    VERSION = "1.1"
    fields: Any = {
        "cluster_name": t.String(),
        "datastore_regex": t.String(),
        "is_volume_backed": t.Boolean(),
        "migration": t.Object("Migration"),
        "old_vol_attachment_ids": t.DictOfStrings(),
        "pci_dev_map_src_dst": t.DictOfStrings(),
        "vifs": t.Objects("VIFMigrateData"),
        "wait_for_vif_plugged": t.Boolean(),
    }
    REMOVED = {
        "pci_dev_map_src_dst": "1.0",
    }
