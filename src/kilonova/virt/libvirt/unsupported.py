"""Wishes of flavors and images this driver cannot fulfil: said at once, instead of a guest that is not as asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kilonova.contract import exceptions
from kilonova.virt.driver import Volume

_HARMLESS = frozenset({"", "0", "no", "false", "none", "shared", "disabled"})

EXTRA_SPECS = {
    "hw:cpu_policy": "dedicated processors",
    "hw:cpu_realtime": "real-time processors",
    "hw:emulator_threads_policy": "emulator threads of their own",
    "hw:locked_memory": "locked memory",
    "hw:mem_encryption": "memory encryption",
    "hw:mem_page_size": "a memory page size",
    "hw:numa_nodes": "NUMA nodes",
    "hw:pmem": "persistent memory",
    "hw:tpm_version": "a TPM",
    "hw:viommu_model": "an IOMMU",
    "pci_passthrough:alias": "PCI devices",
}
IMAGE_PROPERTIES = {
    "hw_cpu_policy": "dedicated processors",
    "hw_ephemeral_encryption": "disk encryption",
    "hw_locked_memory": "locked memory",
    "hw_mem_encryption": "memory encryption",
    "hw_mem_page_size": "a memory page size",
    "hw_numa_nodes": "NUMA nodes",
    "hw_tpm_version": "a TPM",
    "hw_viommu_model": "an IOMMU",
}


def refuse(properties: Mapping[str, Any], extra_specs: Mapping[str, str]) -> None:
    """Raises Invalid naming what is asked for and where."""
    for wishes, given, where in (
        (EXTRA_SPECS, extra_specs, "flavor extra spec"),
        (IMAGE_PROPERTIES, properties, "image property"),
    ):
        for name, what in wishes.items():
            if name in given and str(given[name]).strip().lower() not in _HARMLESS:
                raise exceptions.Invalid(f"The libvirt driver cannot give a guest {what} yet ({where} {name})")


def refuse_volumes(volumes: Iterable[Volume]) -> None:
    """Raises VolumeEncryptionNotSupported: the guest would write in the clear to a volume that promises otherwise."""
    for volume in volumes:
        if (volume.connection_info.get("data") or {}).get("encrypted"):
            kind = volume.connection_info.get("driver_volume_type")
            raise exceptions.VolumeEncryptionNotSupported(volume_id=volume.volume_id, volume_type=kind)
