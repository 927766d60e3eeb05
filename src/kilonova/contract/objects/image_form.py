"""From the plain form of an image (a dict as `image_show` and the bus have it) to the fields of the wire objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMER_NAMES: Mapping[str, str] = {
    "architecture": "hw_architecture",
    "auto_disk_config": "hw_auto_disk_config",
    "bdm_v2": "img_bdm_v2",
    "bittorrent": "img_bittorrent",
    "block_device_mapping": "img_block_device_mapping",
    "cache_in_nova": "img_cache_in_nova",
    "hypervisor_type": "img_hv_type",
    "hypervisor_version_requires": "img_hv_requested_version",
    "ipxe_boot": "hw_ipxe_boot",
    "mappings": "img_mappings",
    "owner_id": "img_owner_id",
    "root_device_name": "img_root_device_name",
    "vm_mode": "hw_vm_mode",
    "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version",
    "vmware_linked_clone": "img_linked_clone",
    "vmware_ostype": "os_distro",
    "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
    "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "xenapi_use_agent": "img_use_agent",
}
"""Names that properties had before; the present name goes before the former one."""

EMPTY_TEXT = ("name", "checksum", "owner", "container_format", "disk_format")
EMPTY_NUMBER = ("size", "virtual_size")
"""Unknown values that the wire object cannot leave open."""

NUMA_CELLS = 128
MOST_CPUS = 8192
"""More processors than Linux knows no guest has; whoever owns an image could name any number."""
REQUIRED_TRAIT = "required"


def image_values(image: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Values for ImageMeta's fields but `properties`; keys it does not have are passed over."""
    values = {name: value for name, value in image.items() if name in known and name != "properties"}
    values |= {name: "" for name in EMPTY_TEXT if name in values and values[name] is None}
    values |= {name: 0 for name in EMPTY_NUMBER if name in values and values[name] is None}
    return values


def property_values(properties: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Values for ImageMetaProps's fields; properties that say nothing about running a guest are passed over."""
    values = {FORMER_NAMES[name]: value for name, value in properties.items() if name in FORMER_NAMES}
    values |= _vmware_adapter(properties.get("vmware_adaptertype"))
    values |= {name: value for name, value in properties.items() if name in known and name not in _SPECIAL}
    if memory := _per_cell(properties, "hw_numa_mem"):
        values["hw_numa_mem"] = [int(each) for each in memory]
    if cpus := _per_cell(properties, "hw_numa_cpus"):
        values["hw_numa_cpus"] = [cpu_set(each) for each in cpus]
    traits = [n.removeprefix("trait:") for n, v in properties.items() if n.startswith("trait:") and v == REQUIRED_TRAIT]
    if traits:
        values["traits_required"] = traits
    return values


_SPECIAL = ("hw_numa_mem", "hw_numa_cpus", "traits_required")


def cpu_set(text: str) -> set[int]:
    """`0-3,^2,8` as {0, 1, 3, 8}. Raises ValueError."""
    wanted: set[int] = set()
    refused: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        target = refused if part.startswith("^") else wanted
        first, _, last = part.lstrip("^").partition("-")
        low, high = int(first), int(last or first)
        if high >= MOST_CPUS:
            raise ValueError(f"there is no processor {high}")
        target |= set(range(low, high + 1))
    return wanted - refused


def _per_cell(properties: Mapping[str, Any], name: str) -> list[Any]:
    """`name.0`, `name.1` ... up to the first that is missing."""
    found = []
    for cell in range(NUMA_CELLS):
        if f"{name}.{cell}" not in properties:
            break
        found.append(properties[f"{name}.{cell}"])
    return found


def _vmware_adapter(kind: str | None) -> dict[str, str]:
    if not kind:
        return {}
    return {"hw_disk_bus": "ide"} if kind == "ide" else {"hw_disk_bus": "scsi", "hw_scsi_model": kind}
