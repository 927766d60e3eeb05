"""What a wish stands for: flavor, image, key, networks, devices, group and place, looked up and checked.

Nothing is changed here, in no service. Raises the exceptions that `kilonova.api.ops.build` turns into faults.
"""

from __future__ import annotations

from typing import Any, Final

from kilonova.api import hosts
from kilonova.api.servers.creation import devices, promises, record
from kilonova.api.servers.creation import image as images
from kilonova.api.servers.creation.record import Resolved
from kilonova.api.servers.creation.wish import Wish
from kilonova.api.services import Services
from kilonova.contract import exceptions, objects
from kilonova.contract.ops import build as contract
from kilonova.db.api import host_mappings
from kilonova.db.cell import compute_nodes
from kilonova.db.objects import flavor as flavors
from kilonova.db.objects import group as groups
from kilonova.db.objects import keypair as keypairs
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import Fault, forbidden

_PORT_NEEDS_SINCE: Final = 72
_MULTIATTACH_SINCE: Final = 60


def everything(call: Call[Services], wish: Wish) -> Resolved:
    """All of it, in an order that asks other services only for what passed before."""
    flavor = _flavor(call, wish)
    zone = _zone(call, wish)
    destination = _destination(call, wish)
    key = _key(call, wish)
    image = _image(call, wish)
    images.check_written(image)
    facts = _flavor_facts(flavor)
    volume_zones: list[str] = []
    found_devices = _devices(call, wish, image, facts, volume_zones)
    zone = _zone_of_volumes(call, wish, zone, volume_zones)
    root = devices.root_of(found_devices)
    auto_disk_config = images.auto_disk_config(image, wish.auto_disk_config)
    images.check(image, facts, root, boots_image=wish.image_id is not None)
    _check_zero_disk(call, facts, root)
    promises.check(facts, image)
    group = _group(call, wish)
    security_groups = _security_groups(call, wish)
    kernel, ramdisk = _kernel_and_ramdisk(call, image)
    found = Resolved(
        flavor=flavor,
        image=image,
        devices=found_devices,
        zone=zone,
        key=key,
        kernel_id=kernel,
        ramdisk_id=ramdisk,
        auto_disk_config=auto_disk_config,
        networks=record.network_requests(wish),
        security_groups=security_groups,
        group=group,
        destination=destination,
        trusted_certs=list(wish.trusted_certs),
    )
    _port_needs(call, found)
    return found


# ---------------------------------------------------------------- flavor, key, group


def _flavor(call: Call[Services], wish: Wish) -> objects.Flavor:
    flavor = call.services.cells.api.query(flavors.get_by_flavor_id, call.context, wish.flavor_id)
    if flavor.disabled:
        raise exceptions.FlavorNotFound(flavor_id=wish.flavor_id)
    return flavor


def _flavor_facts(flavor: objects.Flavor) -> dict[str, Any]:
    names = ("memory_mb", "vcpus", "root_gb", "ephemeral_gb", "swap")
    return {name: getattr(flavor, name) for name in names} | {"extra_specs": dict(flavor.extra_specs)}


def _key(call: Call[Services], wish: Wish) -> objects.KeyPair | None:
    if wish.key_name is None:
        return None
    return call.services.cells.api.query(keypairs.get_by_name, call.context, call.context.user_id or "", wish.key_name)


def _group(call: Call[Services], wish: Wish) -> objects.InstanceGroup | None:
    hint = wish.hints.get("group")
    if not hint:
        return None
    uuid = hint[0] if isinstance(hint, list) else hint
    group = call.services.cells.api.query(groups.get_by_uuid, call.context, uuid)
    if not call.context.is_admin and group.project_id != call.context.project_id:
        raise exceptions.InstanceGroupNotFound(group_uuid=uuid)
    return group


# ---------------------------------------------------------------- place


def _zone(call: Call[Services], wish: Wish) -> str | None:
    """The zone to be asked for. Raises InvalidRequest for one without hosts."""
    services = call.services
    zone = wish.zone.name or services.conf.default_schedule_zone
    if wish.zone.host:
        return _zone_of_forced(call, zone, wish.zone.host)
    if zone and zone not in hosts.available_zones(services.cells, services.conf):
        raise exceptions.InvalidRequest("The requested availability zone is not available")
    return zone


def _zone_of_forced(call: Call[Services], zone: str | None, host: str) -> str | None:
    """The zone if the forced host is in it; else none is asked for, so that the two do not contradict each other."""
    known = call.services.cells.api.query(hosts.zones, [host])
    actual = known.get(host, call.services.conf.default_availability_zone)
    return zone if zone == actual else None


