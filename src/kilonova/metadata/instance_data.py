"""What the metadata documents tell of a server, gathered from wherever the record comes."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kilonova.contract import network_info as netinfo
from kilonova.contract import objects


@dataclasses.dataclass(frozen=True)
class KeyPair:
    name: str
    type: str
    public_key: str


@dataclasses.dataclass(frozen=True)
class Ec2Ids:
    instance_id: str
    ami_id: str | None = None
    kernel_id: str | None = None
    ramdisk_id: str | None = None


@dataclasses.dataclass(frozen=True)
class Ec2Facts:
    """What only EC2's tree shows."""

    ids: Ec2Ids
    security_groups: Sequence[str] = ()
    block_devices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """EC2's names of devices: ami, root, ephemeral0, swap, ebs0 ..."""


@dataclasses.dataclass(frozen=True)
class Device:
    """A tagged device; `facts` are the keys the guest sees besides type, bus, address and tags."""

    type: str
    bus: str
    address: str
    tags: Sequence[str] | None
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class InstanceData:
    uuid: str
    project_id: str
    hostname: str
    display_name: str
    launch_index: int
    availability_zone: str | None
    reservation_id: str | None
    flavor_name: str
    ec2: Callable[[], Ec2Facts]
    """Looked up only when a guest reads EC2's tree: it takes further queries, and few guests do."""
    key_name: str | None = None
    key_data: str | None = None
    keypair: KeyPair | None = None
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    user_data: bytes | None = None
    password: str | None = None
    network_info: Sequence[Mapping[str, Any]] = ()
    devices: Sequence[Device] = ()
    dedicated_cpus: Sequence[int] = ()
    address: str | None = None
    """Where the request came from, for guests without a known address."""
    files: Sequence[tuple[str, bytes]] = ()
    """Injected files: path in the guest, content."""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further keys of meta_data.json, such as admin_pass."""
    image_ref: str | None = None
    boot_roles: str = ""

    @property
    def fixed_ipv4(self) -> str:
        return _first(netinfo.fixed_ips, self.network_info, 4)

    @property
    def floating_ip(self) -> str:
        return _first(netinfo.floating_ips, self.network_info, None)


def _first(addresses: Any, vifs: Iterable[Mapping[str, Any]], version: int | None) -> str:
    found = (ip["address"] for vif in vifs for ip in addresses(vif) if version in (None, ip["version"]))
    return next(found, "")


def from_instance(
    instance: objects.Instance,
    *,
    network_info: Sequence[Mapping[str, Any]],
    ec2: Callable[[], Ec2Facts],
    **more: Any,
) -> InstanceData:
    """From a wire object; fields that are not set on it are taken as empty. `more` are further fields of the result."""
    system = _get(instance, "system_metadata") or {}
    user_data = _get(instance, "user_data")
    return InstanceData(
        uuid=instance.uuid,
        project_id=instance.project_id,
        hostname=instance.hostname,
        display_name=instance.display_name,
        launch_index=_get(instance, "launch_index") or 0,
        availability_zone=_get(instance, "availability_zone"),
        reservation_id=_get(instance, "reservation_id"),
        flavor_name=instance.flavor.name,
        ec2=ec2,
        key_name=_get(instance, "key_name"),
        key_data=_get(instance, "key_data"),
        keypair=_keypair(instance),
        metadata=_get(instance, "metadata") or {},
        user_data=base64.b64decode(user_data) if user_data is not None else None,
        password=stored_password(system),
        network_info=network_info,
        devices=_devices(_get(instance, "device_metadata")),
        dedicated_cpus=_dedicated_cpus(_get(instance, "numa_topology")),
        image_ref=_get(instance, "image_ref"),
        boot_roles=system.get("boot_roles", ""),
        **more,
    )


def block_mapping(instance: objects.Instance, bdms: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """EC2's block device mapping; `bdms` are rows with destination_type, source_type, guest_format, device_name."""
    root = _get(instance, "root_device_name")
    if root is None:
        return {"ami": "sda1", "root": "/dev/sda1"}
    rows = list(bdms)
    found = {"ami": root.removeprefix("/dev/"), "root": root}
    for name, field in (("ephemeral0", "default_ephemeral_device"), ("swap", "default_swap_device")):
        if device := _get(instance, field):
            found[name] = device
    volumes = sorted((row["device_name"] or "") for row in rows if row["destination_type"] == "volume")
    blanks = [row for row in rows if row["destination_type"] != "volume" and row["source_type"] == "blank"]
    swap = [row["device_name"] for row in blanks if row["guest_format"] == "swap"]
    ephemerals = [row["device_name"] for row in blanks if row["guest_format"] != "swap"]
    found |= {f"ebs{number}": device for number, device in enumerate(volumes)}
    found |= {"swap": swap[-1]} if swap else {}
    return found | {f"ephemeral{number}": device for number, device in enumerate(ephemerals)}


def stored_password(system_metadata: Mapping[str, str]) -> str | None:
    """The password the guest posted, stored in pieces: a column is only so wide."""
    pieces = [system_metadata[key] for key in sorted(system_metadata) if key.startswith("password_")]
    return "".join(pieces) or None


def _get(instance: objects.Instance, field: str) -> Any:
    return getattr(instance, field) if field in instance else None


def ec2_ids(instance: objects.Instance) -> Ec2Ids:
    """The stored ids where they were loaded; else the instance's own number in their form."""
    stored = _get(instance, "ec2_ids")
    if stored is not None:
        return Ec2Ids(stored.instance_id, stored.ami_id, stored.kernel_id, stored.ramdisk_id)
    return Ec2Ids(f"i-{instance.id:08x}")


def _keypair(instance: objects.Instance) -> KeyPair | None:
    pairs = _get(instance, "keypairs")
    if pairs is None or not pairs.objects:
        return None
    first = pairs.objects[0]
    return KeyPair(first.name, first.type, first.public_key)


def _dedicated_cpus(topology: Any) -> list[int]:
    cells = topology.cells if topology is not None else []
    return sorted(cpu for cell in cells for cpu in (cell.pcpuset or ()))


def _devices(metadata: Any) -> list[Device]:
    if metadata is None:
        return []
    found = (_device(each) for each in metadata.devices)
    return [each for each in found if each is not None]


def _device(device: Any) -> Device | None:
    bus, address = "none", "none"
    if "bus" in device:
        bus = type(device.bus).__name__.removesuffix("DeviceBus").lower()
        address = device.bus.address if "address" in device.bus else "none"
    tags = list(device.tags) if "tags" in device else None
    if isinstance(device, objects.NetworkInterfaceMetadata):
        facts = {"mac": device.mac, "vf_trusted": device.vf_trusted if "vf_trusted" in device else False}
        if "vlan" in device and device.vlan is not None:
            facts["vlan"] = device.vlan
        return Device("nic", bus, address, tags, facts)
    if isinstance(device, objects.DiskMetadata):
        facts = {name: getattr(device, name) for name in ("serial", "path") if name in device}
        return Device("disk", bus, address, tags, facts)
    if isinstance(device, objects.ShareMetadata):
        return Device("share", bus, address, tags, {"share_id": device.share_id, "tag": device.tag})
    return None
