"""The steps of a build, in order:

claim, networks, (volumes), group check, spawning, active.

Each changes the task state by compare-and-swap, so that a delete or a second host is noticed at once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kilonova.base import clock
from kilonova.compute import block_devices, guest, network
from kilonova.compute.ops.build import failure, group
from kilonova.compute.ops.build.job import ACTIVE, REFUSED, Build, as_list
from kilonova.compute.runner import Work
from kilonova.contract import exceptions, network_info, objects
from kilonova.contract.states import VM, Task
from kilonova.virt import configdrive
from kilonova.virt.driver import GuestSpec

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

NEEDED = ("flavor", "info_cache", "metadata", "system_metadata", "numa_topology", "pci_requests")


def perform(work: Work) -> str:
    """Build the server, or leave nothing behind; returns how it ended."""
    build = Build.of(work)
    try:
        begin(build)
    except exceptions.UnexpectedDeletingTaskStateError as exc:
        return failure.gone(build, exc)
    except (exceptions.UnexpectedTaskStateError, exceptions.PolicyNotAuthorized) as exc:
        # The latter is said by conductors with strict_hosts: another host has it.
        LOG.warning("instance %s is not ours to build: %s", build.instance.uuid, exc)
        work.agent.tracker.forget(build.instance.uuid)
        return REFUSED
    except Exception as exc:  # noqa: BLE001 - every failure has an end that is recorded
        return failure.end(build, exc)
    try:
        return complete(build)
    finally:
        group.leave(build)


def complete(build: Build) -> str:
    """From a server that is taken on to one that runs; returns how it ended."""
    try:
        with build.work.agent.network.draft(build.instance.uuid):
            make(build)
    except Exception as exc:  # noqa: BLE001 - every failure has an end that is recorded
        return failure.end(build, exc)
    finish(build)
    return ACTIVE


def begin(build: Build) -> None:
    """Take the instance on. From here on its record names this host, and the world can tell that the cast arrived."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    agent.store.complete(ctxt, instance, *NEEDED)
    check_tags(agent, build)
    agent.tracker.claim(ctxt, instance, build.arg("node"), build.mappings, build.arg("limits"))
    instance.vm_state = VM.BUILDING
    build.save(Task.NETWORKING)
    build.work.step("claimed")


def make(build: Build) -> None:
    """Everything from networks to a running guest."""
    group.check(build)
    allocate_networks(build)
    attach_volumes(build)
    spawn(build)


def allocate_networks(build: Build) -> None:
    """Ports, bound to this host. What an earlier try left is found by the instance's id and taken."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    requested = build.arg("requested_networks")
    with failure.phase(failure.NETWORKS):
        build.network_info = agent.clients.neutron.allocate(
            ctxt,
            instance,
            requested,
            build.security_group_names(),
            agent.host,
            mapping=build.request_mapping,
            first=build.first,
        )
    network.remember(instance, build.network_info)
    instance.system_metadata = {
        **instance.system_metadata,
        "network_allocated": "True",
        "boot_roles": ",".join(ctxt.roles),
    }
    record_interfaces(build)
    build.work.step("networks")


def record_interfaces(build: Build) -> None:
    """The records by which tags and detaches know an interface."""
    from kilonova.clients.neutron.networking import tags

    agent, ctxt, uuid = build.work.agent, build.work.ctxt, build.instance.uuid
    if not build.network_info:
        return
    named = tags(build.network_info, build.arg("requested_networks"))
    for vif in build.network_info:
        record = objects.VirtualInterface(
            address=f"{vif['address']}/{vif['id']}", instance_uuid=uuid, uuid=vif["id"], tag=named[vif["id"]]
        )
        try:
            agent.store.act(ctxt, record, "create")
        except exceptions.VirtualInterfaceCreateException:
            # An earlier try may have come so far.
            if vif["id"] not in {known.uuid for known in agent.store.interfaces(ctxt, uuid)}:
                raise


def attach_volumes(build: Build) -> None:
    """Name the disks, export volumes to this host."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    with failure.phase(failure.VOLUMES):
        block_devices.name_devices(instance, build.mappings, disk_bus(build))
        if any(block_devices.is_volume(m) for m in build.mappings):
            build.save(Task.BLOCK_DEVICE_MAPPING)
        build.attaching = any(block_devices.is_volume(m) for m in build.mappings)
        block_devices.Attacher(agent, ctxt, instance, build.first).attach_all(build.mappings)
    build.disks = block_devices.assemble(instance, build.mappings)
    build.work.step("volumes")


