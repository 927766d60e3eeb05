"""The record of a server in its cell: made, buried, failed, erased. Each is one transaction and may be repeated."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.conductor.failures import Failure, record_fault
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import VM, Action, Task
from kilonova.db.failures import DatabaseError, is_refused
from kilonova.db.objects import action as actions
from kilonova.db.objects import bdm as bdms
from kilonova.db.objects import hydrate
from kilonova.db.objects import instance as instances
from kilonova.db.objects import tag as tag_rows
from kilonova.db.outcomes import DuplicateError

LOG = logging.getLogger(__name__)

FOR_HOSTS = (
    *instances.DEFAULT, "device_metadata", "keypairs", "migration_context", "numa_topology", "pci_devices",
    "pci_requests", "resources", "tags", "trusted_certs", "vcpu_model",
)  # fmt: skip
"""What of an instance goes to a compute host with a build."""

_OF_THE_ROW = frozenset({"id", "created_at", "updated_at", "deleted_at", "deleted"})


class UnwritableError(exceptions.NovaException):
    """The cell's database does not take the record of a server."""

    msg_fmt = "The database of the cell does not take what was asked for: text of a kind or length that it cannot hold."


@contextlib.contextmanager
def written() -> Iterator[None]:
    """Of a record that the database refuses whatever it is told again, raise UnwritableError."""
    try:
        yield
    except (DuplicateError, ValueError, OverflowError) as exc:
        raise UnwritableError() from exc
    except DatabaseError as exc:
        if not is_refused(exc):
            raise
        raise UnwritableError() from exc


BURIAL = "conductor_schedule_and_build_instances"
"""Event of the create action when the conductor gives a server up."""


def server_of(build_request: dict[str, Any]) -> objects.Instance:
    """The instance that a build request asks for, not stored yet: all that was asked counts as changed."""
    asked = hydrate.parse(objects.Instance, build_request["instance"])
    assert asked is not None
    made = objects.Instance()
    for name in objects.Instance.fields:
        if name not in _OF_THE_ROW and asked.obj_attr_is_set(name):
            setattr(made, name, getattr(asked, name))
    made.uuid = build_request["instance_uuid"]
    return made


def look(tx: Any, uuid: str, expected: Sequence[str] = ()) -> objects.Instance | None:
    """The living instance, or None."""
    try:
        return instances.load(tx, uuid, expected)
    except exceptions.InstanceNotFound:
        return None


def look_back(tx: Any, uuid: str) -> objects.Instance | None:
    """The instance with its network-info cache and system metadata, deleted or not."""
    try:
        return instances.load(tx, uuid, ("info_cache", "system_metadata"), read_deleted=True)
    except exceptions.InstanceNotFound:
        return None


def create(
    tx: Any,
    ctxt: RequestContext,
    server: objects.Instance,
    zone: str | None,
    devices: objects.BlockDeviceMappingList | None,
    tags: objects.TagList | None,
) -> None:
    """The server's record with its devices, tags and the action that explains it; nothing if it is there."""
    if look(tx, server.uuid) is not None:
        return
    made = copy.deepcopy(server)
    made.availability_zone = zone
    instances.create(tx, ctxt, made)
    actions.action_start(tx, ctxt, made.uuid, Action.CREATE, want_result=False)
    _add_parts(tx, ctxt, made, devices, tags)


def _add_parts(
    tx: Any,
    ctxt: RequestContext,
    server: objects.Instance,
    devices: objects.BlockDeviceMappingList | None,
    tags: objects.TagList | None,
) -> None:
    for asked in devices.objects if devices is not None else ():
        device = copy.deepcopy(asked)
        device.volume_size = volume_size(server.flavor, device)
        device.instance_uuid = server.uuid
        bdms.create(tx, ctxt, device)
    if tags is not None and tags.objects:
        tag_rows.put_all(tx, server.uuid, [tag.tag for tag in tags.objects])


def volume_size(flavor: objects.Flavor, device: objects.BlockDeviceMapping) -> int | None:
    """GiB of a device: swap (MiB) and ephemeral disks that name no size have the flavor's."""
    size: int | None = device.get("volume_size")
    local_blank = device.get("source_type") == "blank" and device.get("destination_type") == "local"
    if size is None and local_blank:
        return flavor.get("swap", 0) if device.get("guest_format") == "swap" else flavor.get("ephemeral_gb", 0)
    return size


