"""An instance's disks: from the records to what a driver takes, and the volumes' attachments in between."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kilonova.base import clock
from kilonova.clients.http import passes
from kilonova.clients.patience import outlast
from kilonova.compute import releases
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.virt.driver import BlockDevices, LocalDisk, Volume
from kilonova.virt.hardware import disk_names

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

Mapping_ = objects.BlockDeviceMapping


def is_volume(mapping: Mapping_) -> bool:
    return mapping.destination_type == "volume"


def is_swap(mapping: Mapping_) -> bool:
    return mapping.source_type == "blank" and mapping.destination_type == "local" and mapping.guest_format == "swap"


def is_ephemeral(mapping: Mapping_) -> bool:
    return mapping.source_type == "blank" and mapping.destination_type == "local" and mapping.guest_format != "swap"


def assemble(instance: objects.Instance, mappings: Iterable[Mapping_]) -> BlockDevices:
    """What a driver needs of the records; volumes that were never connected to a host are left out."""
    volumes, ephemerals, swap = [], [], None
    for mapping in mappings:
        if is_volume(mapping):
            if mapping.connection_info:
                volumes.append(_volume(mapping))
        elif is_swap(mapping):
            swap = _local(mapping)
        elif is_ephemeral(mapping):
            ephemerals.append(_local(mapping))
    return BlockDevices(instance.root_device_name, tuple(volumes), tuple(ephemerals), swap)


def _volume(mapping: Mapping_) -> Volume:
    return Volume(
        volume_id=mapping.volume_id,
        attachment_id=mapping.get("attachment_id"),
        connection_info=json.loads(mapping.connection_info),
        mount_device=mapping.device_name,
        boot_index=mapping.boot_index,
        disk_bus=mapping.disk_bus,
        device_type=mapping.device_type,
        delete_on_termination=mapping.delete_on_termination,
        tag=mapping.get("tag"),
    )


def _local(mapping: Mapping_) -> LocalDisk:
    return LocalDisk(
        size=mapping.volume_size or 0,
        device_name=mapping.device_name,
        disk_bus=mapping.disk_bus,
        format=mapping.guest_format,
        tag=mapping.get("tag"),
    )


def name_devices(instance: objects.Instance, mappings: Sequence[Mapping_], bus: str | None) -> None:
    """Give the root disk and every mapping a device name that has none yet; the caller saves what changed.

    Local disks come before volumes. `bus`: the image's disk bus, which decides the names' prefix.
    """
    root = next((m for m in mappings if m.boot_index == 0), None)
    name = instance.root_device_name or (root.device_name if root is not None else None)
    instance.root_device_name = name = name or disk_names.first(bus)
    if root is not None and root.device_name != name:
        root.device_name = name
    taken = {name, *(m.device_name for m in mappings if m.device_name)}
    for mapping in sorted((m for m in mappings if m is not root and not m.device_name), key=_rank):
        mapping.device_name = disk_names.following(name, taken)
        taken.add(mapping.device_name)
    instance.default_ephemeral_device = _name_of(mappings, is_ephemeral) or instance.default_ephemeral_device
    instance.default_swap_device = _name_of(mappings, is_swap) or instance.default_swap_device


def _rank(mapping: Mapping_) -> int:
    return 0 if is_ephemeral(mapping) else 1 if is_swap(mapping) else 2


def _name_of(mappings: Sequence[Mapping_], kind: Any) -> str | None:
    return next((m.device_name for m in mappings if kind(m)), None)


@dataclasses.dataclass
class Attacher:
    """Gets an instance's volumes ready for its first boot on this host."""

    agent: Agent
    ctxt: RequestContext
    instance: objects.Instance
    first: bool = False
    """Nobody has tried before, so that nothing is looked for."""

    def attach_all(self, mappings: Sequence[Mapping_]) -> None:
        """Create volumes that are to be made, export all to this host, and record how they are reached."""
        store = self.agent.store
        for mapping in mappings:
            if is_volume(mapping):
                self._attach(mapping)
            if mapping.obj_what_changed():
                store.act(self.ctxt, mapping, "save")

    def _attach(self, mapping: Mapping_) -> None:
        cinder, save = self.agent.clients.cinder, self.agent.store.act
        if mapping.volume_id is None:
            self._create(mapping)
        elif not cinder.cross_az_attach:
            self._check_zone(mapping)
        if mapping.get("attachment_id") is None:
            made = self._ask(cinder.attachment_create, mapping.volume_id, self.instance.uuid)
            mapping.attachment_id = made["id"]
            save(self.ctxt, mapping, "save")
        connector = self.agent.driver.volume_connector(self.instance)
        attachment = self._ask(cinder.attachment_update, mapping.attachment_id, connector, mapping.device_name)
        shared = self._ask(cinder.volume_show, mapping.volume_id)["multiattach"]
        mapping.connection_info = json.dumps(connection_of(attachment, mapping, shared))
        save(self.ctxt, mapping, "save")
        self._ask(cinder.attachment_complete, mapping.attachment_id)

    def _ask(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Ask Cinder, which may take minutes to answer, or be away. A delete waits for neither. Raises Preempted."""
        asked = self.agent.background.submit(lambda: call(self.ctxt, *args, **more))
        return self.agent.events.await_result(self.instance.uuid, asked)

    def _check_zone(self, mapping: Mapping_) -> None:
        """Raises ComputeResourcesUnavailable: a host in the volume's zone may do."""
        cinder, zone = self.agent.clients.cinder, self.instance.availability_zone
        volume = self._ask(cinder.volume_show, mapping.volume_id)
        if not cinder.same_zone(volume, zone):
            theirs = volume["availability_zone"]
            reason = f"The volume {mapping.volume_id} is in availability zone {theirs}, this host is in {zone}."
            raise exceptions.ComputeResourcesUnavailable(reason=reason)

    def _create(self, mapping: Mapping_) -> None:
        """Make the volume, or find the one that was made when a first try did not come to write it down."""
        size = mapping.volume_size or self._size_of(mapping)
        # Whatever becomes of this build, of this agent or of the record: somebody looks for what may have been made.
        owed = self.agent.journal.owe(releases.unrecorded(mapping))
        volume = self._ask(self._find_or_make, mapping, size)
        # Recorded before it is waited for: a deleted or restarted build must find it.
        mapping.volume_id, mapping.volume_size = volume["id"], volume["size"]
        self.agent.store.act(self.ctxt, mapping, "save")
        self.agent.journal.settled(owed)
        self._await(volume["id"])

    def _find_or_make(self, ctxt: RequestContext, mapping: Mapping_, size: int) -> Any:
        """While Cinder is away nobody knows whether it heard: each further try looks first."""
        tries = itertools.count()

        def attempt() -> Any:
            fresh = self.first and next(tries) == 0
            return (None if fresh else self._made_before(ctxt, mapping)) or self._make(ctxt, mapping, size)

        return outlast(attempt, passes, f"volume of instance {self.instance.uuid}")

    def _made_before(self, ctxt: RequestContext, mapping: Mapping_) -> Any:
        found = releases.made_for(self.agent, ctxt, mapping.get("uuid"))
        return self.agent.clients.cinder.volume_show(ctxt, found) if found else None

    def _make(self, ctxt: RequestContext, mapping: Mapping_, size: int) -> Any:
        cinder = self.agent.clients.cinder
        source = {"image": ("imageRef", mapping.image_id), "snapshot": ("snapshot_id", mapping.snapshot_id)}
        more: dict[str, Any] = dict([source[mapping.source_type]]) if mapping.source_type in source else {}
        name = f"{self.instance.uuid}-blank-vol" if mapping.source_type == "blank" else ""
        if mapping.get("uuid"):
            more["metadata"] = {releases.MARK: mapping.uuid}
        if not cinder.cross_az_attach:
            more["availability_zone"] = self.instance.availability_zone
        return cinder.volume_create(ctxt, size, name, volume_type=mapping.get("volume_type"), **more)

    def _size_of(self, mapping: Mapping_) -> int:
        if mapping.snapshot_id:
            return int(self._ask(self.agent.clients.cinder.snapshot_show, mapping.snapshot_id)["volume_size"])
        raise exceptions.InvalidBDM(f"a volume from {mapping.source_type} needs a size")

    def _await(self, volume_id: str) -> None:
        conf = self.agent.conf
        began = clock.monotonic()
        for attempt in range(conf.block_device_allocate_retries + 1):
            volume = self._ask(self.agent.clients.cinder.volume_show, volume_id)
            if volume["status"] == "available":
                return
            if volume["status"] not in ("creating", "downloading"):
                break
            if attempt < conf.block_device_allocate_retries:
                self.agent.events.pause(self.instance.uuid, conf.block_device_allocate_retries_interval)
        raise exceptions.VolumeNotCreated(
            volume_id=volume_id,
            seconds=int(clock.monotonic() - began),
            attempts=attempt + 1,
            volume_status=volume["status"],
        )


def connection_of(attachment: Mapping[str, Any], mapping: Mapping_, shared: bool) -> dict[str, Any]:
    """The connection info as it is kept: with the volume's serial, which guests see as the disk's.

    `shared`: other servers may have the volume at the same time, which drivers must know.
    """
    info = dict(attachment["connection_info"])
    info.setdefault("serial", mapping.volume_id)
    info["status"] = "reserved"
    if shared:
        info["multiattach"] = True
    return info


def renew_all(agent: Agent, ctxt: RequestContext, instance: objects.Instance, mappings: Iterable[Mapping_]) -> None:
    """Swap attachments that know this host for fresh reservations, so that another host can take the volumes."""
    for mapping in mappings:
        if is_volume(mapping) and mapping.volume_id and mapping.get("attachment_id"):
            agent.clients.cinder.attachment_delete(ctxt, mapping.attachment_id)
            made = agent.clients.cinder.attachment_create(ctxt, mapping.volume_id, instance.uuid)
            mapping.attachment_id, mapping.connection_info = made["id"], None
            agent.store.act(ctxt, mapping, "save")
