"""From a request spec to the query for allocation candidates.

The unnumbered group holds what flavor and image need of the host itself; groups
with a suffix come from granular extra specs (`resourcesX:...`, `traitX:...`) and
from ports. Source: Placement API reference, GET /allocation_candidates (1.36).
"""

from __future__ import annotations

import logging
import math
import re
from typing import Any

import os_resource_classes as orc
import os_traits

from kilonova.contract import exceptions, objects
from kilonova.scheduler.wishes import Wishes

LOG = logging.getLogger(__name__)

GRANULAR = re.compile(r"^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$")
POLICIES = ("none", "isolate")

MEMORY_ENCRYPTION_TRAITS = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
TPM_TRAITS = {
    "tpm-tis": os_traits.COMPUTE_SECURITY_TPM_TIS,
    "tpm-crb": os_traits.COMPUTE_SECURITY_TPM_CRB,
    "1.2": os_traits.COMPUTE_SECURITY_TPM_1_2,
    "2.0": os_traits.COMPUTE_SECURITY_TPM_2_0,
}
ADDRESS_TRAITS = {
    "passthrough": os_traits.COMPUTE_ADDRESS_SPACE_PASSTHROUGH,
    "emulate": os_traits.COMPUTE_ADDRESS_SPACE_EMULATED,
}


class Query:
    """Request groups by suffix (None is the unnumbered one) and what holds for all of them."""

    def __init__(self, limit: int | None) -> None:
        self.groups: dict[str | None, objects.RequestGroup] = {}
        self.limit = limit
        self.policy: str | None = None
        self.root_required: set[str] = set()
        self.root_forbidden: set[str] = set()
        self.same_subtree: list[list[str]] = []
        self.pinned = False

    def group(self, suffix: str | None = None) -> objects.RequestGroup:
        if suffix not in self.groups:
            self.groups[suffix] = objects.RequestGroup(use_same_provider=bool(suffix), requester_id=suffix)
        return self.groups[suffix]

    def add_resource(self, name: str, amount: str | int, suffix: str | None = None) -> None:
        """Unknown classes and amounts that are no counts are logged and left out."""
        known = name.startswith(orc.CUSTOM_NAMESPACE) or name in orc.STANDARDS
        count = int(amount) if str(amount).isdigit() else None
        if not known or count is None:
            LOG.warning("ignoring the resource request %s=%s", name, amount)
            return
        self.group(suffix).resources[name] = count

    def add_trait(self, name: str, kind: str = "required", suffix: str | None = None) -> None:
        if kind == "required":
            self.group(suffix).required_traits.add(name)
        elif kind == "forbidden":
            self.group(suffix).forbidden_traits.add(name)
        else:
            LOG.warning("ignoring the trait request %s=%s", name, kind)

    def add_group(self, group: objects.RequestGroup) -> None:
        """Raises RequestGroupSuffixConflict."""
        if group.requester_id in self.groups:
            raise exceptions.RequestGroupSuffixConflict(suffix=group.requester_id)
        self.groups[group.requester_id] = group

    def asked(self, *names: str) -> bool:
        """Some group asks for one of the classes, be it for 0."""
        return any(name in group.resources for group in self.groups.values() for name in names)

    def required_traits(self) -> set[str]:
        return {trait for group in self.groups.values() for trait in group.required_traits}

    def finish(self) -> None:
        """Amounts of 0 mean: nothing of that; groups that ask for nothing go."""
        for suffix, group in list(self.groups.items()):
            group.resources = {name: amount for name, amount in group.resources.items() if amount}
            if not asks(group):
                del self.groups[suffix]

    def params(self) -> list[tuple[str, str]]:
        """As GET /allocation_candidates takes it, sorted."""
        out: list[tuple[str, str]] = []
        if self.limit is not None:
            out.append(("limit", str(self.limit)))
        if self.policy is not None:
            out.append(("group_policy", self.policy))
        roots = sorted(self.root_required) + [f"!{name}" for name in sorted(self.root_forbidden)]
        if roots:
            out.append(("root_required", ",".join(roots)))
        out.extend(("same_subtree", ",".join(sorted(each))) for each in self.same_subtree)
        for group in self.groups.values():
            out.extend(group_params(group))
        return sorted(out)


def asks(group: objects.RequestGroup) -> bool:
    """A group that only names a tree or aggregates still counts for the latter."""
    return bool(
        group.resources
        or group.required_traits
        or group.forbidden_traits
        or group.aggregates
        or group.forbidden_aggregates
    )


def group_params(group: objects.RequestGroup) -> list[tuple[str, str]]:
    suffix = group.requester_id or ""
    out: list[tuple[str, str]] = []
    if group.resources:
        amounts = ",".join(sorted(f"{name}:{amount}" for name, amount in group.resources.items()))
        out.append((f"resources{suffix}", amounts))
    traits = sorted(group.required_traits) + [f"!{name}" for name in sorted(group.forbidden_traits)]
    if traits:
        out.append((f"required{suffix}", ",".join(traits)))
    out.extend((f"member_of{suffix}", f"in:{','.join(sorted(any_of))}") for any_of in group.aggregates)
    if group.in_tree:
        out.append((f"in_tree{suffix}", group.in_tree))
    if group.forbidden_aggregates:
        out.append((f"member_of{suffix}", f"!in:{','.join(sorted(group.forbidden_aggregates))}"))
    return out


