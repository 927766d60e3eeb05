"""A hypervisor without guests that behaves like one: it takes time, fails when told, and remembers.

The classes carry Nova's names so that a configuration written for its test drivers works.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import logging
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import os_resource_classes as rc
from oslo_config import cfg

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Power
from kilonova.virt import driver, identity, uptime
from kilonova.virt.fake import faults as injected
from kilonova.virt.fake.guests import Guest, Guests

LOG = logging.getLogger(__name__)

CAPABILITIES = {
    "has_imagecache": True,
    "supports_accelerators": True,
    "supports_address_space_emulated": True,
    "supports_address_space_passthrough": True,
    "supports_attach_interface": True,
    "supports_device_tagging": True,
    "supports_evacuate": True,
    "supports_extend_volume": True,
    "supports_image_type_raw": True,
    "supports_image_type_vhd": False,
    "supports_mem_backing_file": True,
    "supports_migrate_to_same_host": False,
    "supports_multiattach": True,
    "supports_pcpus": False,
    "supports_remote_managed_ports": True,
    "supports_stateless_firmware": True,
    "supports_tagged_attach_interface": True,
    "supports_tagged_attach_volume": True,
    "supports_trusted_certs": True,
    "supports_virtio_fs": True,
}
VERSION = 1000
CPU_INFO = json.dumps(
    {
        "arch": "x86_64",
        "model": "Nehalem",
        "vendor": "Intel",
        "features": ["pge", "clflush"],
        "topology": {"cores": 1, "threads": 1, "sockets": 4},
    }
)


class FakeDriver(driver.Driver):
    """Guests are files below `state_path`; no process runs."""

    capabilities: Mapping[str, bool] = CAPABILITIES
    vcpus: ClassVar[int] = 1000
    memory_mb: ClassVar[int] = 800_000
    local_gb: ClassVar[int] = 600_000

    def __init__(
        self, conf: cfg.ConfigOpts, host: str, state_path: pathlib.Path, services: driver.Services | None = None
    ) -> None:
        self.host = host
        self.services = services
        self._latency: Mapping[str, float] = conf.kilonova.fake_latency
        self._size = driver.NodeResources(
            hostname=host,
            hypervisor_type="fake",
            hypervisor_version=VERSION,
            vcpus=_given(conf.kilonova.fake_vcpus, self.vcpus),
            memory_mb=_given(conf.kilonova.fake_memory_mb, self.memory_mb),
            local_gb=_given(conf.kilonova.fake_local_gb, self.local_gb),
            disk_available_least=0,
            cpu_info=CPU_INFO,
            supported_instances=(("x86_64", "fake", "hvm"),),
        )
        path = conf.kilonova.fake_faults
        self.faults = injected.Faults(pathlib.Path(path) if path else None)
        self._state_path = state_path
        self._config_files: Sequence[str] = conf.config_file or ()
        self._guests = Guests(state_path / "fake-guests")
        self._on_event: Callable[[driver.GuestEvent], None] = lambda event: None
        self._began = clock.seconds()

    def start(self, host: str, on_event: Callable[[driver.GuestEvent], None]) -> None:
        self.host = host
        with self._call("start"):
            self._on_event = on_event

    def stop(self) -> None:
        self._on_event = lambda event: None

    def adopt(self, instances: Sequence[objects.Instance]) -> None:
        """A fake host that forgot its guests (a new state directory) takes the record's word for them."""
        if len(self._guests):
            return
        for instance in instances:
            if instance.power_state in (Power.RUNNING, Power.SHUTDOWN, Power.PAUSED, Power.SUSPENDED):
                self._guests.put(Guest(instance.uuid, _name(instance), power_state=instance.power_state))

    def nodes(self) -> Mapping[str, str]:
        return {self.host: self._node_uuid()}

    @functools.cache  # noqa: B019 - a driver lives as long as its process
    def _node_uuid(self) -> str:
        return identity.ensure(identity.beside(self._config_files), self._state_path)

    def resources(self, node: str) -> driver.NodeResources:
        with self._call("resources"):
            return self._size

    def inventory(self, node: str) -> Mapping[str, driver.Inventory]:
        with self._call("inventory"):
            size = self._size
            return {
                rc.VCPU: driver.Inventory(total=size.vcpus, max_unit=size.vcpus),
                rc.MEMORY_MB: driver.Inventory(total=size.memory_mb, max_unit=size.memory_mb),
                rc.DISK_GB: driver.Inventory(total=size.local_gb, max_unit=size.local_gb),
            }

    def traits(self, node: str) -> set[str]:
        return set()

    def guests(self) -> Mapping[str, driver.GuestInfo]:
        with self._call("guests"):
            alive = (guest for guest in self._guests.all().values() if guest.power_state != Power.PENDING)
            return {guest.uuid: driver.GuestInfo(guest.uuid, guest.power_state) for guest in alive}

    def guest(self, uuid: str) -> driver.GuestInfo:
        with self._call("guest", uuid):
            found = self._alive(uuid)
            return driver.GuestInfo(uuid, found.power_state)

    def spawn(self, ctxt: RequestContext, guest: driver.GuestSpec) -> None:
        instance = guest.instance
        with self._call("spawn", instance.uuid):
            drive = guest.metadata_files() if instance.config_drive and guest.metadata_files else {}
            self._guests.put(
                Guest(
                    instance.uuid,
                    _name(instance),
                    vifs=tuple(vif["id"] for vif in guest.network_info),
                    volumes=_volumes(guest),
                    config_drive=bool(drive),
                )
            )

    def destroy(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        network_info: Sequence[driver.Vif],
        block_devices: driver.BlockDevices,
        destroy_disks: bool = True,
    ) -> None:
        with self._call("destroy", instance.uuid):
            found = self._guests.get(instance.uuid)
            if found is None:
                return
            if destroy_disks:
                self._guests.drop(instance.uuid)
            else:
                self._guests.put(dataclasses.replace(found, power_state=Power.PENDING))

    def power_off(self, instance: objects.Instance, timeout: float = 0, retry_interval: float = 0) -> None:
        with self._call("power_off", instance.uuid, gives_way=True):
            self._set(instance.uuid, Power.SHUTDOWN)

    def power_on(self, ctxt: RequestContext, guest: driver.GuestSpec) -> None:
        with self._call("power_on", guest.instance.uuid):
            self._boot(guest.instance.uuid, volumes=_volumes(guest))

    def reboot(self, ctxt: RequestContext, guest: driver.GuestSpec, hard: bool) -> None:
        with self._call("reboot", guest.instance.uuid, gives_way=not hard):
            if hard and self._guests.get(guest.instance.uuid) is None:
                self._guests.put(Guest(guest.instance.uuid, _name(guest.instance), volumes=_volumes(guest)))
            elif hard:
                self._boot(guest.instance.uuid, volumes=_volumes(guest))
            else:
                self._boot(guest.instance.uuid)

    def detach_volume(self, instance: objects.Instance, volume: driver.Volume) -> None:
        with self._call("detach_volume", instance.uuid):
            if (found := self._guests.get(instance.uuid)) is not None:
                left = tuple(each for each in found.volumes if each != volume.volume_id)
                self._guests.put(dataclasses.replace(found, volumes=left))

    def console_output(self, instance: objects.Instance) -> bytes:
        with self._call("console_output", instance.uuid):
            found = self._alive(instance.uuid)
            lines = [
                f"[    0.000000] Linux version 6.1.0-fake ({found.name}), boot {found.boots}",
                *(f"[    1.{n:06d}] net eth{n}: port {port}" for n, port in enumerate(found.vifs)),
                *(f"[    2.{n:06d}] sd {n}:0:0:0: volume {volume}" for n, volume in enumerate(found.volumes)),
                "",
                f"{found.name} login: ",
            ]
            return "\n".join(lines).encode()

    def volume_connector(self, instance: objects.Instance) -> Mapping[str, object]:
        initiator = f"iqn.2010-04.org.fake:{self.host}"
        return {"ip": "127.0.0.1", "host": self.host, "initiator": initiator, "multipath": False}

    def uptime(self) -> str:
        with self._call("uptime"):
            now = clock.seconds()
            at = datetime.datetime.fromtimestamp(now)
            return uptime.line(at, int(now - self._began), 0, (0.0, 0.0, 0.0))

    def change(self, uuid: str, change: driver.GuestChange) -> None:
        """For tests: the guest does something by itself, and the host reports it."""
        states = {
            driver.GuestChange.STARTED: Power.RUNNING,
            driver.GuestChange.RESUMED: Power.RUNNING,
            driver.GuestChange.STOPPED: Power.SHUTDOWN,
            driver.GuestChange.PAUSED: Power.PAUSED,
            driver.GuestChange.SUSPENDED: Power.SUSPENDED,
        }
        self._set(uuid, states[change])
        self._on_event(driver.GuestEvent(uuid, change))

    def _alive(self, uuid: str) -> Guest:
        found = self._guests.get(uuid)
        if found is None or found.power_state == Power.PENDING:
            raise exceptions.InstanceNotFound(instance_id=uuid)
        return found

    def _set(self, uuid: str, power_state: int) -> None:
        self._guests.put(dataclasses.replace(self._alive(uuid), power_state=power_state))

    def _boot(self, uuid: str, volumes: tuple[str, ...] | None = None) -> None:
        """With the volumes it had, or others."""
        found = self._alive(uuid)
        self._guests.put(
            dataclasses.replace(
                found,
                power_state=Power.RUNNING,
                boots=found.boots + 1,
                started_at=clock.seconds(),
                volumes=found.volumes if volumes is None else volumes,
            )
        )

    def _call(self, method: str, uuid: str | None = None, gives_way: bool = False) -> _Call:
        return _Call(self, method, uuid, gives_way)


