"""The libvirt driver: guests under QEMU, with or without KVM, on the host it runs on."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
from oslo_config import cfg
from oslo_log import log

from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Power
from kilonova.virt import configdrive, driver, identity, uptime
from kilonova.virt.libvirt import (
    builder,
    capabilities,
    console,
    cpu,
    detach,
    device_metadata,
    machine,
    names,
    network,
    plugged,
    power,
    privileged,
    sharing,
    storage,
    volumes,
)
from kilonova.virt.libvirt.config.element import to_xml
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.events import Events
from kilonova.virt.libvirt.guest import Guest, define
from kilonova.virt.libvirt.guest import info as info_of
from kilonova.virt.libvirt.imagecache import ImageCache
from kilonova.virt.libvirt.paths import Layout
from kilonova.virt.libvirt.qemu_img import QemuImg

LOG = log.getLogger(__name__)

_URI = "qemu:///system"
_ASK_AGAIN = 10.0
"""Seconds until a guest that does not shut down is asked once more: it may not have been listening yet."""
_VIRT_TYPES = ("kvm", "qemu")
_IMAGE_TYPES = ("default", "qcow2", "raw", "flat")


class LibvirtDriver(driver.Driver):
    """Guests are domains whose uuid is the instance's. The agent may stop and start: domains do not notice."""

    capabilities = capabilities.CAPABILITIES

    def __init__(self, conf: cfg.ConfigOpts, host: str, state_path: Path, services: driver.Services) -> None:
        self._conf = conf
        self._host = host
        self._state_path = state_path
        self._services = services
        self._layout = Layout(Path(conf.instances_path), conf.image_cache.subdirectory_name)
        qemu_img = QemuImg(conf)
        self._storage = storage.Storage(
            conf, self._layout, ImageCache(conf, self._layout, services.images, qemu_img), qemu_img
        )
        self._events: Events | None = None
        self._connection = Connection(conf.libvirt.connection_uri or _URI, host, self._register)
        self._processors = cpu.Processors(conf, self._connection)
        self._facts = capabilities.HostFacts(conf, self._connection, self._layout, self._processors)
        self._builder = builder.Builder(conf, self._connection, self._layout, self._storage, self._processors)
        self._volumes = volumes.Volumes(conf, host)
        self._sharing = sharing.Sharing(self._connection, self._volumes)
        self._plugged = plugged.Plugged(state_path / "plugged")

    # The host

    @staticmethod
    def wrong(conf: cfg.ConfigOpts) -> Iterator[str]:
        for option, built in (("virt_type", _VIRT_TYPES), ("images_type", _IMAGE_TYPES)):
            if conf.libvirt[option] not in built:
                yield f"[libvirt] {option} {conf.libvirt[option]} is not supported; it can be {', '.join(built)}"

    def start(self, host: str, on_event: Callable[[driver.GuestEvent], None]) -> None:
        privileged.prepare(self._conf)
        network.initialize()
        self._layout.instances.mkdir(parents=True, exist_ok=True)
        self._events = Events(on_event)
        self._events.start()
        self._connection.keep()
        self._processors.check()

    def stop(self) -> None:
        if self._events is not None:
            self._events.stop()
        self._connection.close()

    def nodes(self) -> Mapping[str, str]:
        uuid = identity.ensure(identity.beside(self._conf.config_file or ()), self._state_path)
        return {self._connection.hostname: uuid}

    def resources(self, node: str) -> driver.NodeResources:
        return self._facts.resources()

    def inventory(self, node: str) -> Mapping[str, driver.Inventory]:
        return self._facts.inventory()

    def traits(self, node: str) -> set[str]:
        return self._facts.traits()

    def uptime(self) -> str:
        return uptime.of_this_host()

    def volume_connector(self, instance: objects.Instance) -> Mapping[str, Any]:
        return self._volumes.connector()

    # Guests

    def guests(self) -> Mapping[str, driver.GuestInfo]:
        found: dict[str, driver.GuestInfo] = {}
        for domain in self._connection.get().listAllDomains():
            try:
                if names.is_ours(domain):
                    found[domain.UUIDString()] = info_of(domain)
            except libvirt.libvirtError as failure:
                if failure.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                    raise
        return found

    def guest(self, uuid: str) -> driver.GuestInfo:
        return self._guest(uuid).info()

    def spawn(self, ctxt: RequestContext, spec: driver.GuestSpec) -> None:
        shape = self._builder.shape(spec)
        self._clear_interrupted(ctxt, spec)
        with self._undone_on_failure(ctxt, spec):
            self._storage.make(ctxt, spec)
            self._create(spec, shape, first=True)
        self._record_hardware(spec, shape)

    def destroy(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        network_info: Sequence[driver.Vif],
        block_devices: driver.BlockDevices,
        destroy_disks: bool = True,
    ) -> None:
        found = self._guest(instance.uuid)
        power.off(found, 0, 0)
        failures = self._disconnect(self._owner(instance), network_info, block_devices)
        if destroy_disks:
            self._storage.delete(instance.uuid)
        with contextlib.suppress(exceptions.InstanceNotFound):
            found.undefine(keep_firmware_state=not destroy_disks)
        if failures:
            # The guest is gone; what is left of it on switch or storage is no reason to keep the server. It is noted.
            LOG.warning("Guest %s is destroyed, but: %s", instance.uuid, "; ".join(failures))

    def power_off(self, instance: objects.Instance, timeout: float = 0, retry_interval: float = 0) -> None:
        power.off(self._guest(instance.uuid), timeout, retry_interval, self._pause(instance.uuid))

    def power_on(self, ctxt: RequestContext, spec: driver.GuestSpec) -> None:
        self._remake(ctxt, spec)

    def reboot(self, ctxt: RequestContext, spec: driver.GuestSpec, hard: bool) -> None:
        found = self._guest(spec.instance.uuid)
        if not hard and found.info().power_state == Power.RUNNING:
            patience = self._conf.libvirt.wait_soft_reboot_seconds
            if power.shut_down(found, patience, _ASK_AGAIN, sleep=self._pause(found.uuid)):
                found.launch()
                return
            LOG.warning("Guest %s does not shut down for its reboot and is reset", found.uuid)
        self._remake(ctxt, spec)

    def detach_volume(self, instance: objects.Instance, volume: driver.Volume) -> None:
        conf, found = self._conf.libvirt, self._guest(instance.uuid)
        try:
            detach.take(found, volume, conf.device_detach_attempts, conf.device_detach_timeout, self._pause(found.uuid))
        except exceptions.InstanceNotFound:
            LOG.info("Guest %s is not defined here; its volume %s is only disconnected", found.uuid, volume.volume_id)
        self._sharing.disconnect(instance.uuid, volume, force=False)
        self._plugged.forget(instance.uuid, volume.volume_id)

    def leftovers(self) -> Collection[str]:
        return self._plugged.guests() - set(self.guests())

    def unplug(self, uuid: str) -> None:
        note = self._plugged.of(uuid)
        if note is not None and (failures := self._disconnect(note.owner, (), driver.BlockDevices())):
            raise exceptions.InternalError(err="; ".join(failures))

    def console_output(self, instance: objects.Instance) -> bytes:
        found = self._guest(instance.uuid)
        try:
            return console.tail(console.log_path(found))
        except OSError as failure:
            reason = failure.strerror or "unreadable"
            raise exceptions.ConsoleLogOutputException(instance_id=instance.uuid, reason=reason) from failure

    # Steps

    def _guest(self, uuid: str) -> Guest:
        return Guest(self._connection, uuid)

    def _pause(self, uuid: str) -> Callable[[float], None]:
        """How to sleep while the guest takes its time."""
        return functools.partial(self._services.events.pause, uuid)

    def _register(self, connection: libvirt.virConnect) -> None:
        if self._events is not None:
            self._events.register(connection)

    def _owner(self, instance: objects.Instance) -> network.Owner:
        return network.Owner(instance.uuid, names.domain_name(self._conf, instance), instance.project_id)

    def _make_config_drive(self, spec: driver.GuestSpec, shape: builder.Shape) -> None:
        files = self._layout.instance(spec.instance.uuid)
        if not shape.config_drive or files.config_drive.exists():
            return
        content = spec.metadata_files() if spec.metadata_files is not None else {}
        storage.record_config_drive(files)
        configdrive.write(files.config_drive, content, self._conf.config_drive_format)

    def _clear_interrupted(self, ctxt: RequestContext, spec: driver.GuestSpec) -> None:
        """Remove what an earlier spawn left that the agent's end interrupted. Raises InstanceExists for a guest that
        runs: it was not interrupted."""
        found = self._guest(spec.instance.uuid)
        if not found.exists():
            return
        if found.info().power_state == Power.RUNNING:
            raise exceptions.InstanceExists(name=spec.instance.uuid)
        LOG.info("Guest %s was left by an interrupted spawn and is made anew", spec.instance.uuid)
        self.destroy(ctxt, spec.instance, spec.network_info, spec.block_devices)

    def _create(
        self, spec: driver.GuestSpec, shape: builder.Shape, first: bool, existing: ET.Element | None = None
    ) -> None:
        """Connect, define and start. The first time the guest stays paused until its interfaces are wired."""
        instance = spec.instance
        self._plugged.note(self._owner(instance), spec.network_info, spec.block_devices.volumes)
        with self._sharing.connected(instance.uuid, spec.block_devices.volumes) as sources:
            self._define_and_launch(spec, shape, sources, first, existing)

    def _define_and_launch(
        self,
        spec: driver.GuestSpec,
        shape: builder.Shape,
        sources: Mapping[str, volumes.Source],
        first: bool,
        existing: ET.Element | None,
    ) -> None:
        instance = spec.instance
        name = names.domain_name(self._conf, instance)
        xml = to_xml(self._builder.domain(spec, shape, sources, name, existing))
        self._layout.instance(instance.uuid).console_log.touch()
        timeout = self._conf.vif_plugging_timeout
        awaited = network.events_of(spec.network_info) if first and timeout else []
        multiqueue = network.wants_multiqueue(shape.properties, shape.extra_specs, instance.flavor.vcpus)
        with self._network_events(instance.uuid, awaited, timeout):
            network.plug(spec.network_info, self._owner(instance), multiqueue)
            made = define(self._connection, xml, instance.uuid)
            if first:
                # Only a defined domain has addresses, which the metadata on the config drive tells of tagged devices.
                instance.device_metadata = device_metadata.of(spec, made.xml(inactive=True))
            self._make_config_drive(spec, shape)
            made.launch(paused=bool(awaited))
        if awaited:
            made.resume()

    @contextlib.contextmanager
    def _network_events(self, uuid: str, awaited: Sequence[tuple[str, str]], timeout: float) -> Iterator[None]:
        if not awaited:
            yield
            return
        try:
            with self._services.events.expect(uuid, awaited, timeout):
                yield
        except exceptions.VirtualInterfaceCreateException:
            if self._conf.vif_plugging_is_fatal:
                raise
            LOG.warning("The network of guest %s is not ready; it starts all the same", uuid)

    @contextlib.contextmanager
    def _undone_on_failure(self, ctxt: RequestContext, spec: driver.GuestSpec) -> Iterator[None]:
        try:
            yield
        except BaseException:
            try:
                self.destroy(ctxt, spec.instance, spec.network_info, spec.block_devices)
            except Exception:
                LOG.exception("What was made of guest %s is not removed completely", spec.instance.uuid)
            raise

    def _remake(self, ctxt: RequestContext, spec: driver.GuestSpec) -> None:
        """Start from nothing but the disks: whatever was wrong with domain or connections is put right.

        Raises Invalid for what is not built, with the guest untouched: an agent of Nova's may have made it.
        """
        instance = spec.instance
        shape = self._builder.shape(spec)
        found = self._guest(instance.uuid)
        existing = found.xml(inactive=True) if found.exists() else None
        self.destroy(ctxt, instance, spec.network_info, spec.block_devices, destroy_disks=False)
        self._create(spec, shape, first=False, existing=existing)

    def _disconnect(
        self, owner: network.Owner, vifs: Sequence[driver.Vif], block_devices: driver.BlockDevices
    ) -> list[str]:
        """Unplug these and what is noted besides, going on past failures; returns one message for each."""
        note = self._plugged.of(owner.uuid) or plugged.Note(owner)
        wanted = {vif["id"]: vif for vif in vifs} | {each.volume_id: each for each in block_devices.volumes}
        failures, gone = [], []
        for ident, each in {**note.vifs, **note.volumes, **wanted}.items():
            if ident not in wanted and self._is_elsewhere(owner.uuid, each):
                gone.append(ident)
            elif said := self._unplug(owner, each):
                failures.extend(said)
            else:
                gone.append(ident)
        # At once: a guest whose note only goes is destroyed on a full disk, too.
        self._plugged.forget(owner.uuid, *gone)
        return failures

    def _unplug(self, owner: network.Owner, each: driver.Vif | driver.Volume) -> list[str]:
        if not isinstance(each, driver.Volume):
            return network.unplug([each], owner)
        try:
            self._sharing.disconnect(owner.uuid, each)
        except Exception as failure:  # noqa: BLE001 - every connector has errors of its own
            return [f"volume {each.volume_id}: {failure}"]
        return []

    def _is_elsewhere(self, uuid: str, each: driver.Vif | driver.Volume) -> bool:
        """Whether what the record does not name any more belongs to another guest of this host by now."""
        if isinstance(each, driver.Volume):
            return self._plugged.left_to_another(uuid, each.volume_id) or self._sharing.held_by_another(uuid, each)
        return self._plugged.left_to_another(uuid, each["id"])

    def _record_hardware(self, spec: driver.GuestSpec, shape: builder.Shape) -> None:
        """Note what was chosen where nobody asked, so that the guest keeps it when defaults change."""
        instance = spec.instance
        chosen = machine.chosen(self._conf, shape.arch, shape.machine, shape.properties)
        instance.system_metadata = {
            **{f"image_{name}": str(value) for name, value in chosen.items() if value is not None},
            **instance.system_metadata,
        }
        root = shape.places[0].target
        if not instance.root_device_name:
            instance.root_device_name = f"/dev/{root}"
