"""What this host offers, told to Placement: its provider, inventory and traits. Written only when it changed."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import os_resource_classes as rc
import os_traits
from oslo_config import cfg

from kilonova.base import retry
from kilonova.contract.context import RequestContext
from kilonova.virt.driver import Driver, Inventory

if TYPE_CHECKING:
    from kilonova.clients.placement.client import Placement

LOG = logging.getLogger(__name__)

CAPABILITY_TRAITS: Mapping[str, str] = {
    "supports_accelerators": os_traits.COMPUTE_ACCELERATORS,
    "supports_address_space_emulated": "COMPUTE_ADDRESS_SPACE_EMULATED",
    "supports_address_space_passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    "supports_attach_interface": os_traits.COMPUTE_NET_ATTACH_INTERFACE,
    "supports_bfv_rescue": os_traits.COMPUTE_RESCUE_BFV,
    "supports_device_tagging": os_traits.COMPUTE_DEVICE_TAGGING,
    "supports_ephemeral_encryption": "COMPUTE_EPHEMERAL_ENCRYPTION",
    "supports_ephemeral_encryption_luks": "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS",
    "supports_ephemeral_encryption_plain": "COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN",
    "supports_extend_volume": os_traits.COMPUTE_VOLUME_EXTEND,
    "supports_image_type_aki": os_traits.COMPUTE_IMAGE_TYPE_AKI,
    "supports_image_type_ami": os_traits.COMPUTE_IMAGE_TYPE_AMI,
    "supports_image_type_ari": os_traits.COMPUTE_IMAGE_TYPE_ARI,
    "supports_image_type_iso": os_traits.COMPUTE_IMAGE_TYPE_ISO,
    "supports_image_type_ploop": os_traits.COMPUTE_IMAGE_TYPE_PLOOP,
    "supports_image_type_qcow2": os_traits.COMPUTE_IMAGE_TYPE_QCOW2,
    "supports_image_type_raw": os_traits.COMPUTE_IMAGE_TYPE_RAW,
    "supports_image_type_vdi": os_traits.COMPUTE_IMAGE_TYPE_VDI,
    "supports_image_type_vhd": os_traits.COMPUTE_IMAGE_TYPE_VHD,
    "supports_image_type_vhdx": os_traits.COMPUTE_IMAGE_TYPE_VHDX,
    "supports_image_type_vmdk": os_traits.COMPUTE_IMAGE_TYPE_VMDK,
    "supports_mem_backing_file": "COMPUTE_MEM_BACKING_FILE",
    "supports_migrate_to_same_host": os_traits.COMPUTE_SAME_HOST_COLD_MIGRATE,
    "supports_multiattach": os_traits.COMPUTE_VOLUME_MULTI_ATTACH,
    "supports_remote_managed_ports": "COMPUTE_REMOTE_MANAGED_PORTS",
    "supports_secure_boot": os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT,
    "supports_socket_pci_numa_affinity": os_traits.COMPUTE_SOCKET_PCI_NUMA_AFFINITY,
    "supports_stateless_firmware": "COMPUTE_SECURITY_STATELESS_FIRMWARE",
    "supports_tagged_attach_interface": os_traits.COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG,
    "supports_tagged_attach_volume": os_traits.COMPUTE_VOLUME_ATTACH_WITH_TAG,
    "supports_trusted_certs": os_traits.COMPUTE_TRUSTED_CERTS,
    "supports_virtio_fs": "COMPUTE_STORAGE_VIRTIO_FS",
}
"""Capability -> the trait by which a request can ask for it."""

NEEDS_HARDWARE = {"supports_remote_managed_ports"}
"""Capabilities of the driver that count only with devices in the host, of which there are none yet."""

ALWAYS = frozenset({os_traits.COMPUTE_NODE, "OWNER_NOVA"})
DISABLED = os_traits.COMPUTE_STATUS_DISABLED
CONFLICT = retry.Backoff(attempts=5, base=0.1, cap=2.0)


@dataclasses.dataclass(eq=False)
class _Told:
    """What we last told Placement of one provider, and the generation it answered."""

    generation: int
    inventory: Mapping[str, Mapping[str, Any]]
    traits: frozenset[str]
    owned: frozenset[str]
    """Traits that are ours to take back."""


class Reporter:
    """Thread-safe; remembers what was told and reads Placement only at the start and after a conflict."""

    def __init__(self, conf: cfg.ConfigOpts, placement: Placement) -> None:
        self._conf = conf
        self._placement = placement
        self._told: dict[str, _Told] = {}
        self._lock = threading.Lock()

    def report(self, ctxt: RequestContext, uuid: str, name: str, driver: Driver, *, disabled: bool) -> None:
        """Make provider, inventory and traits what they should be. Raises clients' ServiceError."""
        offered = driver.inventory(name)
        wanted = capability_traits(driver) | driver.traits(name) | ALWAYS | ({DISABLED} if disabled else set())
        with self._lock:
            self._patiently(uuid, lambda: self._tell(ctxt, uuid, name, offered, frozenset(wanted)))

    def set_disabled(self, ctxt: RequestContext, uuid: str, disabled: bool) -> None:
        """Set or take away the trait that keeps schedulers from the host."""
        with self._lock:
            self._patiently(uuid, lambda: self._mark(ctxt, uuid, disabled))

    def _patiently(self, uuid: str, tell: Callable[[], None]) -> None:
        from kilonova.clients.placement.client import GenerationConflict, ProviderMissing

        retry.call(
            tell,
            on=(GenerationConflict, ProviderMissing),
            backoff=CONFLICT,
            before_retry=lambda exc, attempt: self._told.pop(uuid, None),
        )

    def _tell(
        self, ctxt: RequestContext, uuid: str, name: str, offered: Mapping[str, Inventory], wanted: frozenset[str]
    ) -> None:
        told = self._told.get(uuid) or self._read(ctxt, uuid, name, wanted)
        inventory = {
            cls: self._record(cls, each, told.inventory.get(cls)) for cls, each in offered.items() if each.total
        }
        if not same_inventory(inventory, told.inventory):
            told.generation = self._placement.inventory_set(ctxt, uuid, inventory, told.generation)
            LOG.info("provider %s now offers %s", uuid, inventory)
        told.inventory = inventory
        self._set_traits(ctxt, uuid, told, (told.traits - told.owned) | wanted)
        told.owned = wanted | frozenset(CAPABILITY_TRAITS.values()) | {DISABLED}
        self._told[uuid] = told

    def _mark(self, ctxt: RequestContext, uuid: str, disabled: bool) -> None:
        told = self._told.get(uuid)
        if told is None:
            traits, generation = self._placement.traits_get(ctxt, uuid)
            told = _Told(generation, {}, frozenset(traits), frozenset({DISABLED}))
        wanted = told.traits | {DISABLED} if disabled else told.traits - {DISABLED}
        self._set_traits(ctxt, uuid, told, wanted)

    def _set_traits(self, ctxt: RequestContext, uuid: str, told: _Told, wanted: frozenset[str]) -> None:
        if wanted != told.traits:
            told.generation = self._placement.traits_set(ctxt, uuid, wanted, told.generation)
            told.traits = wanted

    def _read(self, ctxt: RequestContext, uuid: str, name: str, wanted: frozenset[str]) -> _Told:
        self._placement.provider_ensure(ctxt, uuid, name)
        inventory, _ = self._placement.inventory_get(ctxt, uuid)
        traits, generation = self._placement.traits_get(ctxt, uuid)
        owned = set(CAPABILITY_TRAITS.values()) | {DISABLED}
        if any(trait.startswith("HW_CPU_") for trait in wanted):
            owned |= {trait for trait in traits if trait.startswith("HW_CPU_")}
        return _Told(generation, inventory, frozenset(traits), frozenset(owned))

    def _record(self, cls: str, offered: Inventory, before: Mapping[str, Any] | None) -> dict[str, Any]:
        return {
            "total": offered.total,
            "reserved": min(offered.total, offered.reserved + self._reserved(cls)),
            "min_unit": offered.min_unit,
            "max_unit": offered.max_unit or offered.total,
            "step_size": offered.step_size,
            "allocation_ratio": self._ratio(cls, offered, before),
        }

    def _reserved(self, cls: str) -> int:
        conf = self._conf
        if cls == rc.MEMORY_MB:
            return int(conf.reserved_host_memory_mb)
        if cls == rc.DISK_GB:
            return math.ceil(conf.reserved_host_disk_mb / 1024)
        return int(conf.reserved_host_cpus) if cls == rc.VCPU else 0

    def _ratio(self, cls: str, offered: Inventory, before: Mapping[str, Any] | None) -> float:
        """The configured ratio; unset, what Placement holds (an operator may have set it there), else the first one."""
        word = {rc.VCPU: "cpu", rc.MEMORY_MB: "ram", rc.DISK_GB: "disk"}.get(cls)
        if word is None:
            return offered.allocation_ratio
        configured = getattr(self._conf, f"{word}_allocation_ratio")
        if configured:
            return float(configured)
        if before is not None:
            return float(before["allocation_ratio"])
        return float(getattr(self._conf, f"initial_{word}_allocation_ratio"))


def capability_traits(driver: Driver) -> set[str]:
    """Traits of what the driver can do."""
    able = {name for name, yes in driver.capabilities.items() if yes} - NEEDS_HARDWARE
    return {trait for name, trait in CAPABILITY_TRAITS.items() if name in able}


def same_inventory(ours: Mapping[str, Mapping[str, Any]], theirs: Mapping[str, Mapping[str, Any]]) -> bool:
    """Placement answers with more keys than we send; only ours count."""
    if ours.keys() != theirs.keys():
        return False
    return all(theirs[cls].get(key) == value for cls, record in ours.items() for key, value in record.items())
