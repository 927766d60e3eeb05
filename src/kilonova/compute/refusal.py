"""Methods of the contract that this host does not have: who waits gets an error that it understands, who does not finds
the reason on record, and what the caller prepared for the operation is put back.
"""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from kilonova.clients.placement.client import allocation_body
from kilonova.compute.lanes import then
from kilonova.compute.runner import Operation, Runner, Work
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import compute as table

LOG = logging.getLogger(__name__)

Args = Mapping[str, Any]


def _pre_check(words: str, args: Args) -> Exception:
    return exceptions.MigrationPreCheckError(reason=words)


def _unable(words: str, args: Args) -> Exception:
    return NotImplementedError(words)


def _input(words: str, args: Args) -> Exception:
    return exceptions.InvalidInput(reason=words)


def _interface(words: str, args: Args) -> Exception:
    return exceptions.AttachInterfaceNotSupported(instance_uuid=args["instance"].uuid)


_ANSWERS: Mapping[str, Callable[[str, Args], Exception]] = {
    # A conductor asks the next host.
    **dict.fromkeys(
        ("check_can_live_migrate_destination", "check_can_live_migrate_source", "prep_snapshot_based_resize_at_dest"),
        _pre_check,
    ),
    # An API says 501.
    **dict.fromkeys(
        (
            "get_diagnostics", "get_instance_diagnostics", "get_mks_console", "get_rdp_console", "get_serial_console",
            "get_spice_console", "get_vnc_console", "host_maintenance_mode", "host_power_action", "quiesce_instance",
            "set_admin_password", "trigger_crash_dump", "unquiesce_instance",
        ),
        _unable,
    ),
    # An API says 400.
    "attach_interface": _interface,
    "reserve_block_device_name": _input,
}  # fmt: skip

_IN_A_STATE = frozenset({"set_admin_password"})
"""Calls before which the API takes the task state."""


def refuse(runner: Runner, method: str, ctxt: RequestContext, args: Args) -> concurrent.futures.Future[Any]:
    """What the caller understands, or NotSupported, as the future's error or raised.

    After a cast the server is given back with a fault first.
    """
    LOG.error("%s was asked for, which this service does not have", method)
    instance = args.get("instance")
    declared = table.API.by_name.get(method)
    waits = declared is not None and declared.call and method not in _IN_A_STATE
    if isinstance(instance, objects.Instance) and not waits:
        return then(runner.accept(_operation(method), ctxt, instance, args), lambda: _raise(answer(method, args)))
    raise answer(method, args)


def begun(method: str) -> Operation | None:
    """The refusal that a dead agent did not bring to its end; None where there is no such method."""
    return _operation(method) if any(served.name == method for served in table.API.served) else None


def _operation(method: str) -> Operation:
    return Operation(method, event=f"compute_{method}", perform=_perform)


def _raise(error: Exception) -> NoReturn:
    raise error


def answer(method: str, args: Args) -> Exception:
    """The exception that says so."""
    words = f"This compute service does not support {method}."
    chosen = _ANSWERS.get(method)
    return chosen(words, args) if chosen is not None else exceptions.NotSupported(words)


def _perform(work: Work) -> str:
    method = work.entry.key.method
    for undo in _UNDO.get(method, ()):
        try:
            undo(work)
        except Exception:
            LOG.exception("what was prepared for %s of instance %s is not put back", method, work.instance.uuid)
    raise answer(method, work.args)


def _forget_image(work: Work) -> None:
    """The API made an image to upload to."""
    if image := work.args.get("image_id"):
        work.agent.clients.glance.image_delete(work.ctxt, image)


def _keep_volume(work: Work) -> None:
    """The API announced to Cinder that the volume leaves."""
    volume = work.args.get("volume_id") or work.args["old_volume_id"]
    work.agent.clients.cinder.volume_action(work.ctxt, volume, "os-roll_detaching", {})


def _forget_attachment(work: Work) -> None:
    """The API reserved the volume that was to come."""
    if attachment := work.args.get("new_attachment_id"):
        work.agent.clients.cinder.attachment_delete(work.ctxt, attachment)


def _old_image(work: Work) -> None:
    """The API has put the new image into the record."""
    if (old := work.args.get("orig_image_ref")) is not None:
        work.instance.image_ref = old
        if (properties := work.args.get("orig_sys_metadata")) is not None:
            work.instance.system_metadata = properties
        work.agent.store.save(work.ctxt, work.instance)


def _end_migration(work: Work) -> None:
    migration = work.args.get("migration")
    if migration is not None:
        migration.status = "error"
        work.agent.store.act(work.ctxt.elevated(), migration, "save")


def _old_allocations(work: Work) -> None:
    """The conductor moved the server's allocations to the migration, and claimed this host for the server."""
    migration, placement, ctxt = work.args.get("migration"), work.agent.clients.placement, work.ctxt
    if migration is None:
        return
    before = placement.allocations_get(ctxt, migration.uuid)
    if not before.allocations:
        return
    now = placement.allocations_get(ctxt, work.instance.uuid)
    owner = (before.project_id or "", before.user_id or "")
    placement.allocations_move(
        ctxt,
        {
            work.instance.uuid: allocation_body(before.allocations, *owner, now.generation),
            migration.uuid: allocation_body({}, *owner, before.generation),
        },
    )


_UNDO: Mapping[str, tuple[Callable[[Work], None], ...]] = {
    "snapshot_instance": (_forget_image,),
    "backup_instance": (_forget_image,),
    "shelve_instance": (_forget_image,),
    "detach_volume": (_keep_volume,),
    "swap_volume": (_keep_volume, _forget_attachment),
    "rebuild_instance": (_old_image, _end_migration),
    "prep_resize": (_end_migration, _old_allocations),
    "live_migration": (_end_migration, _old_allocations),
}
"""What a caller prepared before it cast."""
