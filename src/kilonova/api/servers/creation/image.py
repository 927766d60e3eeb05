"""The image that a new server boots from: does it fit, and what of it is remembered. Everything here is pure.

An image is a dict as the image service's client gives it: ``id``, ``status``, ``min_disk`` (GiB), ``min_ram`` (MiB),
``size`` (bytes), ``properties`` and so on; empty for a server that boots from a volume without image metadata.
"""

from collections.abc import Mapping
from typing import Any, Final

from kilonova.api.servers.creation.devices import Device, full, truth
from kilonova.contract import exceptions
from kilonova.contract.fields import Compiled, Invalid
from kilonova.contract.microversions import MAX
from kilonova.contract.ops import build as contract
from kilonova.wire.http import bounds

Image = Mapping[str, Any]
_GIB: Final = 1024**3
_REMEMBERED: Final = ("min_ram", "min_disk", "disk_format", "container_format")
_NOT_REMEMBERED: Final = frozenset({"mappings", "block_device_mapping", "img_mappings", "img_block_device_mapping"})
DEVICES: Final = ("block_device_mapping", "mappings", "bdm_v2")
_LONGEST_VALUE: Final = 255
_LONGEST_NAME: Final = _LONGEST_VALUE - len("image_")
_CONFIG_DRIVE_WORDS: Final = frozenset({"optional", "mandatory"})


def properties(image: Image) -> Mapping[str, Any]:
    found: Mapping[str, Any] = image.get("properties") or {}
    return found


_WRITTEN: Final = {
    "block_device_mapping": Compiled(contract.IMAGE_DEVICES),
    "mappings": Compiled(contract.IMAGE_MAPPINGS),
    "root_device_name": Compiled(contract.DEVICE_NAME),
}


def check_written(image: Image) -> None:
    """Whether what the image's owner wrote of devices and sizes is of the form that a request has to have.

    Raises ImageUnacceptable, InvalidBDMFormat, `Fault` 400.
    """
    for name in ("min_ram", "min_disk"):
        least(image, name)
    for name, shape in _WRITTEN.items():
        value = properties(image).get(name)
        if not value:
            continue
        try:
            shape.validator(MAX).check(value)
        except Invalid as error:
            raise exceptions.ImageUnacceptable(image_id=image.get("id"), reason=f"{name}: {error.reason}") from None
        bounds.check_body({name: value})
    if properties(image).get("bdm_v2"):
        for device in properties(image).get("block_device_mapping") or ():
            _check_origin(device)


def _check_origin(device: Mapping[str, Any]) -> None:
    """Whether the image says what a device of it is made of. Raises InvalidBDMFormat."""
    source = device.get("source_type")
    if device.get("no_device") or source == "blank" or (source and device.get(f"{source}_id")):
        return
    raise exceptions.InvalidBDMFormat(details="A device of the image is made of nothing.")


def root_device_name(image: Image) -> str | None:
    """The root device that the image names, with ``/dev/``."""
    name = None
    for mapping in properties(image).get("mappings") or ():
        if mapping["virtual"] == "root":
            name = mapping["device"]
    return full(properties(image).get("root_device_name", name))


def auto_disk_config(image: Image, wished: bool | None) -> bool:
    """Whether the root disk's partition grows. Raises AutoDiskConfigDisabledByImage."""
    said = str(properties(image).get("auto_disk_config") or "").strip().lower()
    if wished and said == "disabled":
        raise exceptions.AutoDiskConfigDisabledByImage(image=image.get("id"))
    return truth(said) if wished is None else wished


def check(image: Image, flavor: Mapping[str, Any], root: Device | None, *, boots_image: bool) -> None:
    """Whether a server of the flavor can boot from the image. Raises what says why not.

    ``boots_image`` is False where the image only describes a volume.
    """
    if not image:
        return
    if image.get("status", "active") != "active":
        raise exceptions.ImageNotActive(image_id=image.get("id"))
    _check_text(image)
    if boots_image and properties(image).get("cinder_encryption_key_id"):
        reason = "Direct booting of an image uploaded from an encrypted volume is unsupported."
        raise exceptions.ImageUnacceptable(image_id=image.get("id"), reason=reason)
    config_drive = properties(image).get("img_config_drive", "optional")
    if config_drive not in _CONFIG_DRIVE_WORDS:
        raise exceptions.InvalidImageConfigDrive(config_drive=config_drive)
    if flavor["memory_mb"] < least(image, "min_ram"):
        raise exceptions.FlavorMemoryTooSmall()
    _check_disk(image, flavor, root)


def _check_text(image: Image) -> None:
    """What is remembered of an image has to be text that every database holds. Raises ImageUnacceptable."""
    for name, value in properties(image).items():
        if name in _NOT_REMEMBERED:
            continue
        if len(name) > _LONGEST_NAME:
            reason = f"the name of a property has more than {_LONGEST_NAME} characters"
        elif not (bounds.fits(str(name)) and bounds.fits(_shortened(value))):
            reason = "a property has characters that cannot be stored: NUL, or one beyond U+FFFF"
        else:
            continue
        raise exceptions.ImageUnacceptable(image_id=image.get("id"), reason=reason)


def _check_disk(image: Image, flavor: Mapping[str, Any], root: Device | None) -> None:
    needed = least(image, "min_disk") * _GIB
    if root is not None and root["destination_type"] == "volume":
        size = root["volume_size"]
        if size is not None and needed > size * _GIB:
            raise exceptions.VolumeSmallerThanMinDisk(volume_size=size * _GIB, image_min_disk=needed)
        return
    size = flavor["root_gb"] * _GIB
    if size == 0:
        return
    if int(image.get("size") or 0) > size:
        raise exceptions.FlavorDiskSmallerThanImage(flavor_size=size, image_size=int(image["size"]))
    if needed > size:
        raise exceptions.FlavorDiskSmallerThanMinDisk(flavor_size=size, image_min_disk=needed)


def least(image: Image, name: str) -> int:
    """How much memory or disk the image needs. Raises ImageUnacceptable."""
    try:
        return int(image.get(name) or 0)
    except (TypeError, ValueError):
        raise exceptions.ImageUnacceptable(image_id=image.get("id"), reason=f"{name} is no number") from None


def system_metadata(image: Image, flavor: Mapping[str, Any], image_id: str | None) -> dict[str, Any]:
    """What is remembered of the image beside the server, under ``image_`` names."""
    remembered: dict[str, Any] = {
        f"image_{name}": _shortened(value) for name, value in properties(image).items() if name not in _NOT_REMEMBERED
    }
    for name in _REMEMBERED:
        value = image.get(name)
        if name == "min_disk":
            is_vhd = image.get("disk_format") == "vhd"
            value = flavor["root_gb"] if is_vhd else max(value or 0, flavor["root_gb"])
        if value is not None:
            remembered[f"image_{name}"] = value
    remembered.setdefault("image_base_image_ref", image_id or "")
    return remembered


def _shortened(value: object) -> str:
    """At most 255 bytes of UTF-8."""
    return str(value).encode()[:_LONGEST_VALUE].decode(errors="ignore")
