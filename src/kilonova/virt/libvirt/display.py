"""Graphics, video card and pointer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.virt.libvirt.config.devices import Graphics, Input, Video
from kilonova.virt.libvirt.config.element import Part

VIDEO_MODELS = frozenset({"cirrus", "qxl", "vga", "vmvga", "xen", "virtio", "gop", "none", "bochs"})
_KIB_PER_MIB = 1024


def devices(
    conf: cfg.ConfigOpts, arch: str, properties: Mapping[str, Any], extra_specs: Mapping[str, str]
) -> list[Part]:
    """Nothing at all without a graphical console. Raises InvalidVideoMode, RequestedVRamTooHigh."""
    if not conf.vnc.enabled:
        return []
    found: list[Part] = [Graphics("vnc", conf.vnc.server_listen), video(properties, extra_specs)]
    if pointer := pointer_bus(conf, properties):
        found.append(Input("tablet", pointer))
    if keyboard := keyboard_bus(arch, properties):
        found.append(Input("keyboard", keyboard))
    return found


def video(properties: Mapping[str, Any], extra_specs: Mapping[str, str]) -> Video:
    """A virtio card (it shows VGA to guests without a driver for it) unless the image names another."""
    model = properties.get("hw_video_model") or "virtio"
    if model not in VIDEO_MODELS:
        raise exceptions.InvalidVideoMode(model=model)
    asked, allowed = int(properties.get("hw_video_ram", 0)), int(extra_specs.get("hw_video:ram_max_mb", 0))
    if asked > allowed:
        raise exceptions.RequestedVRamTooHigh(req_vram=asked, max_vram=allowed)
    return Video(model, asked * _KIB_PER_MIB if asked and allowed else None)


def pointer_bus(conf: cfg.ConfigOpts, properties: Mapping[str, Any]) -> str | None:
    if bus := properties.get("hw_input_bus"):
        return str(bus)
    wanted = properties.get("hw_pointer_model") or conf.pointer_model
    return "usb" if wanted == "usbtablet" else None


def keyboard_bus(arch: str, properties: Mapping[str, Any]) -> str | None:
    """x86 has a PS/2 keyboard anyway."""
    if bus := properties.get("hw_input_bus"):
        return str(bus)
    return "usb" if arch == "aarch64" else None
