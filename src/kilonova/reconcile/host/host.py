"""A host as its repair loops see it; the compute agent is one."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from oslo_config import cfg

from kilonova.contract import objects
from kilonova.contract.context import RequestContext
from kilonova.virt.driver import Driver

if TYPE_CHECKING:
    from kilonova.clients.bundle import Clients


class Record(Protocol):
    """The record, as far as the loops read and write it."""

    def call(self, ctxt: RequestContext, name: str, method: str, *args: Any, **kwargs: Any) -> Any: ...

    def act(self, ctxt: RequestContext, obj: Any, method: str, *args: Any, **kwargs: Any) -> Any: ...

    def instance(self, ctxt: RequestContext, uuid: str, attrs: Sequence[str] = ...) -> objects.Instance: ...

    def instances_of_host(
        self, ctxt: RequestContext, host: str, attrs: Sequence[str] = ...
    ) -> list[objects.Instance]: ...

    def instances_by_uuid(
        self, ctxt: RequestContext, uuids: Sequence[str], attrs: Sequence[str] = ...
    ) -> list[objects.Instance]: ...

    def save(self, ctxt: RequestContext, instance: objects.Instance, expected: Any = ...) -> None: ...

    def fault(
        self, ctxt: RequestContext, uuid: str, host: str, error: BaseException, message: str | None = None
    ) -> None: ...

    def block_devices(self, ctxt: RequestContext, uuid: str) -> list[objects.BlockDeviceMapping]: ...


class Lanes(Protocol):
    """One line of work per instance."""

    def submit(
        self, key: str, fn: Callable[[Any], Any], *, kind: str | None = None, preempt: bool = False
    ) -> concurrent.futures.Future[Any]: ...


class Network(Protocol):
    """The cached interfaces of servers."""

    def refresh(
        self, ctxt: RequestContext, instance: objects.Instance, port_id: str | None = None
    ) -> Sequence[Mapping[str, Any]]: ...


class Release(Protocol):
    """A volume that is to be let go of."""

    @property
    def id(self) -> int: ...

    @property
    def instance_uuid(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def error(self) -> str | None: ...


class Host(Protocol):
    @property
    def conf(self) -> cfg.ConfigOpts: ...

    @property
    def host(self) -> str: ...

    @property
    def store(self) -> Record: ...

    @property
    def driver(self) -> Driver: ...

    @property
    def clients(self) -> Clients: ...

    @property
    def lanes(self) -> Lanes: ...

    @property
    def network(self) -> Network: ...

    def tracked(self) -> set[str]:
        """Instances that the host knows to be its own."""

    def busy(self, uuid: str) -> bool: ...

    def power_state(self, instance: objects.Instance) -> int: ...

    def operate(
        self, method: str, instance: objects.Instance, args: Mapping[str, Any], resumed: bool = False
    ) -> concurrent.futures.Future[Any]: ...

    def interrupted(self, instance: objects.Instance) -> tuple[str | None, Mapping[str, Any]]: ...

    def owed(self) -> Sequence[Release]: ...

    def settle(self, release: Any) -> bool: ...

    def take_down(self, instance: objects.Instance) -> None:
        """Remove guest, ports and attachments of an instance that has no record any more."""
