"""What the parts of one host's agent share. Made by `service.make`; nothing in it is global."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import logging
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from oslo_config import cfg

from kilonova.base.periodic import Periodic
from kilonova.compute import recovery, releases, removal
from kilonova.compute.background import Background
from kilonova.compute.events import ExternalEvents
from kilonova.compute.inbox import Inbox
from kilonova.compute.journal.book import Book, Release
from kilonova.compute.lanes import Lanes
from kilonova.compute.network import NetworkCache
from kilonova.compute.store import Store
from kilonova.contract import context, exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Power
from kilonova.virt.driver import Driver, GuestEvent

if TYPE_CHECKING:
    from kilonova.clients.bundle import Clients
    from kilonova.compute.resources import Tracker
    from kilonova.compute.runner import Runner
    from kilonova.wire.rpc.clients import ComputeTaskClient, SchedulerClient

LOG = logging.getLogger(__name__)


class Documents(Protocol):
    """Makes what a guest reads about itself from its config drive."""

    def files(
        self,
        instance: objects.Instance,
        network_info: Sequence[Mapping[str, Any]],
        injected_files: Sequence[tuple[str, bytes]] = (),
        admin_password: str | None = None,
        security_groups: Sequence[str] | None = None,
    ) -> Mapping[str, bytes]: ...


class Loop(Protocol):
    """A repair loop of the host. `spacing` in seconds, below 0 it does not run by itself."""

    name: str

    @property
    def spacing(self) -> float: ...

    def run(self) -> object: ...

    def on_guest_event(self, event: GuestEvent) -> None:
        """Something happened to a guest; called for every event, from the driver's thread."""


Loops = Callable[["Agent"], Sequence[Loop]]


@dataclasses.dataclass
class Agent:
    """One host: its record, its hypervisor, its neighbours."""

    conf: cfg.ConfigOpts
    host: str
    state_path: pathlib.Path
    store: Store
    driver: Driver
    clients: Clients
    tracker: Tracker
    events: ExternalEvents
    network: NetworkCache
    lanes: Lanes
    journal: Book
    conductor: ComputeTaskClient
    scheduler: SchedulerClient
    documents: Documents | None = None
    timers: Periodic = dataclasses.field(default_factory=lambda: Periodic("compute"))
    background: Background = dataclasses.field(default_factory=Background)
    inbox: Inbox = dataclasses.field(default_factory=Inbox)
    looked: set[str] = dataclasses.field(default_factory=set)
    """Members of server groups that are built here after their last look at the group."""
    runner: Runner | None = None
    """Set by the service, which makes it for the agent."""

    def operate(
        self, method: str, instance: objects.Instance, args: Mapping[str, Any], resumed: bool = False
    ) -> concurrent.futures.Future[Any]:
        """Carry out an operation that no request asked for, under a request id of its own.

        `resumed`: somebody began it, and what was done of it is looked for first.
        """
        assert self.runner is not None
        return self.runner.of_our_own(method, instance, args, resumed)

    def interrupted(self, instance: objects.Instance) -> tuple[str | None, Mapping[str, Any]]:
        """The operation that the instance's states say is open (None: none is), and its arguments."""
        return recovery.judge(instance, self.power_state(instance))

    def tracked(self) -> set[str]:
        """Instances that take something of this host."""
        return self.tracker.tracked()

    def owed(self) -> Sequence[Release]:
        """Volumes of ended servers and failed builds that are to be let go of still; not what is worked on."""
        return [each for each in self.journal.owed() if not self.busy(each.instance_uuid)]

    def settle(self, release: Release) -> bool:
        """Try again to let go of one, as the service; whether it is done. Raises what Cinder raises."""
        return releases.settle(self, context.admin(), release)

    def take_down(self, instance: objects.Instance) -> None:
        """Remove guest, ports and attachments of an instance whose record is gone."""
        ctxt = context.admin("yes")
        removal.take_down(self, ctxt, instance, self.store.block_devices(ctxt, instance.uuid))
        self.tracker.forget(instance.uuid)

    def busy(self, uuid: str) -> bool:
        """Whether an operation on the instance runs or waits here."""
        return self.lanes.busy(uuid)

    def power_state(self, instance: objects.Instance) -> int:
        """What the hypervisor says of the guest; PENDING where it knows none."""
        try:
            return self.driver.guest(instance.uuid).power_state
        except exceptions.InstanceNotFound:
            return Power.PENDING

    def tell_schedulers(self, ctxt: RequestContext, *instances: objects.Instance) -> None:
        """The instances are here now, or changed."""
        if self._tells and instances:
            info = objects.InstanceList(objects=list(instances))
            self.scheduler.update_instance_info(ctxt.elevated(), host_name=self.host, instance_info=info)

    def forget_at_schedulers(self, ctxt: RequestContext, uuid: str) -> None:
        if self._tells:
            self.scheduler.delete_instance_info(ctxt.elevated(), host_name=self.host, instance_uuid=uuid)

    def list_for_schedulers(self, ctxt: RequestContext, uuids: Sequence[str]) -> None:
        """So that schedulers that missed something notice."""
        if self._tells:
            self.scheduler.sync_instance_info(ctxt.elevated(), host_name=self.host, instance_uuids=list(uuids))

    @property
    def _tells(self) -> bool:
        return bool(self.conf.filter_scheduler.track_instance_changes)