def from_request(spec: objects.RequestSpec, limit: int | None, *, translate_pinning: bool = True) -> Query:
    """The query for what a request spec needs. Raises FlavorImageConflict, RequestGroupSuffixConflict, InvalidInput.

    `translate_pinning`: dedicated CPUs are asked for as PCPU; False asks hosts that do not tell them apart.
    """
    query = Query(limit)
    wishes = Wishes(spec.flavor, field(spec, "image"))
    params = field(spec, "request_level_params")
    if params is not None:
        query.root_required |= set(params.root_required)
        query.root_forbidden |= set(params.root_forbidden)
        query.same_subtree = [list(each) for each in params.same_subtree]
    _add_extra_specs(query, wishes)
    from_flavor = sum(1 for suffix in query.groups if suffix)
    for trait in wishes.prop("traits_required") or ():
        query.add_trait(trait)
    if translate_pinning:
        _add_cpus(query, wishes)
    for group in field(spec, "requested_resources") or ():
        query.add_group(group)
    _add_flavor(query, spec)
    _add_devices(query, wishes)
    query.finish()
    _settle_policy(query, from_flavor)
    return query


def field(spec: objects.RequestSpec, name: str) -> Any:
    """A field of the request spec, None where it was never set."""
    return getattr(spec, name) if spec.obj_attr_is_set(name) else None


def _add_extra_specs(query: Query, wishes: Wishes) -> None:
    for key, value in wishes.specs.items():
        if key == "group_policy":
            query.policy = value if value in POLICIES else None
            continue
        match = GRANULAR.match(key)
        if match is None:
            continue
        kind, suffix, name = match.groups()
        if kind == "resources":
            query.add_resource(name, value, suffix)
        else:
            query.add_trait(name, value, suffix)


def _add_cpus(query: Query, wishes: Wishes) -> None:
    policy = wishes.cpu_policy()
    pinned = {"dedicated": wishes.flavor.vcpus, "mixed": wishes.dedicated_count()}.get(policy or "", 0)
    if policy in ("dedicated", "mixed"):
        query.pinned = policy == "dedicated"
        if policy == "mixed":
            query.add_resource(orc.VCPU, wishes.flavor.vcpus - pinned)
        query.add_resource(orc.PCPU, pinned + (1 if wishes.isolates_emulator() else 0))
    threads = {"isolate": "forbidden", "require": "required"}.get(wishes.cpu_thread_policy() or "")
    if threads:
        query.add_trait(os_traits.HW_CPU_HYPERTHREADING, threads)


def _add_flavor(query: Query, spec: objects.RequestSpec) -> None:
    flavor = spec.flavor
    if not query.asked(orc.VCPU, orc.PCPU):
        query.add_resource(orc.VCPU, flavor.vcpus)
    if not query.asked(orc.MEMORY_MB):
        query.add_resource(orc.MEMORY_MB, flavor.memory_mb)
    if not query.asked(orc.DISK_GB):
        disk = flavor.ephemeral_gb + math.ceil((flavor.swap or 0) / 1024)
        if not field(spec, "is_bfv"):
            disk += flavor.root_gb
        query.add_resource(orc.DISK_GB, disk)


def _add_devices(query: Query, wishes: Wishes) -> None:
    encryption = wishes.memory_encryption_model()
    if encryption is not None:
        query.add_resource(orc.MEM_ENCRYPTION_CONTEXT, 1)
        query.add_trait(MEMORY_ENCRYPTION_TRAITS.get(encryption, MEMORY_ENCRYPTION_TRAITS["amd-sev"]))
    labels = wishes.persistent_memory()
    for label in set(labels):
        query.add_resource(orc.normalize_name(f"PMEM_NAMESPACE_{label}"), labels.count(label))
    for trait in _device_traits(wishes):
        query.add_trait(trait)


def _device_traits(wishes: Wishes) -> list[str]:
    found = [TPM_TRAITS[each] for each in wishes.tpm() or () if each in TPM_TRAITS]
    if wishes.both("pci_numa_affinity_policy") == "socket":
        found.append(os_traits.COMPUTE_SOCKET_PCI_NUMA_AFFINITY)
    if wishes.requires_secure_boot():
        found.append(os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT)
    address_space = wishes.both("maxphysaddr_mode")
    if address_space in ADDRESS_TRAITS:
        found.append(ADDRESS_TRAITS[str(address_space)])
    if wishes.stateless_firmware():
        found.append(os_traits.COMPUTE_SECURITY_STATELESS_FIRMWARE)
    return found


def _settle_policy(query: Query, from_flavor: int) -> None:
    """Placement wants a policy for several groups; where the flavor made at most one of them, `none` is meant."""
    if query.policy is None and sum(1 for suffix in query.groups if suffix) >= 2:
        LOG.warning("several resource groups are requested, but the flavor has no group_policy")
        if from_flavor <= 1:
            query.policy = "none"