def _destination(call: Call[Services], wish: Wish) -> objects.Destination | None:
    """The host or node that was asked for by name. Raises ComputeHostNotFound."""
    if not wish.host and not wish.node:
        return None
    if wish.host:
        _check_host(call, wish.host, wish.node)
    elif call.services.clients.placement.provider_by_name(call.context, wish.node or "") is None:
        raise exceptions.ComputeHostNotFound(host=wish.node)
    destination = objects.Destination(node=wish.node)
    if wish.host:
        destination.host = wish.host
    return destination


def _check_host(call: Call[Services], host: str, node: str | None) -> None:
    cells = call.services.cells
    mapping = cells.api.query(host_mappings.host_mapping_get, host)
    if mapping is None:
        raise exceptions.ComputeHostNotFound(host=host)
    if node is None:
        return
    cell = next((cell for cell in cells.all() if cell.id == mapping["cell_id"]), None)
    if cell is None or cell.database.query(compute_nodes.compute_node_get_by_host, host, node) is None:
        raise exceptions.ComputeHostNotFound(host=host)


# ---------------------------------------------------------------- image


def _image(call: Call[Services], wish: Wish) -> dict[str, Any]:
    """The image, or what is known of it for a server that boots from a volume."""
    clients = call.services.clients
    if wish.image_id is not None:
        return clients.glance.image_show(call.context, wish.image_id)
    if wish.trusted_certs:
        raise exceptions.CertificateValidationFailed(
            message="Image certificate validation is not supported when booting from volume"
        )
    root = _root_asked_for(wish)
    if root is None:
        return {}
    if root.get("image_id"):
        return clients.glance.image_show(call.context, root["image_id"])
    volume_id = root.get("volume_id")
    if root.get("snapshot_id"):
        volume_id = clients.cinder.snapshot_show(call.context, root["snapshot_id"])["volume_id"]
    return _image_of_volume(call, volume_id) if volume_id else {}


def _root_asked_for(wish: Wish) -> dict[str, Any] | None:
    if wish.old_devices:
        root = next((d for d in wish.devices if devices.bare(d.get("device_name")) == "vda"), None)
        return root or next((d for d in wish.devices if d.get("volume_id") or d.get("snapshot_id")), None)
    return devices.root_of(wish.devices)


def _image_of_volume(call: Call[Services], volume_id: str) -> dict[str, Any]:
    """What a volume remembers of the image it was made of. Raises InvalidBDMVolume, InvalidBDMVolumeNotBootable."""
    try:
        volume = call.services.clients.cinder.volume_show(call.context, volume_id)
    except exceptions.VolumeNotFound:
        raise exceptions.InvalidBDMVolume(id=volume_id) from None
    if not volume.get("bootable", True):
        raise exceptions.InvalidBDMVolumeNotBootable(id=volume_id)
    remembered = dict(volume.get("volume_image_metadata") or {})
    image: dict[str, Any] = {"status": "active", "size": volume["size"] * 1024**3}
    for name in ("min_ram", "min_disk"):
        image[name] = images.least(remembered, name)
        remembered.pop(name, None)
    # The devices that the image defines were for servers of it; this one has its root already.
    for name in ("size", "image_id", "image_name", "checksum", "container_format", "disk_format", *images.DEVICES):
        remembered.pop(name, None)
    return image | {"properties": remembered}


def _kernel_and_ramdisk(call: Call[Services], image: images.Image) -> tuple[str | None, str | None]:
    properties = images.properties(image)
    kernel, ramdisk = properties.get("kernel_id"), properties.get("ramdisk_id")
    if kernel == "nokernel":
        return None, None
    glance = call.services.clients.glance
    return (
        glance.image_show(call.context, kernel)["id"] if kernel else None,
        glance.image_show(call.context, ramdisk)["id"] if ramdisk else None,
    )


def _check_zero_disk(call: Call[Services], flavor: dict[str, Any], root: devices.Device | None) -> None:
    """A local root disk of unbounded size takes a policy."""
    is_local = root is not None and root["destination_type"] == "local"
    if flavor["root_gb"] == 0 and is_local and not call.allows(contract.ZERO_DISK_FLAVOR):
        raise forbidden("Only volume-backed servers are allowed for flavors with zero disk.")


# ---------------------------------------------------------------- devices


