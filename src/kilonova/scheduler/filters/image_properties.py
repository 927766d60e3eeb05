"""Architecture, hypervisor type, VM mode and version that an image demands."""

from __future__ import annotations

import re
from collections.abc import Callable

from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host

Version = tuple[int, ...]

COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
PREDICATE = re.compile(r"^\s*(<=|>=|==|!=|<|>|=)\s*([0-9.]+)\s*$")


class ImagePropertiesFilter(Filter):
    once = True
    on_rebuild = True

    def applies(self, request: Request) -> bool:
        return bool(self._demanded(request))

    def _demanded(self, request: Request) -> list[str]:
        """Architecture, hypervisor type and VM mode, as far as named."""
        prop = request.wishes.prop
        wanted = [
            prop("hw_architecture", self.conf.filter_scheduler.image_properties_default_architecture),
            prop("img_hv_type"),
            prop("hw_vm_mode"),
        ]
        return [str(each) for each in wanted if each]

    def objection(self, host: Host, request: Request) -> str | None:
        demanded = self._demanded(request)
        if not demanded:
            return None
        if not any(all(each in supported for each in demanded) for supported in host.supported_instances):
            return f"it does not support {', '.join(demanded)}"
        return self._version(host, request) or self._address_bits(host, request)

    def _version(self, host: Host, request: Request) -> str | None:
        demanded = request.wishes.prop("img_hv_requested_version")
        if not demanded or not host.hypervisor_version:
            return None
        if satisfied(version_of(host.hypervisor_version), demanded):
            return None
        return f"its hypervisor version {host.hypervisor_version} is not {demanded}"

    def _address_bits(self, host: Host, request: Request) -> str | None:
        demanded = request.wishes.prop("hw_maxphysaddr_bits")
        cpu = host.cpu_info if isinstance(host.cpu_info, dict) else {}
        has = (cpu.get("maxphysaddr") or {}).get("bits")
        if not demanded or not has or has >= demanded:
            return None
        return f"it addresses {has} bits of memory, not {demanded}"


def version_of(number: int) -> Version:
    """1002003 -> (1, 2, 3): how a node reports its hypervisor's version."""
    return number // 1_000_000, number // 1_000 % 1_000, number % 1_000


def satisfied(version: Version, predicate: str) -> bool:
    """`>=6.0, <7` and the like; malformed conditions are not satisfied."""
    for part in predicate.split(","):
        match = PREDICATE.match(part)
        if match is None:
            return False
        wanted = tuple(int(each) for each in match[2].split(".") if each)
        width = max(len(version), len(wanted))
        if not COMPARE[match[1]](padded(version, width), padded(wanted, width)):
            return False
    return True


def padded(version: Version, width: int) -> Version:
    return version + (0,) * (width - len(version))
