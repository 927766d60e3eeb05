"""One server on the command line: where it is, and what its record says of the image that it was made from."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kilonova.cmd.manage.actions import Refused
from kilonova.cmd.manage.session import Session
from kilonova.contract.states import VM
from kilonova.db.api import instance_mappings
from kilonova.db.cell import instances
from kilonova.db.cells import Cell
from kilonova.db.engine import Tx
from kilonova.db.objects import pairs
from kilonova.db.objects.instance import PAIRS
from kilonova.db.query import Row

PROPERTY = "image_"
"""What image properties are called among a server's system metadata."""

AT_REST = (VM.STOPPED, VM.SHELVED, VM.SHELVED_OFFLOADED)
"""States in which what a guest is made of may change: it is defined anew before it runs again."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A living server: its cell, and its row there."""

    cell: Cell
    row: Row


def find(session: Session, uuid: str, *, missing: int, parts: Iterable[str] = ()) -> Server:
    """The server with these parts of its record. Raises Refused with the code `missing`."""
    mapping = session.cells.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is None:
        raise Refused(missing, f"Server {uuid} is not mapped to a cell, or does not exist.")
    if mapping["cell_uuid"] is None:
        raise Refused(missing, f"Server {uuid} is in no cell yet.")
    cell = session.cells.cell(mapping["cell_uuid"])
    row = cell.database.query(instances.instance_get, uuid, parts)
    if row is None:
        raise Refused(missing, f"There is no server {uuid} in its cell {cell.name or cell.uuid}.")
    return Server(cell, row)


def image_property(server: Server, name: str) -> str | None:
    """An image property as it is recorded with a server that was read with its system metadata."""
    value: str | None = server.row["system_metadata"].get(PROPERTY + name)
    return value


def hold(tx: Tx, uuid: str, *, missing: int, states: Collection[str] | None, wrong_state: int) -> None:
    """Keep others from changing the server in this transaction. Raises Refused unless it is in one of these states."""
    held = instances.instance_hold(tx, uuid, ("vm_state",))
    if held is None:
        raise Refused(missing, f"Server {uuid} was deleted meanwhile.")
    if states is not None:
        in_state({"uuid": uuid, **held}, states, wrong_state=wrong_state)


def in_state(row: Mapping[str, Any], states: Collection[str], *, wrong_state: int) -> None:
    """Raises Refused unless the server is in one of these states."""
    if row["vm_state"] not in states:
        wanted = ", ".join(states)
        raise Refused(wrong_state, f"Server {row['uuid']} is {row['vm_state']}; it has to be one of: {wanted}.")


def recorded(tx: Tx, uuid: str) -> dict[str, str]:
    """The server's system metadata."""
    return pairs.read(tx, PAIRS["system_metadata"], [uuid]).get(uuid, {})


def record(tx: Tx, uuid: str, properties: Mapping[str, str]) -> None:
    """Write image properties into the server's record; the others stay."""
    new = {PROPERTY + name: value for name, value in properties.items()}
    pairs.replace(tx, PAIRS["system_metadata"], uuid, recorded(tx, uuid) | new)
