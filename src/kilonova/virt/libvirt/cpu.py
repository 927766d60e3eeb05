"""The processor a guest sees."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as ET

import os_traits
from oslo_config import cfg

from kilonova.contract import exceptions, objects
from kilonova.virt.hardware.cpu_topology import Topology
from kilonova.virt.libvirt.config.domain import Cpu, CpuTune
from kilonova.virt.libvirt.config.element import element
from kilonova.virt.libvirt.connection import Connection

_DEFAULT_MODEL = {"x86_64": "qemu64", "i686": "qemu32"}
"""What QEMU gives a guest whose domain names no model."""

_IRREGULAR = {
    "aes": "AESNI",
    "bmi1": "BMI",
    "fma": "FMA3",
    "gfni": "AVX512GFNI",
    "pclmuldq": "CLMUL",
    "pclmulqdq": "CLMUL",
    "pni": "SSE3",
    "sha-ni": "SHA",
    "svm": "AMD_SVM",
    "vaes": "AVX512VAES",
    "vmx": "INTEL_VMX",
    "vpclmulqdq": "AVX512VPCLMULQDQ",
}
"""Flags whose trait is not simply their name in capitals without punctuation."""

_PUNCTUATION = str.maketrans("", "", "-_.")


def trait_of_flag(flag: str) -> str | None:
    """The standard trait of an x86 processor flag in libvirt's spelling; None where there is none."""
    lower = flag.lower()
    name = f"HW_CPU_X86_{_IRREGULAR.get(lower) or lower.upper().translate(_PUNCTUATION)}"
    return name if name in _x86_traits() else None


def traits_of_flags(flags: Iterable[str]) -> set[str]:
    found = {trait for trait in map(trait_of_flag, flags) if trait}
    # Virtualization has an older trait without the vendor's name that is still asked for.
    older = {"HW_CPU_X86_AMD_SVM": "HW_CPU_X86_SVM", "HW_CPU_X86_INTEL_VMX": "HW_CPU_X86_VMX"}
    return found | {older[trait] for trait in found if trait in older}


@functools.cache
def _x86_traits() -> frozenset[str]:
    return frozenset(os_traits.get_traits(prefix="HW_CPU_X86_"))


def split_flags(configured: Iterable[str]) -> dict[str, str]:
    """cpu_model_extra_flags as flag -> policy; a leading minus disables, a plus requires."""
    return {flag.lower().lstrip("+-"): "disable" if flag.startswith("-") else "require" for flag in configured if flag}


class Processors:
    """Chooses the processor model; `emulated` says that guests run without the host's own virtualization."""

    def __init__(self, conf: cfg.ConfigOpts, connection: Connection) -> None:
        self._conf = conf.libvirt
        self._connection = connection
        self.emulated = self._conf.virt_type == "qemu"

    def check(self) -> None:
        """Raises InvalidCPUInfo where the configuration cannot work."""
        mode, models = self._conf.cpu_mode, self._conf.cpu_models
        if mode == "custom" and not models:
            raise exceptions.InvalidCPUInfo(reason="libvirt.cpu_mode is custom but libvirt.cpu_models names none")
        if mode != "custom" and models:
            raise exceptions.InvalidCPUInfo(reason="libvirt.cpu_models needs libvirt.cpu_mode custom")
        if mode == "host-passthrough" and self.emulated:
            raise exceptions.InvalidCPUInfo(reason="libvirt.cpu_mode host-passthrough needs virt_type kvm")
        self._known_models()

    @property
    def mode(self) -> str | None:
        """libvirt's mode; None leaves the model to the hypervisor."""
        mode = self._conf.cpu_mode or "host-model"
        return None if mode == "none" else str(mode)

    def guest(self, flavor: objects.Flavor, topology: Topology, maxphysaddr: Mapping[str, str] | None) -> Cpu:
        mode = self.mode
        model = self._model(flavor) if mode == "custom" else None
        flags = split_flags(self._conf.cpu_model_extra_flags) if mode is not None else {}
        return Cpu(mode, model, topology.sockets, topology.cores, topology.threads, flags, maxphysaddr)

    def traits(self) -> set[str]:
        """What guests get, so that flavors can ask for it."""
        if self.mode is None:
            flags = set(self._flags_of(_DEFAULT_MODEL.get(host_arch(self._connection.capabilities), "")))
        elif self.mode == "custom":
            flags = set[str]().union(*(self._flags_of(model) for model in self._known_models()))
        else:
            flags = set(self._connection.host_features)
        for flag, policy in split_flags(self._conf.cpu_model_extra_flags).items():
            (flags.add if policy == "require" else flags.discard)(flag)
        return traits_of_flags(flags)

    def _model(self, flavor: objects.Flavor) -> str:
        """The first configured model with every processor trait the flavor requires."""
        models = self._known_models()
        wanted = required_cpu_traits(flavor.extra_specs)
        for model in models if wanted else models[:1]:
            if not wanted or wanted <= traits_of_flags(self._flags_of(model)):
                return model
        raise exceptions.InvalidCPUInfo(reason=f"no model of {', '.join(models)} has {', '.join(sorted(wanted))}")

    @functools.cache  # noqa: B019 - one per agent
    def _known_models(self) -> Sequence[str]:
        """The configured models as libvirt spells them. Raises InvalidCPUInfo for an unknown one."""
        if not self._conf.cpu_models:
            return ()
        arch = host_arch(self._connection.capabilities)
        spelled = {name.lower(): name for name in self._connection.get().getCPUModelNames(arch)}
        unknown = [model for model in self._conf.cpu_models if model.lower() not in spelled]
        if unknown:
            raise exceptions.InvalidCPUInfo(reason=f"libvirt does not know the model {', '.join(unknown)} on {arch}")
        return tuple(spelled[model.lower()] for model in self._conf.cpu_models)

    @functools.cache  # noqa: B019 - one per agent
    def _flags_of(self, model: str) -> frozenset[str]:
        if not model:
            return frozenset()
        arch = host_arch(self._connection.capabilities)
        return self._connection.cpu_features(element("cpu", element("arch", text=arch), element("model", text=model)))


def host_arch(capabilities: ET.Element) -> str:
    return capabilities.findtext("host/cpu/arch") or ""


def required_cpu_traits(extra_specs: Mapping[str, str]) -> set[str]:
    """The processor traits a flavor insists on: `trait:HW_CPU_X86_AVX=required`."""
    wanted = {key.partition(":")[2] for key, value in extra_specs.items() if value == "required"}
    return {trait for trait in wanted if trait.startswith("HW_CPU_X86_")}


def tuning(extra_specs: Mapping[str, str]) -> CpuTune | None:
    """Limits from `quota:cpu_shares|period|quota`. Raises Invalid for what is no number."""
    values: dict[str, int] = {}
    for name in ("shares", "period", "quota"):
        if (given := extra_specs.get(f"quota:cpu_{name}")) is not None:
            try:
                values[name] = int(given)
            except ValueError as failure:
                raise exceptions.Invalid(f"quota:cpu_{name} must be a whole number, not {given!r}") from failure
    return CpuTune(**values) if values else None
