"""The record, seen from a host: objects are data, and all reading and writing goes through a Store.

`RpcStore` asks the conductor over the bus exactly as Nova's agents do (`object_class_action_versions`,
`object_action`); what an object method changed comes back and is merged into the caller's object.
"""

from __future__ import annotations

import abc
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.base.outward import without_paths
from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.wire.rpc.clients import BaseClient, ConductorClient
from kilonova.wire.rpc.errors import RPC_LOST, DBConnectionError

INSTANCE_ATTRS = ("metadata", "system_metadata", "info_cache", "flavor", "numa_topology", "pci_requests", "resources")
"""What an operation on a guest reads of its instance."""

RETRY_PAUSE = 0.5
_DONE_BEFORE: Any = object()
_UNSET: Any = object()
"""For `expected`: do not look. None is a task state of its own."""


class Store(abc.ABC):
    """Two primitives, and the methods of objects that a host uses. Raises the contract's exceptions, as there."""

    @abc.abstractmethod
    def call(self, ctxt: RequestContext, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a class method of the wire object `name`."""

    @abc.abstractmethod
    def act(self, ctxt: RequestContext, obj: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a wire object; what it changed is merged into `obj`."""

    def reach(self, ctxt: RequestContext, patience: float) -> None:  # noqa: B027
        """Make sure that somebody answers. Raises what the bus raises when nobody does within `patience` seconds."""

    # Instances

    def instance(self, ctxt: RequestContext, uuid: str, attrs: Sequence[str] = INSTANCE_ATTRS) -> objects.Instance:
        """Raises InstanceNotFound."""
        return self.call(ctxt, "Instance", "get_by_uuid", uuid, expected_attrs=list(attrs))

    def instances_of_host(
        self, ctxt: RequestContext, host: str, attrs: Sequence[str] = INSTANCE_ATTRS
    ) -> list[objects.Instance]:
        return list(self.call(ctxt, "InstanceList", "get_by_host", host, expected_attrs=list(attrs)).objects)

    def instances_of_node(
        self, ctxt: RequestContext, host: str, node: str, attrs: Sequence[str] = INSTANCE_ATTRS
    ) -> list[objects.Instance]:
        found = self.call(ctxt, "InstanceList", "get_by_host_and_node", host, node, expected_attrs=list(attrs))
        return list(found.objects)

    def instances_by_uuid(
        self, ctxt: RequestContext, uuids: Iterable[str], attrs: Sequence[str] = ()
    ) -> list[objects.Instance]:
        """Those that exist; with a context that reads deleted ones, those too."""
        wanted = sorted(uuids)
        if not wanted:
            return []
        filters: dict[str, Any] = {"uuid": wanted}
        if ctxt.read_deleted == "yes":
            filters["deleted"] = None
        found = self.call(ctxt, "InstanceList", "get_by_filters", filters, expected_attrs=list(attrs))
        return list(found.objects)

    def complete(self, ctxt: RequestContext, instance: objects.Instance, *attrs: str) -> objects.Instance:
        """Load those of the attributes that are not set yet, in one call."""
        missing = [attr for attr in attrs if not instance.obj_attr_is_set(attr)]
        if missing:
            loaded = self.instance(ctxt, instance.uuid, missing)
            for attr in missing:
                setattr(instance, attr, getattr(loaded, attr))
            instance.obj_reset_changes(missing)
        return instance

    def save(self, ctxt: RequestContext, instance: objects.Instance, expected: Any = _UNSET) -> None:
        """Write what changed; with `expected` only while the task state is that one (or one of those).

        Raises UnexpectedTaskStateError, UnexpectedDeletingTaskStateError, InstanceNotFound.
        """
        if expected is _UNSET:
            self.act(ctxt, instance, "save")
            return
        states = list(expected) if isinstance(expected, list | tuple | set | frozenset) else [expected]
        self.act(ctxt, instance, "save", expected_task_state=states)

    def destroy(self, ctxt: RequestContext, instance: objects.Instance) -> None:
        self.act(ctxt, instance, "destroy")

    # What explains an instance

    def event_start(self, ctxt: RequestContext, uuid: str, name: str, host: str) -> None:
        self.call(ctxt, "InstanceActionEvent", "event_start", uuid, name, want_result=False, host=host)

    def event_finish(
        self, ctxt: RequestContext, uuid: str, name: str, error: BaseException | None, message: str | None = None
    ) -> None:
        kwargs: dict[str, Any] = {"want_result": False, "exc_val": None, "exc_tb": None}
        if error is not None:
            kwargs["exc_val"] = message or message_of(error)
            kwargs["exc_tb"] = "".join(traceback.format_tb(error.__traceback__))
        self.call(ctxt, "InstanceActionEvent", "event_finish_with_failure", uuid, name, **kwargs)

    def fault(
        self, ctxt: RequestContext, uuid: str, host: str, error: BaseException, message: str | None = None
    ) -> None:
        """Record why the instance failed; only the detail of internal errors is kept, for administrators."""
        code = getattr(error, "code", 500)
        details = "".join(traceback.format_exception(error)) if code == 500 else ""
        made = objects.InstanceFault(
            instance_uuid=uuid, host=host, code=code, message=_cut(message or message_of(error)), details=details
        )
        self.act(ctxt, made, "create")

    # Block devices and interfaces

    def block_devices(self, ctxt: RequestContext, uuid: str) -> list[objects.BlockDeviceMapping]:
        return list(self.call(ctxt, "BlockDeviceMappingList", "get_by_instance_uuid", uuid).objects)

    def block_devices_of(
        self, ctxt: RequestContext, uuids: Iterable[str]
    ) -> dict[str, list[objects.BlockDeviceMapping]]:
        """By instance uuid; an instance without any is absent."""
        found: dict[str, list[objects.BlockDeviceMapping]] = {}
        for each in self.call(ctxt, "BlockDeviceMappingList", "get_by_instance_uuids", list(uuids)).objects:
            found.setdefault(each.instance_uuid, []).append(each)
        return found

    def block_device(self, ctxt: RequestContext, volume_id: str, uuid: str) -> objects.BlockDeviceMapping:
        """By which the instance has the volume. Raises VolumeBDMNotFound."""
        return self.call(ctxt, "BlockDeviceMapping", "get_by_volume_and_instance", volume_id, uuid)

    def interfaces(self, ctxt: RequestContext, uuid: str) -> list[objects.VirtualInterface]:
        return list(self.call(ctxt, "VirtualInterfaceList", "get_by_instance_uuid", uuid).objects)

    def interfaces_forget(self, ctxt: RequestContext, uuid: str) -> None:
        self.call(ctxt, "VirtualInterface", "delete_by_instance_uuid", uuid)

    # Groups

    def group_of(self, ctxt: RequestContext, uuid: str) -> objects.InstanceGroup:
        """Raises InstanceGroupNotFound."""
        return self.call(ctxt, "InstanceGroup", "get_by_instance_uuid", uuid)

    def group_hosts(self, ctxt: RequestContext, group: objects.InstanceGroup, exclude: list[str]) -> list[str]:
        return list(self.act(ctxt, group, "get_hosts", exclude=exclude))

    def instance_uuids_of_host(self, ctxt: RequestContext, host: str) -> list[str]:
        return list(self.call(ctxt, "InstanceList", "get_uuids_by_host", host))

    # This host

    def service(self, ctxt: RequestContext, host: str, binary: str) -> objects.Service | None:
        return self.call(ctxt, "Service", "get_by_host_and_binary", host, binary)

    def nodes(self, ctxt: RequestContext, uuids: Iterable[str]) -> list[objects.ComputeNode]:
        return list(self.call(ctxt, "ComputeNodeList", "get_all_by_uuids", list(uuids)).objects)

    def nodes_of_host(self, ctxt: RequestContext, host: str) -> list[objects.ComputeNode]:
        """Empty where the host has none."""
        try:
            return list(self.call(ctxt, "ComputeNodeList", "get_all_by_host", host).objects)
        except exceptions.ComputeHostNotFound:
            return []

    def migrations_of_node(self, ctxt: RequestContext, host: str, node: str) -> list[objects.Migration]:
        """Migrations that are under way or failed and touch the node."""
        return list(self.call(ctxt, "MigrationList", "get_in_progress_and_error", host, node).objects)


class RpcStore(Store):
    """Over the bus, to any conductor of the host's cell. One that does not answer, or whose database is away, is asked
    again for a while.
    """

    def __init__(self, bus: Any, host: str, patience: float = 120.0) -> None:
        """`host`: who asks, as conductors are told. `patience`: seconds after which a call that nobody answers fails,
        besides its own timeout.
        """
        self._conductor = ConductorClient(bus)
        self._ping = BaseClient(bus, ConductorClient.API.topic).ping
        self._host = host
        self._patience = patience

    def reach(self, ctxt: RequestContext, patience: float) -> None:
        self._ping(ctxt, "", timeout=patience)

    def call(self, ctxt: RequestContext, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._persist(
            lambda: self._conductor.object_class_action_versions(
                ctxt.sent_by(self._host),
                objname=name,
                objmethod=method,
                object_versions=objects.manifest(name),
                args=args,
                kwargs=kwargs,
            )
        )

    def act(self, ctxt: RequestContext, obj: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = self._persist(
            lambda: self._conductor.object_action(
                ctxt.sent_by(self._host), objinst=obj, objmethod=method, args=args, kwargs=kwargs
            ),
            already=lambda error: self._done_before(ctxt, obj, method, error),
        )
        if answer is _DONE_BEFORE:
            obj.obj_reset_changes()
            return None
        updates, result = answer
        objects.apply_updates(obj, updates)
        return result

    def _persist(self, ask: Callable[[], Any], already: Callable[[Exception], bool] | None = None) -> Any:
        """Ask until somebody answers. What a lost answer had done already is not an error when it is asked again."""
        give_up, lost = clock.monotonic() + self._patience, False
        while True:
            try:
                return ask()
            except (*RPC_LOST, DBConnectionError):
                if clock.monotonic() > give_up:
                    raise
                lost = True
                time.sleep(RETRY_PAUSE)
            except Exception as exc:
                if lost and already is not None and already(exc):
                    return _DONE_BEFORE
                raise

    def _done_before(self, ctxt: RequestContext, obj: Any, method: str, error: Exception) -> bool:
        """Whether the record shows what this save was to write: then the first try had come through."""
        if method == "destroy" and isinstance(error, exceptions.InstanceNotFound):
            return True
        if method != "save" or not isinstance(error, exceptions.UnexpectedTaskStateError):
            return False
        now = self.instance(ctxt, obj.uuid, ())
        wanted = obj.obj_get_changes()
        return all(now.get(name) == wanted[name] for name in ("vm_state", "task_state", "host") if name in wanted)


def message_of(error: BaseException) -> str:
    """What a user may read of an error: our words and the system's without the host's paths, the class of others."""
    if isinstance(error, exceptions.Base64Exception):
        # The path in it is the user's own.
        return error.format_message()
    if isinstance(error, exceptions.NovaException):
        return without_paths(error.format_message())
    if isinstance(error, ServiceError):
        return error.for_users
    if isinstance(error, OSError) and error.strerror:
        return without_paths(error.strerror)
    return type(error).__name__


def _cut(text: str, limit: int = 255) -> str:
    return text.encode()[:limit].decode(errors="ignore")
