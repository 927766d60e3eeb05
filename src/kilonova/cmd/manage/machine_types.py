"""`nova-manage libvirt ...`: the machine types that guests on libvirt were made with, as their records have them."""

from __future__ import annotations

import re
from typing import NamedTuple

from kilonova.cmd.manage import servers
from kilonova.cmd.manage.actions import Action, Refused, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.contract.states import VM
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, CellDown, UnknownCellError
from kilonova.db.engine import Tx

PROPERTY = "hw_machine_type"

_KNOWN = re.compile(
    r"(?P<alias>(?:pc|q35|virt|s390-ccw-virtio)$)"
    r"|(?P<red_hat>pc-i440fx|pc-q35)-rhel(?=\d+\.\d+\.\d+)"
    r"|(?P<upstream>pc|pc-i440fx|pc-q35|virt|s390-ccw-virtio)-(?=\d+\.\d+)"
)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?$")


class Kind(NamedTuple):
    """A family of machine types: an alias is one of its own, and so is each vendor's versions of a machine."""

    vendor: str | None
    machine: str


def kind_of(machine_type: str) -> Kind | None:
    """The family of a machine type; None for one that libvirt's guests here do not have."""
    found = _KNOWN.match(machine_type)
    return None if found is None else Kind(found.lastgroup, found[str(found.lastgroup)])


def is_step_forward(present: str, new: str) -> bool:
    """Whether a guest of one machine type may become one of another: of the same family and not of an older version.

    A guest of another family would find other hardware; one of an older version would miss some.
    """
    kind = kind_of(present)
    if kind is not None and kind_of(new) != kind:
        return False
    before, after = _version(present), _version(new)
    return before is None or after is None or after >= before


def _version(machine_type: str) -> tuple[int, ...] | None:
    found = _VERSION.search(machine_type)
    return tuple(int(part) for part in found[0].split(".")) if found else None


def get_machine_type(session: Session, instance_uuid: str) -> int:
    server = servers.find(session, instance_uuid, missing=2, parts=("system_metadata",))
    found = servers.image_property(server, PROPERTY)
    session.say(found or f"No machine type is recorded for server {instance_uuid}.")
    return 0 if found else 3


def update_machine_type(session: Session, instance_uuid: str, machine_type: str, force: bool) -> int:
    server = servers.find(session, instance_uuid, missing=2)
    if force:
        session.say("--force: neither the server's state nor the new machine type is looked at.")
    before = server.cell.database.run(_replace, instance_uuid, machine_type, force)
    session.say(f"Server {instance_uuid}: machine type {machine_type} is recorded (before: {before or 'none'}).")
    return 0


def _replace(tx: Tx, uuid: str, new: str, force: bool) -> str | None:
    """Record a machine type; the one before. Raises Refused."""
    present = servers.recorded(tx, uuid).get(servers.PROPERTY + PROPERTY)
    if present == new:
        return present
    servers.hold(tx, uuid, missing=2, states=None if force else servers.AT_REST, wrong_state=3)
    if not force and kind_of(new) is None:
        raise Refused(5, f"{new} is no machine type that is supported.")
    if not force and present and not is_step_forward(present, new):
        raise Refused(4, f"{new} is of another family than the recorded {present}, or older; --force does it anyway.")
    servers.record(tx, uuid, {PROPERTY: new})
    return present


def list_unset_machine_type(session: Session, cell_uuid: str | None) -> int:
    try:
        cells = [session.cells.cell(cell_uuid)] if cell_uuid else session.cells.all(include_cell0=False)
    except UnknownCellError:
        session.say(f"There is no cell {cell_uuid}.")
        return 2
    answers = session.cells.scatter(without_machine_type, cells)
    found: list[str] = []
    for answer in answers.values():
        if isinstance(answer, CellDown):
            raise Refused(1, f"Cell {answer.uuid} does not answer: {answer.reason}")
        found += answer
    session.say("\n".join(found) or "Every server has its machine type recorded.")
    return 3 if found else 0


def without_machine_type(cell: Cell, limit: int | None = None) -> list[str]:
    """Servers of a cell without a recorded machine type; those on their way to their host get it there."""
    key = servers.PROPERTY + PROPERTY
    return cell.database.query(
        instances.instance_uuids_without_system_metadata, key, limit, but_in_states=(VM.BUILDING,)
    )


_UUID = argument("instance_uuid", metavar="<instance_uuid>", help="UUID of the server.")

ACTIONS = (
    Action(
        "libvirt",
        "get_machine_type",
        "Show the machine type that is recorded with a server.",
        get_machine_type,
        (_UUID,),
        {0: "shown", 1: "something unforeseen happened", 2: "there is no such server", 3: "none is recorded"},
        unforeseen=1,
    ),
    Action(
        "libvirt",
        "update_machine_type",
        "Record the machine type with which a server is defined at its next start. It has to be stopped or shelved.",
        update_machine_type,
        (
            _UUID,
            argument("machine_type", metavar="<machine_type>", help="The new machine type, as pc-q35-7.2."),
            switch("--force", help="Whatever state the server is in and whatever machine type is given."),
        ),
        {
            0: "recorded",
            1: "something unforeseen happened",
            2: "there is no such server",
            3: "the server is neither stopped nor shelved",
            4: "the machine type is of another family than the one before, or older",
            5: "the machine type is not supported",
        },
        unforeseen=1,
    ),
    Action(
        "libvirt",
        "list_unset_machine_type",
        "List the servers without a recorded machine type.",
        list_unset_machine_type,
        (argument("--cell-uuid", metavar="<cell_uuid>", help="Only this cell."),),
        {
            0: "there is none",
            1: "something unforeseen happened",
            2: "there is no such cell",
            3: "there are such servers",
        },
        unforeseen=1,
    ),
)
