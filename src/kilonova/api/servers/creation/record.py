"""The records of new servers: instance, request spec, build request, instance mapping."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kilonova.api.servers import hostnames
from kilonova.api.servers.creation import image as images
from kilonova.api.servers.creation import names
from kilonova.api.servers.creation.devices import Device
from kilonova.api.servers.creation.wish import Wish
from kilonova.contract import objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import VM, Power, Task
from kilonova.wire.http import bounds

_DEVICE_FIELDS: Final = (
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


@dataclass(slots=True, kw_only=True)
class Resolved:
    """What a wish stands for, looked up and checked.

    ``image`` is empty for a server without image metadata. ``security_groups`` are ids, or the name "default".
    """

    flavor: objects.Flavor
    image: dict[str, Any]
    devices: list[Device]
    zone: str | None = None
    key: objects.KeyPair | None = None
    kernel_id: str | None = None
    ramdisk_id: str | None = None
    auto_disk_config: bool = False
    networks: objects.NetworkRequestList | None = None
    security_groups: list[str] = field(default_factory=list)
    group: objects.InstanceGroup | None = None
    destination: objects.Destination | None = None
    numa_topology: objects.InstanceNUMATopology | None = None
    pci_requests: objects.InstancePCIRequests | None = None
    network_metadata: objects.NetworkMetadata | None = None
    port_groups: list[objects.RequestGroup] = field(default_factory=list)
    same_subtree: list[list[str]] = field(default_factory=list)
    trusted_certs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Server:
    """The records of one new server."""

    request_spec: objects.RequestSpec
    build_request: objects.BuildRequest
    mapping: objects.InstanceMapping

    @property
    def uuid(self) -> str:
        return str(self.build_request.instance_uuid)

    @property
    def instance(self) -> objects.Instance:
        return self.build_request.instance


def server(
    context: RequestContext, wish: Wish, found: Resolved, *, uuid: str, index: int, count: int, reservation_id: str
) -> Server:
    """The records of the ``index``th of ``count`` servers; nothing is stored."""
    instance = _instance(context, wish, found, uuid=uuid, index=index, count=count, reservation_id=reservation_id)
    devices = objects.BlockDeviceMappingList(objects=[_mapping(device, uuid) for device in found.devices])
    tags = objects.TagList(objects=[objects.Tag(tag=tag, resource_id=uuid) for tag in wish.tags])
    build_request = objects.BuildRequest(
        instance=instance,
        instance_uuid=uuid,
        project_id=context.project_id,
        block_device_mappings=devices,
        tags=tags,
    )
    mapping = objects.InstanceMapping(
        instance_uuid=uuid,
        project_id=context.project_id,
        user_id=context.user_id,
        cell_mapping=None,
        queued_for_delete=False,
    )
    return Server(_request_spec(context, wish, found, uuid, count), build_request, mapping)


def _mapping(device: Device, uuid: str) -> objects.BlockDeviceMapping:
    values = {name: device[name] for name in _DEVICE_FIELDS}
    if attachment_id := device.get("attachment_id"):
        values["attachment_id"] = attachment_id
    return objects.BlockDeviceMapping(instance_uuid=uuid, **values)


def _instance(
    context: RequestContext, wish: Wish, found: Resolved, *, uuid: str, index: int, count: int, reservation_id: str
) -> objects.Instance:
    flavor = found.flavor
    properties = images.properties(found.image)
    name = names.display_name(wish.name, index, count)
    return objects.Instance(
        uuid=uuid,
        reservation_id=reservation_id,
        user_id=context.user_id,
        project_id=context.project_id,
        display_name=name,
        display_description=wish.description,
        hostname=hostnames.of_server(wish.hostname, wish.name, uuid, index, count),
        launch_index=index,
        image_ref=wish.image_id or "",
        kernel_id=found.kernel_id or "",
        ramdisk_id=found.ramdisk_id or "",
        key_name=wish.key_name,
        key_data=found.key.public_key if found.key else None,
        keypairs=objects.KeyPairList(objects=[found.key] if found.key else []),
        user_data=wish.user_data,
        config_drive="True" if wish.config_drive else "",
        power_state=Power.PENDING,
        vm_state=VM.BUILDING,
        task_state=Task.SCHEDULING,
        progress=0,
        locked=False,
        shutdown_terminate=False,
        instance_type_id=flavor.id,
        memory_mb=flavor.memory_mb,
        vcpus=flavor.vcpus,
        root_gb=flavor.root_gb,
        ephemeral_gb=flavor.ephemeral_gb,
        ephemeral_key_uuid=None,
        flavor=flavor,
        old_flavor=None,
        new_flavor=None,
        metadata=dict(wish.metadata),
        system_metadata=_system_metadata(context, wish, found),
        access_ip_v4=wish.access_ip_v4,
        access_ip_v6=wish.access_ip_v6,
        availability_zone=found.zone,
        root_device_name=images.root_device_name(found.image),
        os_type=properties.get("os_type"),
        architecture=properties.get("architecture"),
        vm_mode=properties.get("vm_mode"),
        auto_disk_config=found.auto_disk_config,
        numa_topology=found.numa_topology,
        pci_requests=found.pci_requests,
        info_cache=objects.InstanceInfoCache(instance_uuid=uuid, network_info="[]"),
        security_groups=objects.SecurityGroupList(objects=[]),
        trusted_certs=objects.TrustedCerts(ids=found.trusted_certs) if found.trusted_certs else None,
        hidden=False,
    )


def _system_metadata(context: RequestContext, wish: Wish, found: Resolved) -> dict[str, str | None]:
    flavor = {"root_gb": found.flavor.root_gb}
    remembered = images.system_metadata(found.image, flavor, wish.image_id)
    values = {name: str(value) for name, value in remembered.items()}
    # Keystone takes names that the cell's tables do not hold.
    owner = {"owner_user_name": context.user_name, "owner_project_name": context.project_name}
    return values | {name: value and bounds.fitted(value) for name, value in owner.items()}


def _request_spec(context: RequestContext, wish: Wish, found: Resolved, uuid: str, count: int) -> objects.RequestSpec:
    spec = objects.RequestSpec(
        instance_uuid=uuid,
        num_instances=count,
        project_id=context.project_id,
        user_id=context.user_id,
        availability_zone=found.zone,
        flavor=found.flavor,
        image=objects.ImageMeta.from_dict(found.image),
        instance_group=found.group,
        is_bfv=any(d["boot_index"] == 0 and d["destination_type"] == "volume" for d in found.devices),
        numa_topology=found.numa_topology,
        pci_requests=found.pci_requests,
        ignore_hosts=None,
        force_hosts=[wish.zone.host] if wish.zone.host else None,
        force_nodes=[wish.zone.node] if wish.zone.node else None,
        retry=None,
        limits=objects.SchedulerLimits(numa_topology=None, vcpu=None, disk_gb=None, memory_mb=None),
        scheduler_hints=_as_lists(wish.hints),
        requested_destination=found.destination,
        requested_resources=list(found.port_groups),
        request_level_params=_level_params(found.same_subtree),
        security_groups=_security_groups(found.security_groups),
    )
    if found.network_metadata is not None:
        spec.network_metadata = found.network_metadata
    if found.networks is not None:
        spec.requested_networks = found.networks
    return spec


def _as_lists(hints: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        name: [str(each) for each in value] if isinstance(value, list) else [str(value)]
        for name, value in hints.items()
    }


def _level_params(same_subtree: Sequence[Sequence[str]]) -> objects.RequestLevelParams:
    return objects.RequestLevelParams(
        root_required=set(), root_forbidden=set(), same_subtree=[list(each) for each in same_subtree]
    )


def _security_groups(groups: Sequence[str]) -> objects.SecurityGroupList:
    # A group that is known by its id has it as uuid; "default" is a name.
    return objects.SecurityGroupList(
        objects=[objects.SecurityGroup(name=g) if g == "default" else objects.SecurityGroup(uuid=g) for g in groups]
    )


def network_requests(wish: Wish) -> objects.NetworkRequestList | None:
    """The networks of a wish as objects; None leaves the choice to the service."""
    if wish.networks is None:
        return None
    if isinstance(wish.networks, str):
        return objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id=wish.networks)])
    return objects.NetworkRequestList(objects=[objects.NetworkRequest(**each) for each in wish.networks])
