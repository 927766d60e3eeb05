"""Block devices of a new server: from the forms that users and images write to one list of complete mappings.

A mapping is a dict with the keys of `FIELDS`, the persistent fields of a block device mapping that a request can set.
Sizes are GiB, those of swap MiB. Everything here is pure; what needs Cinder or Glance is in `resolve`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kilonova.api import numbers
from kilonova.contract import exceptions

Device = dict[str, Any]

FIELDS: Final = (
    "source_type",
    "destination_type",
    "guest_format",
    "device_type",
    "disk_bus",
    "boot_index",
    "device_name",
    "delete_on_termination",
    "snapshot_id",
    "volume_id",
    "volume_size",
    "image_id",
    "no_device",
    "connection_info",
    "tag",
    "volume_type",
)
_TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
_BLANK_NAME: Final = re.compile(r"^(swap|ephemeral(\d|[1-9]\d+))$")
_DEV: Final = "/dev/"
DEVICE_TYPES: Final = frozenset({None, "cdrom", "disk", "floppy", "fs", "lun"})
DISK_BUSES: Final = frozenset({"fdc", "ide", "lxc", "none", "sata", "scsi", "uml", "usb", "virtio", "xen"})


def truth(value: object) -> bool:
    """What a boolean or one of its words means."""
    return value if isinstance(value, bool) else str(value).strip().lower() in _TRUE


def bare(name: str | None) -> str | None:
    """A device name without ``/dev/``."""
    return name.removeprefix(_DEV) if name else name


def full(name: str | None) -> str | None:
    """A device name with ``/dev/``."""
    return _DEV + name.removeprefix(_DEV) if name else name


def complete(values: Mapping[str, Any]) -> Device:
    """A mapping with every field. Raises InvalidBDMFormat for a name with spaces or a size that is no number."""
    device = dict.fromkeys(FIELDS) | {key: value for key, value in values.items() if key in FIELDS}
    if device["device_name"] and " " in device["device_name"]:
        raise exceptions.InvalidBDMFormat(details="Device name contains spaces.")
    device["device_name"] = full(device["device_name"])
    device["delete_on_termination"] = truth(device["delete_on_termination"] or False)
    device["no_device"] = bool(device["no_device"])
    for number in ("volume_size", "boot_index"):
        value = device[number]
        device[number] = None if value is None or value == "" else _number(number, value)
    return device


def _number(name: str, value: Any) -> int:
    return numbers.whole(name, value, most=numbers.LARGEST_COLUMN)


# ---------------------------------------------------------------- what users write


def from_request(given: Mapping[str, Any], *, has_image: bool) -> Device:
    """A member of ``block_device_mapping_v2``. Raises InvalidBDMFormat."""
    values = dict(given)
    uuid = values.pop("uuid", None)
    if not values.get("no_device"):
        _check_source(values, uuid, has_image=has_image)
        if uuid:
            values[f"{values.get('source_type')}_id"] = uuid
    return complete(values)


def _check_source(values: Mapping[str, Any], uuid: str | None, *, has_image: bool) -> None:
    source, destination = values.get("source_type"), values.get("destination_type")
    if source == "blank" and uuid:
        raise exceptions.InvalidBDMFormat(details="A blank device has no uuid.")
    if source != "blank" and not uuid:
        raise exceptions.InvalidBDMFormat(details="Missing device UUID.")
    if source == "image" and destination == "local" and not (has_image and _boot_index(values) == 0):
        raise exceptions.InvalidBDMFormat(details="Mapping image to local is not supported.")
    if values.get("volume_type") and (destination == "local" or source == "volume"):
        raise exceptions.InvalidBDMFormat(details="A volume type is only for volumes that are created.")


def _boot_index(values: Mapping[str, Any]) -> int:
    index = values.get("boot_index", -1)
    return -1 if index is None else _number("boot_index", index)


def from_old_form(
    given: Iterable[Mapping[str, Any]], image_id: str | None, root_device: str | None, *, image_has_root: bool
) -> list[Device]:
    """The members of ``block_device_mapping``, with the image as root disk unless one of them is the root."""
    found = [_from_old(each) for each in given]
    if image_has_root:
        return [device | {"boot_index": -1} for device in found]
    root = bare(root_device)
    volume_is_root = False
    for device in found:
        if device["source_type"] in ("volume", "snapshot", "image") and bare(device["device_name"]) == root:
            device["boot_index"] = 0
            volume_is_root = True
        else:
            device["boot_index"] = None if device["no_device"] else -1
    if image_id and not volume_is_root:
        return [image_root(image_id), *found]
    return found


def _from_old(given: Mapping[str, Any]) -> Device:
    values = {key: value for key, value in given.items() if key in FIELDS}
    virtual = given.get("virtual_name")
    if virtual and _BLANK_NAME.match(virtual):
        values |= {"source_type": "blank", "destination_type": "local", "delete_on_termination": True}
        values["guest_format"] = "swap" if virtual == "swap" else None
    elif given.get("snapshot_id"):
        values |= {"source_type": "snapshot", "destination_type": "volume"}
    elif given.get("volume_id"):
        values |= {"source_type": "volume", "destination_type": "volume"}
    elif not given.get("no_device"):
        raise exceptions.InvalidBDMFormat(details="Unrecognized legacy format.")
    return complete(values)


def image_root(image_id: str) -> Device:
    """The image as local root disk."""
    return complete(
        {
            "source_type": "image",
            "destination_type": "local",
            "image_id": image_id,
            "boot_index": 0,
            "device_type": "disk",
            "delete_on_termination": True,
        }
    )


def blank(size: int, guest_format: str | None = None) -> Device:
    """An empty local disk."""
    return complete(
        {
            "source_type": "blank",
            "destination_type": "local",
            "device_type": "disk",
            "boot_index": -1,
            "guest_format": guest_format,
            "volume_size": size,
            "delete_on_termination": True,
        }
    )


# ---------------------------------------------------------------- what images and flavors add


def of_image(properties: Mapping[str, Any], flavor: Mapping[str, Any], root_device: str | None) -> list[Device]:
    """Mappings that an image defines: ``block_device_mapping`` and the older ``mappings``."""
    defined = properties.get("block_device_mapping") or []
    if properties.get("bdm_v2"):
        found = [complete(each) for each in defined]
    else:
        found = from_old_form(defined, None, root_device, image_has_root=False)
    blanks = _blank_mappings(properties.get("mappings") or [], flavor)
    return merge(blanks, found)


def _blank_mappings(mappings: Iterable[Mapping[str, Any]], flavor: Mapping[str, Any]) -> list[Device]:
    found = []
    for mapping in mappings:
        virtual = mapping["virtual"]
        if not _BLANK_NAME.match(virtual):
            continue
        is_swap = virtual == "swap"
        size = flavor["swap"] if is_swap else flavor["ephemeral_gb"]
        if size:
            device = blank(size, "swap" if is_swap else mapping.get("guest_format"))
            found.append(device | {"device_name": full(mapping["device"])})
    return found


def of_flavor(devices: Sequence[Device], flavor: Mapping[str, Any]) -> list[Device]:
    """Disks of the flavor that no mapping stands for."""
    found = []
    if flavor["ephemeral_gb"] and not any(is_ephemeral(device) for device in devices):
        found.append(blank(flavor["ephemeral_gb"]))
    if flavor["swap"] and not any(is_swap(device) for device in devices):
        found.append(blank(flavor["swap"], "swap"))
    return found


def merge(weaker: Iterable[Device], stronger: Sequence[Device]) -> list[Device]:
    """Both lists; a device name that both have is the stronger's."""
    names = {device["device_name"] for device in stronger if device["device_name"]}
    return [*stronger, *(device for device in weaker if device["device_name"] not in names)]