def spawn(build: Build) -> None:
    """Hand the guest to the driver, which waits for its interfaces to be plugged."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    build.save(Task.SPAWNING)
    agent.tracker.update(instance)
    build.work.step("spawning")
    build.spawning = True
    began = clock.monotonic()
    agent.driver.spawn(ctxt, guest_spec(build))
    LOG.info("guest of instance %s was made in %.2f s", instance.uuid, clock.monotonic() - began)
    build.work.step("spawned")
    activate(build)


def activate(build: Build) -> None:
    """The commit point: from here on the server is the user's."""
    agent, instance = build.work.agent, build.instance
    instance.power_state = agent.power_state(instance)
    instance.vm_state = VM.ACTIVE
    if configdrive.required(agent.conf, instance, guest.image_meta(instance)):
        instance.config_drive = "True"
    instance.launched_at = clock.now()
    instance.system_metadata = {k: v for k, v in instance.system_metadata.items() if k != "network_allocated"}
    set_access_addresses(agent.conf.default_access_ip_network_name, instance, build.network_info)
    build.save(None)


def finish(build: Build) -> None:
    """What follows a success and cannot undo it."""
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    agent.tracker.settle(instance)
    agent.tracker.build_ended(instance.node, failed=False)
    agent.tell_schedulers(ctxt, instance)


def guest_spec(build: Build) -> GuestSpec:
    from kilonova.clients.neutron.networking import tags

    agent = build.work.agent
    named = tags(build.network_info, build.arg("requested_networks"))
    made = GuestSpec(
        instance=build.instance,
        image_meta=objects.ImageMeta.from_dict(build.arg("image") or {}),
        network_info=build.network_info,
        block_devices=build.disks,
        admin_password=build.arg("admin_password"),
        injected_files=build.files(),
        allocations=allocations(build),
        interface_tags={port: tag for port, tag in named.items() if tag},
    )
    return guest.with_documents(agent, made, build.security_group_names())


def allocations(build: Build) -> Mapping[str, Any]:
    """What Placement gave the server; asked only when a device may hang on it."""
    specs = build.instance.flavor.get("extra_specs") or {}
    if not any(key.startswith(("resources", "accel:")) for key in specs):
        return {}
    held = build.work.agent.clients.placement.allocations_get(build.work.ctxt, build.instance.uuid)
    return dict(held.allocations)


def check_tags(agent: Agent, build: Build) -> None:
    """Device tags need a driver that can show them to the guest. Raises BuildAbortException."""
    requested = as_list(build.arg("requested_networks"))
    tagged = any(each.get("tag") for each in (*requested, *build.mappings))
    if tagged and not agent.driver.capabilities.get("supports_device_tagging"):
        reason = "device tags were asked for, and this host does not support them"
        raise exceptions.BuildAbortException(instance_uuid=build.instance.uuid, reason=reason)


def disk_bus(build: Build) -> str | None:
    image = build.arg("image") or {}
    return (image.get("properties") or {}).get("hw_disk_bus")


def set_access_addresses(network: str | None, instance: objects.Instance, info: list[dict[str, Any]]) -> None:
    """The first addresses in the configured network, where the user gave none."""
    if not network or instance.access_ip_v4 or instance.access_ip_v6:
        return
    for vif in info:
        if vif["network"]["label"] != network:
            continue
        for ip in network_info.fixed_ips(vif):
            if ip["version"] == 4 and not instance.access_ip_v4:
                instance.access_ip_v4 = ip["address"]
            if ip["version"] == 6 and not instance.access_ip_v6:
                instance.access_ip_v6 = ip["address"]
        return
