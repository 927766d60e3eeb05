"""The interface between the compute agent and a hypervisor.

A driver owns guests on one host. It knows no database, no bus and no other
service: what it needs from them arrives in :class:`GuestSpec` and
:class:`Services`. Every method may be called from several threads, but the
agent never runs two state-changing calls for one guest at the same time.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from oslo_config import cfg

from kilonova.contract import objects
from kilonova.contract.context import RequestContext

Vif = Mapping[str, Any]
"""One entry of the network-info model (see contract.network_info)."""


class GuestChange(enum.IntEnum):
    """What happened to a guest without our asking; Nova's lifecycle event numbers."""

    STARTED = 0
    STOPPED = 1
    PAUSED = 2
    RESUMED = 3
    SUSPENDED = 4
    POSTCOPY_STARTED = 5
    MIGRATION_COMPLETED = 6


@dataclasses.dataclass(frozen=True)
class GuestEvent:
    uuid: str
    change: GuestChange


@dataclasses.dataclass(frozen=True)
class GuestInfo:
    """What the hypervisor says of a guest.

    `power_state` is Nova's number: 0 nostate, 1 running, 3 paused, 4 shutdown, 6 crashed, 7 suspended.
    """

    uuid: str
    power_state: int
    internal_id: int | None = None


@dataclasses.dataclass(frozen=True)
class Inventory:
    """A Placement inventory record of one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int | None = None
    step_size: int = 1
    allocation_ratio: float = 1.0


@dataclasses.dataclass(frozen=True)
class NodeResources:
    """What a node has and uses: the columns of `compute_nodes`. Memory in MiB, disk in GiB."""

    hostname: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    vcpus_used: int = 0
    memory_mb_used: int = 0
    local_gb_used: int = 0
    disk_available_least: int | None = None
    cpu_info: str = ""
    supported_instances: Sequence[Sequence[str]] = ()
    """(architecture, hypervisor type, vm mode) triples."""
    numa_topology: str | None = None
    pci_devices: Sequence[Mapping[str, Any]] = ()


@dataclasses.dataclass(frozen=True)
class Volume:
    """An attached Cinder volume; `connection_info` as Cinder returned it."""

    volume_id: str
    attachment_id: str | None
    connection_info: Mapping[str, Any]
    mount_device: str | None
    boot_index: int | None
    disk_bus: str | None = None
    device_type: str | None = None
    delete_on_termination: bool = False
    tag: str | None = None

    @property
    def serial(self) -> str:
        """Serial number of the guest's disk."""
        return str(self.connection_info.get("serial") or self.volume_id)

    @property
    def multiattach(self) -> bool:
        """Whether other guests may have it at the same time."""
        return bool(self.connection_info.get("multiattach", False))


@dataclasses.dataclass(frozen=True)
class LocalDisk:
    """An ephemeral or swap disk; size in GiB for ephemeral, MiB for swap."""

    size: int
    device_name: str | None = None
    disk_bus: str | None = None
    format: str | None = None
    tag: str | None = None


@dataclasses.dataclass(frozen=True)
class BlockDevices:
    root_device_name: str | None = None
    volumes: Sequence[Volume] = ()
    ephemerals: Sequence[LocalDisk] = ()
    swap: LocalDisk | None = None

    @property
    def boot_volume(self) -> Volume | None:
        return next((v for v in self.volumes if v.boot_index == 0), None)


class EventWaiter(Protocol):
    """Lets a driver start something and wait for the external events it causes."""

    def expect(
        self, uuid: str, events: Iterable[tuple[str, str]], timeout: float
    ) -> contextlib.AbstractContextManager[None]:
        """Register for (name, tag) events before the body runs; on exit wait for all.

        Raises `VirtualInterfaceCreateException` when one is reported failed or late.
        """

    def pause(self, uuid: str, seconds: float) -> None:
        """Sleep while a guest takes its time; raises what is to be passed on when the guest is to be deleted."""


class ImageFetcher(Protocol):
    def fetch(self, ctxt: RequestContext, image_id: str, path: str) -> None:
        """Write the image's bytes to `path`, checksum verified. Raises ImageNotFound, ImageUnacceptable."""


@dataclasses.dataclass(frozen=True)
class Services:
    """What the agent lends a driver."""

    images: ImageFetcher
    events: EventWaiter