class _Call:
    """One call of a method: its delay and the failure injected into it. `gives_way`: to a delete, while it waits."""

    def __init__(self, owner: FakeDriver, method: str, uuid: str | None, gives_way: bool) -> None:
        self._owner, self._method, self._uuid, self._gives_way = owner, method, uuid, gives_way
        self._fault: injected.Fault | None = None

    def __enter__(self) -> None:
        owner = self._owner
        self._fault = owner.faults.due(self._method, owner.host, self._uuid)
        self._wait(owner._latency.get(self._method, 0.0))
        if self._fault is not None and not self._fault.after:
            raise self._fault.error()

    def _wait(self, seconds: float) -> None:
        services = self._owner.services
        if self._gives_way and self._uuid is not None and services is not None:
            services.events.pause(self._uuid, seconds)
        else:
            time.sleep(seconds)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None and self._fault is not None:
            raise self._fault.error()


class SmallFakeDriver(FakeDriver):
    """A host that a few guests fill."""

    vcpus = 2
    memory_mb = 8192
    local_gb = 1028


class MediumFakeDriver(FakeDriver):
    vcpus = 10
    memory_mb = 8192
    local_gb = 1028


class FakeDriverWithoutFakeNodes(FakeDriver):
    """The node bears the host's name; so does every node of ours."""