def assemble(
    given: Sequence[Mapping[str, Any]],
    *,
    old_form: bool,
    image_id: str | None,
    properties: Mapping[str, Any],
    flavor: Mapping[str, Any],
    root_device: str | None,
    several: bool,
) -> list[Device]:
    """All devices of a server: asked for, defined by the image, added by the flavor. Raises InvalidRequest and others.

    ``given`` in the new form went through `from_request`. A server with an image and no mapping of it as root gets it
    as local root disk.
    """
    root_name = bare(root_device) or "vda"
    if image_id and any(
        device.get("destination_type") == "volume" and bare(device.get("device_name")) == root_name for device in given
    ):
        raise exceptions.InvalidRequest(
            f"The volume cannot be assigned the same device name as the root device {root_name}"
        )
    image_devices = of_image(properties, flavor, root_name)
    image_has_root = root_of(image_devices) is not None
    if old_form:
        asked = from_old_form(given, image_id, root_name, image_has_root=image_has_root)
    elif image_has_root:
        asked = [dict(each) for each in given if not (each["boot_index"] == 0 and each["source_type"] == "image")]
    else:
        asked = [dict(each) for each in given]
    devices = merge(image_devices, asked)
    if several and any(device["source_type"] == "volume" for device in devices):
        raise exceptions.InvalidRequest("Cannot attach one or more volumes to multiple instances")
    return devices + of_flavor(devices, flavor)


