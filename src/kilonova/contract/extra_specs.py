"""Extra specs of flavors that have a meaning: their names, and what their values may be.

Names may have parameters (``hw:numa_cpus.{num}``). Resource classes and traits are those of os-resource-classes and
os-traits. A name in a namespace of ours that is none of these is a mistake; every other namespace is the operator's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

import os_resource_classes
import os_traits
from oslo_utils import strutils

Kind = Literal["string", "integer", "boolean"]

CPUS: Final = r"\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*"
_MASK: Final = r"(\^)?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*"
_PMEM: Final = "([a-zA-Z0-9_]+(,)?)+"
_ALIASES: Final = r"[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*"
# As published, these take exponential time to refuse some texts; the same languages without that.
_QUICK: Final = {
    CPUS: r"\^?\d+(?:-\d+|,\^?\d+)*",
    _MASK: r"\^?\d+(?:-\d+|,\^?\d+)*",
    _PMEM: "[a-zA-Z0-9_]+(?:,[a-zA-Z0-9_]+)*,?",
    _ALIASES: r"[^:]+:\d+(?:\s*+,[^:]+:\d+)*",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraSpec:
    """One extra spec, or a family of them; ``parameters`` maps those in the name to their patterns."""

    name: str
    kind: Kind = "string"
    pattern: str | None = None
    enum: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    deprecated: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)

    def problem(self, value: str) -> str | None:
        """What is wrong with a value; None when nothing is."""
        if self.kind == "integer":
            return self._integer_problem(value)
        if self.kind == "boolean":
            return None if _is_boolean(value) else f"{value!r} is no boolean"
        if self.pattern and not re.fullmatch(_QUICK.get(self.pattern, self.pattern), value):
            return f"{value!r} does not have the form {self.pattern}"
        if self.enum and value not in self.enum:
            return f"{value!r} is none of {', '.join(self.enum)}"
        return None

    def _integer_problem(self, value: str) -> str | None:
        try:
            number = int(value)
        except ValueError:
            return f"{value!r} is no integer"
        if self.high is not None and number > self.high:
            return f"{value} is more than {self.high}"
        if self.low is not None and number < self.low:
            return f"{value} is less than {self.low}"
        return None

    def name_pattern(self) -> str:
        """The regular expression of the names."""
        parts = re.split(r"\{(\w+)\}", self.name)
        return "".join(self.parameters[part] if at % 2 else re.escape(part) for at, part in enumerate(parts))


def _is_boolean(value: str) -> bool:
    try:
        strutils.bool_from_string(value, strict=True)
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------- the table

_LEVELS: Final = ("custom", "high", "normal", "low")
_CAPABILITIES: Final = (
    "aggregates",
    "cell_uuid",
    "cpu_allocation_ratio",
    "current_workload",
    "disk_allocation_ratio",
    "disk_available_least",
    "disk_mb_used",
    "failed_builds",
    "free_disk_gb",
    "free_disk_mb",
    "free_ram_mb",
    "host",
    "host_ip",
    "hypervisor_hostname",
    "hypervisor_type",
    "hypervisor_version",
    "id",
    "local_gb",
    "local_gb_used",
    "mapped",
    "memory_mb",
    "memory_mb_used",
    "num_instances",
    "num_io_ops",
    "ram_allocation_ratio",
    "running_vms",
    "service_id",
    "total_usable_disk_gb",
    "total_usable_ram_mb",
    "updated",
    "uuid",
    "vcpus",
    "vcpus_total",
    "vcpus_used",
)
_TEXTS: Final = (
    "accel:device_profile",
    *(f"capabilities:{name}" for name in _CAPABILITIES),
    "vmware:hw_version",
    "vmware:storage_policy",
)
_NESTED_CAPABILITIES: Final = (
    "cpu_info",
    "instances",
    "limits",
    "metrics",
    "nodename",
    "numa_topology",
    "pci_device_pools",
    "pci_stats",
    "stats",
    "supported_hv_specs",
    "supported_instances",
)
_BOOLEANS: Final = (
    "hw:boot_menu",
    "hw:cpu_realtime",
    "hw:ephemeral_encryption",
    "hw:hide_hypervisor_id",
    "hw:locked_memory",
    "hw:mem_encryption",
    "hw:pmu",
    "hw:vif_multiqueue_enabled",
    "hw:virtio_packed_ring",
    "hw_rng:allowed",
)
_ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "group_policy": ("isolate", "none"),
    "hw:cpu_policy": ("dedicated", "shared", "mixed"),
    "hw:cpu_thread_policy": ("prefer", "isolate", "require"),
    "hw:emulator_threads_policy": ("isolate", "share"),
    "hw:ephemeral_encryption_format": ("plain", "luks", "luksv2"),
    "hw:mem_encryption_model": ("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
    "hw:pci_numa_affinity_policy": ("required", "preferred", "legacy", "socket"),
    "hw:sound_model": ("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio"),
    "hw:tpm_model": ("tpm-tis", "tpm-crb"),
    "hw:tpm_secret_security": ("user", "host", "deployment"),
    "hw:tpm_version": ("1.2", "2.0"),
    "hw:usb_model": ("none", "nec-xhci", "qemu-xhci"),
    "hw:viommu_model": ("intel", "smmuv3", "virtio", "auto"),
    "hw:watchdog_action": ("none", "pause", "poweroff", "reset", "disabled"),
    "os:secure_boot": ("disabled", "required"),
    "quota:cpu_shares_level": _LEVELS,
    "quota:disk_io_shares_level": _LEVELS,
    "quota:memory_shares_level": _LEVELS,
    "quota:vif_shares_level": _LEVELS,
}
_PATTERNS: Final = {
    "hw:cpu_dedicated_mask": CPUS,
    "hw:cpu_realtime_mask": _MASK,
    "hw:mem_page_size": r"(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)",
    "hw:pmem": _PMEM,
    "pci_passthrough:alias": _ALIASES,
}
_FROM_ONE: Final = (
    "hw:cpu_cores",
    "hw:cpu_max_cores",
    "hw:cpu_max_sockets",
    "hw:cpu_max_threads",
    "hw:cpu_sockets",
    "hw:cpu_threads",
    "hw:numa_nodes",
)
_QUOTAS: Final = (
    "cpu_limit",
    "cpu_period",
    "cpu_shares",
    "cpu_shares_share",
    "disk_io_limit",
    "disk_io_shares_share",
    "disk_read_bytes_sec",
    "disk_read_iops_sec",
    "disk_total_bytes_sec",
    "disk_total_iops_sec",
    "disk_write_bytes_sec",
    "disk_write_iops_sec",
    "memory_limit",
    "memory_shares_share",
    "vif_inbound_average",
    "vif_inbound_burst",
    "vif_inbound_peak",
    "vif_limit",
    "vif_outbound_average",
    "vif_outbound_burst",
    "vif_outbound_peak",
    "vif_shares_share",
)
_FROM_ZERO: Final = (
    "hw:serial_port_count",
    "hw_rng:rate_bytes",
    "hw_rng:rate_period",
    "hw_video:ram_max_mb",
    *(f"quota:{name}" for name in _QUOTAS),
)
_ANY_INTEGER: Final = (
    "quota:cpu_quota",
    "quota:cpu_reservation",
    "quota:disk_io_reservation",
    "quota:memory_reservation",
    "quota:vif_reservation",
)
_NUMBER: Final = {"num": r"\d+"}
_GROUP: Final = {"group": "([a-zA-Z0-9_-]{1,64})?"}
_CUSTOM: Final = "[A-Z0-9_]+"
_WANTED: Final = ("required", "forbidden")


def _all() -> Iterator[ExtraSpec]:
    yield from (ExtraSpec(name=name) for name in _TEXTS)
    yield from (
        ExtraSpec(name=f"capabilities:{name}{{filter}}", parameters={"filter": r"(:\w+)*"})
        for name in _NESTED_CAPABILITIES
    )
    yield ExtraSpec(name="aggregate_instance_extra_specs:{key}", parameters={"key": ".+"})
    yield from (ExtraSpec(name=name, kind="boolean") for name in _BOOLEANS)
    yield ExtraSpec(name="hide_hypervisor_id", kind="boolean", deprecated=True)
    yield from (ExtraSpec(name=name, enum=values) for name, values in _ENUMS.items())
    yield from (ExtraSpec(name=name, pattern=pattern) for name, pattern in _PATTERNS.items())
    yield from (ExtraSpec(name=name, kind="integer", low=1) for name in _FROM_ONE)
    yield from (ExtraSpec(name=name, kind="integer", low=0) for name in _FROM_ZERO)
    yield from (ExtraSpec(name=name, kind="integer") for name in _ANY_INTEGER)
    yield ExtraSpec(name="hw:redirected_usb_ports", kind="integer", low=0, high=15)
    yield ExtraSpec(name="hw:numa_cpus.{num}", pattern=CPUS, parameters=_NUMBER)
    yield ExtraSpec(name="hw:numa_mem.{num}", kind="integer", low=1, parameters=_NUMBER)
    yield from _of_placement()


def _of_placement() -> Iterator[ExtraSpec]:
    for resource in os_resource_classes.STANDARDS:
        yield ExtraSpec(name=f"resources{{group}}:{resource}", kind="integer", parameters=_GROUP)
    custom = {**_GROUP, "resource": _CUSTOM}
    yield ExtraSpec(name="resources{group}:CUSTOM_{resource}", kind="integer", parameters=custom)
    for trait in os_traits.get_traits():
        yield ExtraSpec(name=f"trait{{group}}:{trait}", enum=_WANTED, parameters=_GROUP)
    yield ExtraSpec(name="trait{group}:CUSTOM_{trait}", enum=_WANTED, parameters={**_GROUP, "trait": _CUSTOM})


# ---------------------------------------------------------------- questions


@cache
def known() -> Mapping[str, ExtraSpec]:
    """All by name."""
    return {spec.name: spec for spec in _all()}


@cache
def _families() -> list[tuple[re.Pattern[str], ExtraSpec]]:
    return [(re.compile(spec.name_pattern()), spec) for spec in known().values() if spec.parameters]


@cache
def _namespaces() -> list[re.Pattern[str]]:
    patterns = {spec.name_pattern().partition(":")[0] for spec in known().values() if ":" in spec.name}
    return [re.compile(pattern) for pattern in sorted(patterns)]


def find(name: str) -> ExtraSpec | None:
    """The extra spec, or its family."""
    exact = known().get(name)
    if exact is not None:
        return exact
    return next((spec for pattern, spec in _families() if pattern.fullmatch(name)), None)


def problem(name: str, value: str) -> str | None:
    """What is wrong with an extra spec; None when nothing is, or when it is the operator's own."""
    spec = find(name)
    if spec is not None:
        return spec.problem(value)
    space, colon, _ = name.partition(":")
    if colon and any(pattern.fullmatch(space) for pattern in _namespaces()):
        return f"there is no extra spec {name!r}"
    return None
