"""What a domain says about whose it is, for tools on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kilonova import __version__
from kilonova.contract import network_info, objects
from kilonova.virt.driver import GuestSpec, Vif
from kilonova.virt.libvirt import machine
from kilonova.virt.libvirt.config.domain import SystemInfo
from kilonova.virt.libvirt.config.metadata import FlavorInfo, ImageInfo, InstanceInfo, PortInfo

MANUFACTURER = "OpenStack Foundation"
PRODUCT = "OpenStack Nova"
"""Guests recognise the cloud by these two (cloud-init's datasource detection reads them): they are an interface."""

_UNKNOWN = "N/A"
_IMAGE_FACTS = {
    "container_format": "containerFormat",
    "disk_format": "diskFormat",
    "min_disk": "minDisk",
    "min_ram": "minRam",
}


def metadata(guest: GuestSpec, now: datetime) -> InstanceInfo:
    instance = guest.instance
    system = instance.system_metadata
    root_image = system.get("image_base_image_ref", instance.image_ref)
    return InstanceInfo(
        package=__version__,
        name=instance.display_name or instance.uuid,
        created=now,
        flavor=_flavor(instance.flavor),
        image=_image(guest.image_meta, root_image, system),
        user=(instance.user_id, system.get("owner_user_name", _UNKNOWN)),
        project=(instance.project_id, system.get("owner_project_name", _UNKNOWN)),
        root=("image" if instance.image_ref else "volume", root_image or ""),
        ports=_ports(guest.network_info),
    )


def system_info(uuid: str, serial: str | None) -> SystemInfo:
    return SystemInfo(MANUFACTURER, PRODUCT, __version__, serial, uuid)


def _flavor(flavor: objects.Flavor) -> FlavorInfo:
    return FlavorInfo(
        name=flavor.name,
        id=flavor.flavorid,
        memory=flavor.memory_mb,
        disk=flavor.root_gb,
        swap=flavor.swap,
        ephemeral=flavor.ephemeral_gb,
        vcpus=flavor.vcpus,
        extra_specs=flavor.extra_specs,
    )


def _image(image: objects.ImageMeta, image_id: str | None, system: Mapping[str, str]) -> ImageInfo:
    """What the server's record says of the image goes first: its smallest disk is that of the flavor from then on."""
    facts = {shown: getattr(image, name) for name, shown in _IMAGE_FACTS.items() if name in image}
    facts |= {shown: system[f"image_{name}"] for name, shown in _IMAGE_FACTS.items() if f"image_{name}" in system}
    return ImageInfo(image_id, facts, machine.properties(image))


def _ports(vifs: Sequence[Vif]) -> list[PortInfo]:
    return [
        PortInfo(vif["id"], [(ip["type"], ip["address"], ip["version"]) for ip in network_info.fixed_ips(vif)])
        for vif in vifs
    ]