def _devices(
    call: Call[Services], wish: Wish, image: images.Image, flavor: dict[str, Any], zones: list[str]
) -> list[devices.Device]:
    """All devices of one server, checked against Glance and Cinder; ``zones`` gets those of its volumes."""
    found = devices.assemble(
        wish.devices,
        # In the new form the root is always said; nothing said is the old form's way to mean the image.
        old_form=wish.old_devices or not wish.devices,
        image_id=wish.image_id,
        properties=images.properties(image),
        flavor=flavor,
        root_device=images.root_device_name(image),
        several=wish.max_count > 1,
    )
    devices.check(found, flavor, call.services.conf.max_local_block_devices)
    for device in found:
        _check_source(call, device, wish, zones)
    return [devices.with_flavor_size(device, flavor) for device in found if not device["no_device"]]


def _check_source(call: Call[Services], device: devices.Device, wish: Wish, zones: list[str]) -> None:
    clients = call.services.clients
    if device["image_id"] and device["image_id"] != wish.image_id:
        try:
            clients.glance.image_show(call.context, device["image_id"])
        except exceptions.ImageNotFound:
            raise exceptions.InvalidBDMImage(id=device["image_id"]) from None
    elif device["volume_id"]:
        zones.append(_check_volume(call, device))
    elif device["snapshot_id"]:
        try:
            snapshot = clients.cinder.snapshot_show(call.context, device["snapshot_id"])
        except exceptions.SnapshotNotFound:
            raise exceptions.InvalidBDMSnapshot(id=device["snapshot_id"]) from None
        device["volume_size"] = device["volume_size"] or snapshot["size"]


def _check_volume(call: Call[Services], device: devices.Device) -> str:
    """The zone of a volume that may be attached."""
    volume_id = device["volume_id"]
    try:
        volume = call.services.clients.cinder.volume_show(call.context, volume_id)
    except exceptions.VolumeNotFound:
        raise exceptions.InvalidBDMVolume(id=volume_id) from None
    if volume["multiattach"] and call.version < _MULTIATTACH_SINCE:
        raise exceptions.MultiattachNotSupportedOldMicroversion()
    call.services.clients.cinder.check_attachable(volume)
    device["volume_size"] = volume["size"]
    return str(volume["availability_zone"])


def _zone_of_volumes(call: Call[Services], wish: Wish, zone: str | None, volumes: list[str]) -> str | None:
    """The zone to be asked for: where volumes stay in theirs and none was asked for, that of the volumes.

    The default zone is not asked for by name, since servers that were are kept in it: hosts look once more.
    Raises MismatchVolumeAZException.
    """
    conf = call.services.conf
    if not volumes or conf.cinder.cross_az_attach:
        return zone
    if len(set(volumes)) > 1:
        named = ", ".join(sorted(set(volumes)))
        raise exceptions.MismatchVolumeAZException(reason=f"Volumes are in different availability zones: {named}")
    there = volumes[0]
    host = wish.zone.host or wish.host
    place = (
        call.services.cells.api.query(hosts.zones, [host]).get(host, conf.default_availability_zone) if host else zone
    )
    if place and place != there:
        reason = f"The server is to be in availability zone {place}, its volumes are in {there}"
        raise exceptions.MismatchVolumeAZException(reason=reason)
    return zone if place or there == conf.default_availability_zone else there


# ---------------------------------------------------------------- networks


def _security_groups(call: Call[Services], wish: Wish) -> list[str]:
    """Ids of the groups; "default" stays a name, since a project's default group may not exist yet."""
    wanted = wish.security_groups or ["default"]
    others = [name for name in wanted if name != "default"]
    if not others:
        return wanted
    ids = call.services.clients.neutron.security_group_ids(call.context, others)
    return [*(["default"] if "default" in wanted else []), *ids]


def _port_needs(call: Call[Services], found: Resolved) -> None:
    """What the ports ask of a host. Raises CreateWithPortResourceRequestOldVersion before 2.72."""
    needs = call.services.clients.neutron.resource_requests(call.context, found.networks)
    if needs is None:
        return
    if needs.pci:
        raise Fault(501, "Not built yet: ports that need a PCI device are not implemented by this service.")
    if needs.groups and call.version < _PORT_NEEDS_SINCE:
        raise exceptions.CreateWithPortResourceRequestOldVersion()
    found.network_metadata = needs.metadata
    found.port_groups = needs.groups
    found.same_subtree = needs.same_subtree


def servers_by_ports(call: Call[Services], found: Resolved, low: int, high: int) -> int:
    """How many of ``high`` servers the networks and the port quota allow. Raises what they object to."""
    allowed = call.services.clients.neutron.validate_networks(call.context, found.networks, high)
    if allowed < low:
        raise exceptions.PortLimitExceeded()
    return min(allowed, high)