def bury(
    tx: Any,
    ctxt: RequestContext,
    server: objects.Instance,
    devices: objects.BlockDeviceMappingList | None,
    tags: objects.TagList | None,
    failure: Failure,
    host: str,
) -> None:
    """The record, in cell0, of a server that found no host: ERROR, the reason as its fault, a failed create action."""
    if look(tx, server.uuid) is not None:
        return
    made = copy.deepcopy(server)
    made.vm_state, made.task_state = VM.ERROR, None
    instances.create(tx, ctxt, made)
    actions.action_start(tx, ctxt, made.uuid, Action.CREATE, want_result=False)
    _failed_event(tx, ctxt, made.uuid, failure, host)
    _add_parts(tx, ctxt, made, devices, tags)
    record_fault(tx, ctxt, made.uuid, failure, None)


def fail(tx: Any, ctxt: RequestContext, uuid: str, failure: Failure, host: str) -> bool:
    """BUILDING to ERROR with the reason; False when the server is no longer building, or is being deleted."""
    server = look(tx, uuid)
    if server is None or server.vm_state != VM.BUILDING or server.task_state == Task.DELETING:
        return False
    seen, of_host = server.task_state, server.host
    server.vm_state, server.task_state = VM.ERROR, None
    # A host that comes back finds by this that the guest is not its any more, and removes it.
    server.host = server.node = server.compute_id = server.launched_on = None
    try:
        instances.save(tx, ctxt, server, expected_vm_state=[VM.BUILDING], expected_task_state=[seen])
    except (exceptions.InstanceUpdateConflict, exceptions.InstanceNotFound):
        return False
    record_fault(tx, ctxt, uuid, failure, of_host)
    _failed_event(tx, ctxt, uuid, failure, host)
    return True


def revoke(tx: Any, ctxt: RequestContext, uuid: str, failure: Failure, host: str) -> bool:
    """After a cast to a host that may be carried out yet: make the server ERROR, so that no host goes on with it.

    False when the server is not to be cleaned up after: it became ACTIVE all the same, or its deletion is under way.
    """
    fail(tx, ctxt, uuid, failure, host)
    server = look(tx, uuid)
    return server is None or (server.vm_state == VM.ERROR and server.task_state is None)


def give_up_deleting(tx: Any, ctxt: RequestContext, uuid: str, failure: Failure) -> bool:
    """A server that could not be deleted goes to ERROR with the reason, so that its user can try again."""
    server = look(tx, uuid)
    if server is None or server.task_state not in (Task.DELETING, Task.SOFT_DELETING):
        return False
    seen = server.task_state
    server.vm_state, server.task_state = VM.ERROR, None
    try:
        instances.save(tx, ctxt, server, expected_task_state=[seen])
    except (exceptions.InstanceUpdateConflict, exceptions.InstanceNotFound):
        return False
    record_fault(tx, ctxt, uuid, failure, server.host)
    return True


def _failed_event(tx: Any, ctxt: RequestContext, uuid: str, failure: Failure, host: str) -> None:
    try:
        actions.event_start(tx, ctxt, uuid, BURIAL, want_result=False, host=host)
        actions.event_finish_with_failure(
            tx, ctxt, uuid, BURIAL, exc_val=failure["message"], exc_tb=failure["details"], want_result=False
        )
    except exceptions.InstanceActionNotFound:
        LOG.info("server %s has no action of request %s to note its failure in", uuid, ctxt.request_id)


def erase(tx: Any, ctxt: RequestContext, uuid: str) -> bool:
    """Soft-delete the server's record whatever host it is on; False when it is gone."""
    server = look(tx, uuid)
    if server is None:
        return False
    server.terminated_at = clock.now()
    server.vm_state, server.task_state, server.power_state = VM.DELETED, None, 0
    instances.save(tx, ctxt, server)
    instances.destroy(tx, ctxt, server)
    return True


def move_zone(tx: Any, ctxt: RequestContext, uuid: str, zone: str | None) -> bool:
    """Note the availability zone of the next host, while the server waits for it; False when it does not any more."""
    server = look(tx, uuid)
    if server is None or not waits_for_host(server):
        return False
    if server.availability_zone != zone:
        server.availability_zone = zone
        try:
            instances.save(tx, ctxt, server, expected_vm_state=[VM.BUILDING], expected_task_state=[server.task_state])
        except (exceptions.InstanceUpdateConflict, exceptions.InstanceNotFound):
            return False
    return True


def waits_for_host(server: objects.Instance) -> bool:
    """Whether the server is to be built and no host has it."""
    return server.vm_state == VM.BUILDING and server.host is None and server.task_state in (Task.SCHEDULING, None)


def for_host(tx: Any, uuid: str) -> objects.Instance | None:
    """The whole of the living instance, as a host needs it."""
    return look(tx, uuid, FOR_HOSTS)