@dataclasses.dataclass(frozen=True)
class GuestSpec:
    """All that is needed to make or remake a guest."""

    instance: objects.Instance
    image_meta: objects.ImageMeta
    network_info: Sequence[Vif] = ()
    block_devices: BlockDevices = dataclasses.field(default_factory=BlockDevices)
    admin_password: str | None = None
    injected_files: Sequence[tuple[str, bytes]] = ()
    metadata_files: Callable[[], Mapping[str, bytes]] | None = None
    """Content of the config drive: path -> bytes; called only when one is built."""
    allocations: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    interface_tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The user's device tags of network interfaces: port id -> tag."""


class Driver(abc.ABC):
    """A hypervisor on one host."""

    capabilities: Mapping[str, bool] = {}
    """Nova's capability names (`supports_multiattach` ...); absent means false."""

    @staticmethod
    def wrong(conf: cfg.ConfigOpts) -> Iterable[str]:
        """A line for each value that the configuration may have and this driver cannot obey."""
        return ()

    @abc.abstractmethod
    def start(self, host: str, on_event: Callable[[GuestEvent], None]) -> None:
        """Connect; begin to deliver guest events. Raises HypervisorUnavailable."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Disconnect. Guests go on running."""

    def adopt(self, instances: Sequence[objects.Instance]) -> None:
        """What the record says is on this host, told once after the start; only a driver whose guests are not
        somewhere else has a use for it."""
        return

    @abc.abstractmethod
    def nodes(self) -> Mapping[str, str]:
        """Node name -> node uuid, stable across restarts."""

    @abc.abstractmethod
    def resources(self, node: str) -> NodeResources: ...

    @abc.abstractmethod
    def inventory(self, node: str) -> Mapping[str, Inventory]:
        """Resource class -> inventory, before allocation ratios and reservations of the configuration."""

    @abc.abstractmethod
    def traits(self, node: str) -> set[str]: ...

    @abc.abstractmethod
    def guests(self) -> Mapping[str, GuestInfo]:
        """Every guest on the host that is ours, by instance uuid."""

    @abc.abstractmethod
    def guest(self, uuid: str) -> GuestInfo:
        """Raises InstanceNotFound."""

    @abc.abstractmethod
    def spawn(self, ctxt: RequestContext, guest: GuestSpec) -> None:
        """Make disks and configuration, plug interfaces, start. Cleans up after itself when it raises."""

    @abc.abstractmethod
    def destroy(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        network_info: Sequence[Vif],
        block_devices: BlockDevices,
        destroy_disks: bool = True,
    ) -> None:
        """Stop and forget the guest; repeating it, or naming an unknown guest, is no error."""

    @abc.abstractmethod
    def power_off(self, instance: objects.Instance, timeout: float = 0, retry_interval: float = 0) -> None:
        """Ask the guest for `timeout` seconds (0: do not ask), then cut the power.

        Gives way to a delete while it waits (`EventWaiter.pause`), as `reboot` and `detach_volume` do.
        """

    @abc.abstractmethod
    def power_on(self, ctxt: RequestContext, guest: GuestSpec) -> None: ...

    @abc.abstractmethod
    def reboot(self, ctxt: RequestContext, guest: GuestSpec, hard: bool) -> None: ...

    @abc.abstractmethod
    def detach_volume(self, instance: objects.Instance, volume: Volume) -> None:
        """Take a volume from its guest, whether that runs or not, and disconnect it from the host.

        A guest or a disk that is not there is no error. Raises DeviceDetachFailed when a running guest keeps the disk.
        """

    def leftovers(self) -> Collection[str]:
        """Instances without a guest here for which something is plugged into this host still: ports, volumes."""
        return ()

    def unplug(self, uuid: str) -> None:
        """Unplug all that is left of such an instance. Raises NovaException when something stays."""
        return

    @abc.abstractmethod
    def console_output(self, instance: objects.Instance) -> bytes:
        """The tail of the guest's serial log. Raises ConsoleLogOutputException, InstanceNotFound."""

    @abc.abstractmethod
    def volume_connector(self, instance: objects.Instance) -> Mapping[str, Any]:
        """What Cinder must know of this host to export a volume to it."""

    @abc.abstractmethod
    def uptime(self) -> str:
        """The host's uptime line. Raises NotImplementedError where there is none."""
