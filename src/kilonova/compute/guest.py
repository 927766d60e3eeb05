"""From an instance's record to the specification a driver makes or remakes its guest from."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kilonova.compute import block_devices
from kilonova.contract import objects
from kilonova.contract.context import RequestContext
from kilonova.virt.driver import BlockDevices, GuestSpec

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

VifData = dict[str, Any]

IMAGE_PREFIX = "image_"
NOT_PROPERTIES = ("min_ram", "min_disk", "disk_format", "container_format", "base_image_ref")
"""Of what system metadata keeps of the image, these are the image's own attributes."""


def image_meta(instance: objects.Instance) -> objects.ImageMeta:
    """What is known of the image the instance was made from, from its system metadata."""
    kept = {
        key.removeprefix(IMAGE_PREFIX): value
        for key, value in instance.system_metadata.items()
        if key.startswith(IMAGE_PREFIX)
    }
    image: dict[str, Any] = {"properties": {k: v for k, v in kept.items() if k not in NOT_PROPERTIES}}
    for name in ("min_ram", "min_disk"):
        if kept.get(name):
            image[name] = int(kept[name])
    for name in ("disk_format", "container_format"):
        if kept.get(name):
            image[name] = kept[name]
    if instance.image_ref or kept.get("base_image_ref"):
        image["id"] = instance.image_ref or kept["base_image_ref"]
    return objects.ImageMeta.from_dict(image)


def spec(
    agent: Agent,
    ctxt: RequestContext,
    instance: objects.Instance,
    info: Sequence[Mapping[str, Any]],
    disks: BlockDevices,
) -> GuestSpec:
    """Of a guest that exists."""
    made = GuestSpec(instance=instance, image_meta=image_meta(instance), network_info=info, block_devices=disks)
    return with_documents(agent, made)


def with_documents(agent: Agent, made: GuestSpec, security_groups: Sequence[str] | None = None) -> GuestSpec:
    """With the content of a config drive, made only when a driver asks for it."""
    documents = agent.documents
    if documents is None:
        return made

    def files() -> Mapping[str, bytes]:
        return documents.files(
            made.instance,
            made.network_info,
            injected_files=made.injected_files,
            admin_password=made.admin_password,
            security_groups=security_groups,
        )

    return dataclasses.replace(made, metadata_files=files)


def existing(agent: Agent, ctxt: RequestContext, instance: objects.Instance) -> GuestSpec:
    """The specification to start or reboot a guest from: interfaces from Neutron, disks from the record."""
    info = agent.network.refresh(ctxt, instance)
    disks = block_devices.assemble(instance, agent.store.block_devices(ctxt, instance.uuid))
    return spec(agent, ctxt, instance, info, disks)