class FakeRescheduleDriver(FakeDriver):
    """The first host (of this process) that is to build a server refuses it."""

    _refused: ClassVar[set[str]] = set()

    def spawn(self, ctxt: RequestContext, guest: driver.GuestSpec) -> None:
        if guest.instance.uuid not in self._refused:
            self._refused.add(guest.instance.uuid)
            raise exceptions.ComputeResourcesUnavailable(reason="the first host refuses")
        super().spawn(ctxt, guest)


class FakeBuildAbortDriver(FakeDriver):
    """Every build fails for good."""

    def spawn(self, ctxt: RequestContext, guest: driver.GuestSpec) -> None:
        raise exceptions.BuildAbortException(instance_uuid=guest.instance.uuid, reason="this driver aborts every build")


class SameHostColdMigrateDriver(MediumFakeDriver):
    capabilities = {**CAPABILITIES, "supports_migrate_to_same_host": True}


class RescueBFVDriver(MediumFakeDriver):
    capabilities = {**CAPABILITIES, "supports_bfv_rescue": True}


class EphEncryptionDriver(MediumFakeDriver):
    capabilities = {**CAPABILITIES, "supports_ephemeral_encryption": True}


class EphEncryptionDriverLUKS(MediumFakeDriver):
    capabilities = {**EphEncryptionDriver.capabilities, "supports_ephemeral_encryption_luks": True}


class EphEncryptionDriverPLAIN(MediumFakeDriver):
    capabilities = {**EphEncryptionDriver.capabilities, "supports_ephemeral_encryption_plain": True}


def _given(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _volumes(guest: driver.GuestSpec) -> tuple[str, ...]:
    return tuple(volume.volume_id for volume in guest.block_devices.volumes)


def _name(instance: objects.Instance) -> str:
    return str(instance.hostname or instance.uuid)
