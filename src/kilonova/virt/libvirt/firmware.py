"""Machine type, firmware and what the guest boots from."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from oslo_config import cfg
from oslo_log import log
from oslo_utils import strutils

from kilonova.contract import exceptions, objects
from kilonova.virt.libvirt.config.domain import Firmware, PinnedFirmware

LOG = log.getLogger(__name__)

_DEFAULT_MACHINE = {
    "armv7l": "virt",
    "aarch64": "virt",
    "ppc64le": "pseries",
    "s390": "s390-ccw-virtio",
    "s390x": "s390-ccw-virtio",
    "i686": "pc",
    "x86_64": "pc",
}


def machine_type(conf: cfg.ConfigOpts, arch: str, properties: Mapping[str, Any]) -> str | None:
    """The image's machine type, else the operator's for the architecture, else the architecture's usual one."""
    if asked := properties.get("hw_machine_type"):
        return str(asked)
    for pair in conf.libvirt.hw_machine_type or ():
        name, _, machine = pair.partition("=")
        if name == arch and machine:
            return str(machine)
    return _DEFAULT_MACHINE.get(arch)


def is_pcie(machine: str | None) -> bool:
    return machine is not None and ("q35" in machine or machine.startswith("virt"))


def known_machines(capabilities: ET.Element, arch: str) -> set[str]:
    """Machine types the hypervisor has for an architecture."""
    guests = (each for each in capabilities.iterfind("guest") if _arch_name(each) == arch)
    return {machine.text or "" for guest in guests for machine in guest.iterfind(".//machine")}


def check_machine(capabilities: ET.Element, arch: str, machine: str | None, image: objects.ImageMeta) -> None:
    """Raises InvalidMachineType when the hypervisor does not have it."""
    known = known_machines(capabilities, arch)
    if machine is not None and known and machine not in known:
        raise exceptions.InvalidMachineType(
            mtype=machine,
            image_name=image.name if "name" in image else "",
            image_id=image.id if "id" in image else "",
            reason=f"{arch} has {', '.join(sorted(known))}",
        )


def supports_efi(domain_capabilities: ET.Element) -> bool:
    values = domain_capabilities.iterfind("os/enum[@name='firmware']/value")
    return any(value.text == "efi" for value in values)


def supports_secure_boot(domain_capabilities: ET.Element) -> bool:
    """Secure boot needs a loader that enforces it and a machine with system management mode."""
    values = domain_capabilities.iterfind("os/loader/enum[@name='secure']/value")
    return any(value.text == "yes" for value in values)


def choose(
    properties: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    arch: str,
    domain_capabilities: ET.Element,
    existing: ET.Element | None = None,
) -> Firmware | None:
    """UEFI where the image asks for it (always on aarch64), else None for the machine's BIOS.

    `existing` is the guest's present domain: its loader and variables are kept. Raises UEFINotSupported,
    SecureBootNotSupported.
    """
    kind = properties.get("hw_firmware_type") or ("uefi" if arch == "aarch64" else "bios")
    if kind != "uefi":
        return None
    if not supports_efi(domain_capabilities):
        raise exceptions.UEFINotSupported()
    secure = _secure(properties, extra_specs, domain_capabilities)
    stateless = strutils.bool_from_string(properties.get("hw_firmware_stateless", False))
    return Firmware(secure, stateless, _pinned(existing, secure))


def _secure(properties: Mapping[str, Any], extra_specs: Mapping[str, str], domain_capabilities: ET.Element) -> bool:
    wish = extra_specs.get("os:secure_boot") or properties.get("os_secure_boot") or "disabled"
    supported = supports_secure_boot(domain_capabilities)
    if wish == "required" and not supported:
        raise exceptions.SecureBootNotSupported()
    return wish in ("required", "optional") and supported


def _pinned(existing: ET.Element | None, secure: bool) -> PinnedFirmware | None:
    """The guest's present firmware, unless its files are gone or it enforces what is no longer asked for."""
    loader = existing.find("os/loader") if existing is not None else None
    if existing is None or loader is None or not loader.text:
        return None
    nvram = existing.find("os/nvram")
    files = [loader.text, nvram.get("template") if nvram is not None else None]
    if any(file and not os.path.exists(file) for file in files) or (loader.get("secure") == "yes") != secure:
        LOG.info("The firmware of guest %s is chosen anew", existing.findtext("uuid"))
        return None
    mode = existing.find("features/smm")
    return PinnedFirmware(
        copy.deepcopy(loader), copy.deepcopy(nvram), mode is not None and mode.get("state", "on") == "on"
    )


def _arch_name(guest: ET.Element) -> str:
    arch = guest.find("arch")
    return arch.get("name", "") if arch is not None else ""