# ---------------------------------------------------------------- checks


def root_of(devices: Iterable[Device]) -> Device | None:
    """The device that the server boots from."""
    return next((device for device in devices if device["boot_index"] == 0), None)


def is_swap(device: Device) -> bool:
    return _is_local_blank(device) and device["guest_format"] == "swap"


def is_ephemeral(device: Device) -> bool:
    return _is_local_blank(device) and device["guest_format"] != "swap"


def _is_local_blank(device: Device) -> bool:
    return device["source_type"] == "blank" and device["destination_type"] == "local"


def check(devices: Sequence[Device], flavor: Mapping[str, Any], most_local: int) -> None:
    """Boot order, sizes and number. Raises the InvalidBDM family. ``most_local`` below 0 is no limit."""
    order = sorted(
        device["boot_index"]
        for device in devices
        if (device["boot_index"] or 0) >= 0 and device["boot_index"] is not None
    )
    if not order or order != list(range(len(order))):
        raise exceptions.InvalidBDMBootSequence()
    for device in devices:
        _check_sizes(device)
        if device["disk_bus"] and device["disk_bus"] not in DISK_BUSES:
            raise exceptions.InvalidBDMDiskBus(disk_bus=device["disk_bus"])
        if device["device_type"] not in DEVICE_TYPES:
            raise exceptions.InvalidBDMFormat(details=f"There is no device type {device['device_type']!r}.")
    if sum(d["volume_size"] or flavor["ephemeral_gb"] for d in devices if is_ephemeral(d)) > flavor["ephemeral_gb"]:
        raise exceptions.InvalidBDMEphemeralSize()
    swaps = [device for device in devices if is_swap(device)]
    if len(swaps) > 1:
        raise exceptions.InvalidBDMFormat(details="More than one swap drive requested.")
    if swaps and (swaps[0]["volume_size"] or 0) > flavor["swap"]:
        raise exceptions.InvalidBDMSwapSize()
    if 0 <= most_local < sum(device["destination_type"] == "local" for device in devices):
        raise exceptions.InvalidBDMLocalsLimit()


def _check_sizes(device: Device) -> None:
    if device["destination_type"] != "volume" or device["volume_size"]:
        return
    if device["source_type"] == "image":
        raise exceptions.InvalidBDM(message="A volume made of an image needs a size.")
    if device["source_type"] == "blank":
        raise exceptions.InvalidBDM(message="A blank volume needs a size.")


def with_flavor_size(device: Device, flavor: Mapping[str, Any]) -> Device:
    """The mapping as it is recorded: empty disks without a size have the flavor's."""
    if device["volume_size"] is not None or not _is_local_blank(device):
        return device
    return device | {"volume_size": flavor["swap"] if device["guest_format"] == "swap" else flavor["ephemeral_gb"]}
