"""What the flavor and the image promise of a server's hardware: refused when it contradicts itself or is not built.

Everything here is pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kilonova.api.servers.creation import image as images
from kilonova.api.servers.creation.devices import truth
from kilonova.contract import extra_specs, objects
from kilonova.wire.http.faults import Fault, bad_request

_JUDGED: Final = (
    "hw:cpu_policy",
    "hw:cpu_thread_policy",
    "hw:cpu_realtime_mask",
    "hw:cpu_dedicated_mask",
    "hw:emulator_threads_policy",
    "hw:mem_page_size",
    "hw:numa_nodes",
    "hw:pci_numa_affinity_policy",
)
"""Flavors from before 2.86 may have anything in these, and a server must not be made of it."""

_EXTRA_SPECS_UNBUILT: Final = (
    "hw:numa_nodes",
    "hw:mem_page_size",
    "hw:cpu_realtime",
    "hw:pmem",
    "hw:mem_encryption",
    "hw:tpm_version",
    "hw:locked_memory",
    "pci_passthrough:alias",
    "accel:device_profile",
)
_PROPERTIES_UNBUILT: Final = (
    "hw_numa_nodes",
    "hw_mem_page_size",
    "hw_cpu_realtime_mask",
    "hw_mem_encryption",
    "hw_locked_memory",
)
_SWITCHES: Final = frozenset({"hw:locked_memory", "hw_locked_memory"})
"""Of the unbuilt ones, those that ask for nothing when they are off."""
_PINNING: Final = ("dedicated", "mixed")
_CPUS: Final = re.compile(r"resources\w*:([VP]CPU)")


def check(flavor: Mapping[str, Any], image: images.Image) -> None:
    """Raise `Fault` 400 for what makes no sense, 501 for what no host would give."""
    specs, properties = flavor["extra_specs"], images.properties(image)
    _check_image(image)
    _check_specs(specs)
    _check_together(specs, properties)
    _check_built(specs, properties)


def _check_image(image: images.Image) -> None:
    try:
        objects.ImageMeta.from_dict(image)
    except ValueError as error:
        raise bad_request(f"Invalid image metadata. Error: {error}") from None


def _check_specs(specs: Mapping[str, str]) -> None:
    for name in _JUDGED:
        problem = extra_specs.problem(name, specs[name]) if name in specs else None
        if problem:
            raise bad_request(f"The flavor's extra spec {name} makes no sense: {problem}.")


def _check_together(specs: Mapping[str, str], properties: Mapping[str, Any]) -> None:
    locked = truth(specs.get("hw:locked_memory", False)) or truth(properties.get("hw_locked_memory", False))
    if locked and "hw:mem_page_size" not in specs and "hw_mem_page_size" not in properties:
        raise bad_request("Memory can be locked (hw:locked_memory) only together with a page size (hw:mem_page_size).")
    kinds = {match[1] for match in map(_CPUS.fullmatch, specs) if match}
    if kinds and ("hw:cpu_policy" in specs or "hw_cpu_policy" in properties):
        raise bad_request("A CPU policy and resources:VCPU or resources:PCPU exclude each other.")
    if len(kinds) > 1:
        raise bad_request("resources:VCPU and resources:PCPU exclude each other.")


def _check_built(specs: Mapping[str, str], properties: Mapping[str, Any]) -> None:
    """A server must not start without what its flavor promises."""
    wanted = {name: value for name, value in specs.items() if name.startswith(_EXTRA_SPECS_UNBUILT)}
    wanted |= {name: properties[name] for name in _PROPERTIES_UNBUILT if name in properties}
    lost = [name for name, value in wanted.items() if name not in _SWITCHES or truth(value)]
    lost += [name for name in specs if (match := _CPUS.fullmatch(name)) and match[1] == "PCPU"]
    if specs.get("hw:cpu_policy") in _PINNING:
        lost.append("hw:cpu_policy")
    if properties.get("hw_cpu_policy") in _PINNING:
        lost.append("hw_cpu_policy")
    if lost:
        raise Fault(501, f"Not built yet: this service cannot give a server {', '.join(sorted(lost))}.")
