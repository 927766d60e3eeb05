"""Request filters: what a request asks of Placement before any host is looked at.

They run in the order of `ORDER` and change the request spec: root traits and
aggregates. Each reads only the spec, the configuration and the snapshot's
aggregates; the ones about ports ask Neutron.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any

import os_traits
from oslo_config import cfg

from kilonova.clients.bundle import Clients
from kilonova.contract import exceptions, network_info, objects
from kilonova.contract.context import RequestContext
from kilonova.scheduler import candidates
from kilonova.scheduler.candidates import field
from kilonova.scheduler.snapshot.cache import Snapshot
from kilonova.scheduler.wishes import Wishes

LOG = logging.getLogger(__name__)

TENANT_KEY = "filter_tenant_id"
OWNER_SINCE = 73
"""Compute service version from which hosts carry the OWNER_NOVA trait."""

METADATA_TRAITS = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU",
}
SECRET_SECURITY_TRAITS = {
    "user": "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER",
    "host": "COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST",
    "deployment": "COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT",
}


@dataclasses.dataclass(frozen=True)
class Surroundings:
    ctxt: RequestContext
    conf: cfg.ConfigOpts
    snapshot: Snapshot
    clients: Clients


def require_tenant_aggregate(around: Surroundings, spec: objects.RequestSpec) -> None:
    options = around.conf.scheduler
    if not options.limit_tenants_to_placement_aggregate:
        return
    own = [
        each.uuid
        for each in around.snapshot.aggregates()
        if any(name.startswith(TENANT_KEY) and value == spec.project_id for name, value in each.metadata.items())
    ]
    if own:
        require_aggregates(spec, own)
    elif options.placement_aggregate_required_for_tenants:
        raise exceptions.RequestFilterFailed(reason="No hosts available for tenant")


def map_az_to_placement_aggregate(around: Surroundings, spec: objects.RequestSpec) -> None:
    zone = field(spec, "availability_zone")
    if not zone:
        return
    members = [each.uuid for each in around.snapshot.aggregates() if each.metadata.get("availability_zone") == zone]
    if members:
        require_aggregates(spec, members)
    elif zone != around.conf.default_availability_zone:
        raise exceptions.RequestFilterFailed(reason=f"No aggregate has the availability zone {zone}")


def require_image_type_support(around: Surroundings, spec: objects.RequestSpec) -> None:
    image: Any = field(spec, "image")
    if not around.conf.scheduler.query_placement_for_image_type_support or field(spec, "is_bfv") or image is None:
        return
    require_known(spec, f"COMPUTE_IMAGE_TYPE_{image.disk_format.upper()}")


def compute_status_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    level(spec).root_forbidden.add(os_traits.COMPUTE_STATUS_DISABLED)


def isolate_aggregates(around: Surroundings, spec: objects.RequestSpec) -> None:
    if not around.conf.scheduler.enable_isolated_aggregate_filtering:
        return
    asked = candidates.from_request(spec, None).required_traits()
    closed = {
        each.uuid
        for each in around.snapshot.aggregates()
        if any(
            name.startswith("trait:") and value == "required" and name.removeprefix("trait:") not in asked
            for name, value in each.metadata.items()
        )
    }
    if closed:
        target = destination(spec)
        target.forbidden_aggregates = set(optional(target, "forbidden_aggregates") or ()) | closed


def transform_image_metadata(around: Surroundings, spec: objects.RequestSpec) -> None:
    if not around.conf.scheduler.image_metadata_prefilter:
        return
    wishes = wishes_of(spec)
    names = [
        f"{prefix}_{str(wishes.prop(prop)).replace('-', '_').upper()}"
        for prop, prefix in METADATA_TRAITS.items()
        if wishes.prop(prop) is not None
    ]
    if all(hasattr(os_traits, name) for name in names):
        level(spec).root_required.update(names)
    else:
        LOG.error("some of the traits %s do not exist; is os-traits up to date?", names)


def accelerators_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    if wishes_of(spec).specs.get("accel:device_profile"):
        level(spec).root_required.add(os_traits.COMPUTE_ACCELERATORS)


def packed_virtqueue_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    if wishes_of(spec).switch("virtio_packed_ring"):
        level(spec).root_required.add(os_traits.COMPUTE_NET_VIRTIO_PACKED)


def routed_networks_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    if not around.conf.scheduler.query_placement_for_routed_network_aggregates:
        return
    for request in requested_networks(spec):
        segments, what = _segments(around, request)
        if not segments:
            continue
        found: set[str] = set()
        for segment in segments:
            provider = around.clients.placement.provider_get(around.ctxt, segment)
            members = around.clients.placement.aggregates_get(around.ctxt, segment)[0] if provider else set()
            if not members:
                raise exceptions.RequestFilterFailed(reason=f"Aggregates not found for the {what}")
            found |= members
        require_aggregates(spec, found)


def _segments(around: Surroundings, request: objects.NetworkRequest) -> tuple[list[str], str]:
    """Segments that a network request may end up on, and what they belong to."""
    rest, ctxt = around.clients.neutron.rest, around.ctxt
    network = optional(request, "network_id")
    port_id = optional(request, "port_id")
    if port_id:
        port = rest.port_show(ctxt, port_id, admin=True)
        if port["fixed_ips"]:
            subnet = rest.show(ctxt, "subnets", port["fixed_ips"][0]["subnet_id"], admin=True) or {}
            segment = subnet.get("segment_id")
            return ([segment] if segment else []), f"subnet {subnet.get('id')}"
        network = port["network_id"]
    if not network or network in ("auto", "none"):
        return [], ""
    subnets = rest.list(ctxt, "subnets", admin=True, network_id=network)
    return sorted({each["segment_id"] for each in subnets if each.get("segment_id")}), f"network {network}"


def remote_managed_ports_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    ports = [port for port in (optional(each, "port_id") for each in requested_networks(spec)) if port]
    if not ports:
        return
    found = around.clients.neutron.rest.list(around.ctxt, "ports", admin=True, id=ports)
    if any(each.get("binding:vnic_type") == network_info.VNIC_REMOTE_MANAGED for each in found):
        level(spec).root_required.add(os_traits.COMPUTE_REMOTE_MANAGED_PORTS)


def ephemeral_encryption_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    wishes = wishes_of(spec)
    if not wishes.switch("ephemeral_encryption"):
        return
    level(spec).root_required.add(os_traits.COMPUTE_EPHEMERAL_ENCRYPTION)
    encryption_format = wishes.both("ephemeral_encryption_format")
    if encryption_format:
        level(spec).root_required.add(f"COMPUTE_EPHEMERAL_ENCRYPTION_{str(encryption_format).upper()}")


def virtio_sound_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    if wishes_of(spec).both("sound_model") == "virtio":
        level(spec).root_required.add("COMPUTE_SOUND_MODEL_VIRTIO")


def tpm_secret_security_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    wishes = wishes_of(spec)
    if wishes.tpm() is None:
        return
    security = wishes.specs.get("hw:tpm_secret_security") or "user"
    if security not in SECRET_SECURITY_TRAITS:
        raise exceptions.RequestFilterFailed(reason=f"TPM secret security '{security}' is not supported.")
    level(spec).root_required.add(SECRET_SECURITY_TRAITS[security])


def owner_nova_filter(around: Surroundings, spec: objects.RequestSpec) -> None:
    if around.snapshot.minimum_version() >= OWNER_SINCE:
        level(spec).root_required.add("OWNER_NOVA")


ORDER: tuple[Callable[[Surroundings, objects.RequestSpec], None], ...] = (
    require_tenant_aggregate,
    map_az_to_placement_aggregate,
    require_image_type_support,
    compute_status_filter,
    isolate_aggregates,
    transform_image_metadata,
    accelerators_filter,
    packed_virtqueue_filter,
    routed_networks_filter,
    remote_managed_ports_filter,
    ephemeral_encryption_filter,
    virtio_sound_filter,
    tpm_secret_security_filter,
    owner_nova_filter,
)


def run(around: Surroundings, spec: objects.RequestSpec) -> None:
    """All of them. Raises RequestFilterFailed when no host can fit."""
    for each in ORDER:
        each(around, spec)


# --- the spec's parts ----------------------------------------------------------------------


def wishes_of(spec: objects.RequestSpec) -> Wishes:
    image: Any = field(spec, "image")
    return Wishes(spec.flavor, image)


def optional(thing: Any, name: str) -> Any:
    return getattr(thing, name) if thing.obj_attr_is_set(name) else None


def requested_networks(spec: objects.RequestSpec) -> Iterable[objects.NetworkRequest]:
    found: Any = field(spec, "requested_networks")
    return found.objects if found is not None else ()


def level(spec: objects.RequestSpec) -> objects.RequestLevelParams:
    """The spec's instructions for the whole tree, made when missing: Nova's API leaves out what it has none of."""
    if field(spec, "request_level_params") is None:
        spec.request_level_params = objects.RequestLevelParams()
    found: objects.RequestLevelParams = spec.request_level_params
    found.obj_set_defaults()
    return found


def destination(spec: objects.RequestSpec) -> objects.Destination:
    """The spec's requested destination, made when missing."""
    if field(spec, "requested_destination") is None:
        spec.requested_destination = objects.Destination()
    found: objects.Destination = spec.requested_destination
    return found


def require_aggregates(spec: objects.RequestSpec, uuids: Collection[str]) -> None:
    """The host must be in one of them, besides what is required already."""
    target = destination(spec)
    target.aggregates = [*(optional(target, "aggregates") or ()), ",".join(sorted(uuids))]


def require_known(spec: objects.RequestSpec, trait: str) -> None:
    if hasattr(os_traits, trait):
        level(spec).root_required.add(trait)
    else:
        LOG.error("the trait %s does not exist; is os-traits up to date?", trait)
