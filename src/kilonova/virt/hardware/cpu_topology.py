"""Sockets, cores and threads of a guest.

Flavor (`hw:cpu_sockets` ...) and image (`hw_cpu_sockets` ...) may each name preferences and maxima. The image's
preferences win, within the flavor's maxima.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from kilonova.contract import exceptions

UNBOUNDED = 65536
_PARTS = ("sockets", "cores", "threads")


@dataclasses.dataclass(frozen=True)
class Topology:
    sockets: int
    cores: int
    threads: int


Parts = Mapping[str, int]


def best_topology(vcpus: int, extra_specs: Mapping[str, str], properties: Mapping[str, Any]) -> Topology:
    """The topology with exactly `vcpus` within the maxima that meets most of the preferences.

    Among equals few threads win, then many sockets. Raises ImageVCPULimitsRangeExceeded,
    ImageVCPUTopologyRangeExceeded, ImageVCPULimitsRangeImpossible, and InvalidRequest for a flavor's value that is no
    number.
    """
    maxima = _maxima(extra_specs, properties)
    preferred = _preferences(extra_specs, properties, maxima)
    candidates = list(_candidates(vcpus, maxima))
    if not candidates:
        raise exceptions.ImageVCPULimitsRangeImpossible(vcpus=vcpus, **maxima)

    def rank(topology: Topology) -> tuple[int, int, int]:
        met = sum(1 for part in _PARTS if preferred[part] and getattr(topology, part) == preferred[part])
        return met, topology.sockets * topology.cores, topology.sockets

    return max(candidates, key=rank)


def _candidates(vcpus: int, maxima: Parts) -> Iterator[Topology]:
    for sockets in range(1, min(vcpus, maxima["sockets"]) + 1):
        if vcpus % sockets:
            continue
        per_socket = vcpus // sockets
        for cores in range(1, min(per_socket, maxima["cores"]) + 1):
            if per_socket % cores == 0 and per_socket // cores <= maxima["threads"]:
                yield Topology(sockets, cores, per_socket // cores)


def _flavor(extra_specs: Mapping[str, str], prefix: str) -> dict[str, int]:
    try:
        return {part: int(extra_specs.get(f"hw:cpu_{prefix}{part}", 0)) for part in _PARTS}
    except ValueError as failure:
        raise exceptions.InvalidRequest(f"A flavor's processor topology must be numbers: {failure}") from failure


def _image(properties: Mapping[str, Any], prefix: str) -> dict[str, int]:
    return {part: int(properties.get(f"hw_cpu_{prefix}{part}", 0)) for part in _PARTS}


def _maxima(extra_specs: Mapping[str, str], properties: Mapping[str, Any]) -> dict[str, int]:
    flavor, image = _flavor(extra_specs, "max_"), _image(properties, "max_")
    if any(flavor[part] and image[part] > flavor[part] for part in _PARTS):
        raise exceptions.ImageVCPULimitsRangeExceeded(
            **{f"image_{part}": image[part] for part in _PARTS},
            **{f"flavor_{part}": flavor[part] for part in _PARTS},
        )
    return {part: image[part] or flavor[part] or UNBOUNDED for part in _PARTS}


def _preferences(extra_specs: Mapping[str, str], properties: Mapping[str, Any], maxima: Parts) -> dict[str, int]:
    flavor, image = _flavor(extra_specs, ""), _image(properties, "")
    if any(image[part] > maxima[part] for part in _PARTS):
        raise exceptions.ImageVCPUTopologyRangeExceeded(
            **{f"image_{part}": image[part] for part in _PARTS}, **{f"max_{part}": maxima[part] for part in _PARTS}
        )
    if any(image.values()):
        # Preferences stand as a whole: mixing the two would mean a topology nobody asked for.
        return image
    # The operator's own limits win over the operator's preferences, whole again.
    return flavor if all(flavor[part] <= maxima[part] for part in _PARTS) else dict.fromkeys(_PARTS, 0)
