"""`nova-manage placement heal_allocations`: servers hold in Placement what they use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from kilonova.cmd.manage.actions import Action, Refused, argument, positive, switch
from kilonova.cmd.manage.heal_ports import Unhealable
from kilonova.cmd.manage.healing import BATCH, Healer, Server, servers
from kilonova.cmd.manage.session import Session
from kilonova.db.api import instance_mappings
from kilonova.db.cells import Cell, CellDown, UnknownCellError

HEALED, MORE, NOTHING, INVALID, LOST = 0, 1, 4, 127, 255


@dataclasses.dataclass
class Tally:
    """How far a run has come. `trouble` is the exit code of the first server or cell that could not be helped."""

    left: int | None
    healed: int = 0
    trouble: int | None = None

    @property
    def full(self) -> bool:
        return self.left == 0

    def add(self) -> None:
        self.healed += 1
        if self.left is not None:
            self.left -= 1

    def fail(self, code: int) -> None:
        if self.trouble is None:
            self.trouble = code

    def exit_code(self, *, bounded: bool) -> int:
        if self.trouble is not None:
            return self.trouble
        if self.full and bounded:
            return MORE
        return HEALED if self.healed else NOTHING


def heal_allocations(
    session: Session,
    max_count: str | None,
    verbose: bool,
    dry_run: bool,
    instance_uuid: str | None,
    skip_port_allocations: bool,
    cell_uuid: str | None,
    force: bool,
) -> int:
    def tell(text: str) -> None:
        if verbose:
            session.say(text)

    most = _bound(max_count, instance_uuid, cell_uuid, force=force)
    cells = _cells(session, instance_uuid, cell_uuid, tell)
    tally = Tally(most)
    for cell in cells:
        if tally.full:
            break
        tell(f"Cell {cell.name or ''} {cell.uuid}.")
        healer = Healer(session, cell, tell, dry_run=dry_run, force=force, ports=not skip_port_allocations)
        run = _Run(session, healer, tally, instance_uuid)
        answer = session.cells.ask(run.cell, cell)
        if isinstance(answer, CellDown):
            session.say(f"Cell {cell.uuid} does not answer: {answer.reason}")
            tally.fail(LOST)
    tell(f"Healed servers: {tally.healed}.")
    return tally.exit_code(bounded=instance_uuid is None)


@dataclasses.dataclass(frozen=True)
class _Run:
    session: Session
    healer: Healer
    tally: Tally
    uuid: str | None

    def cell(self, cell: Cell) -> None:
        """Heal the cell's servers batch by batch, oldest first, until the tally is full."""
        marker = None
        while batch := cell.database.query(servers, self.uuid, BATCH, marker):
            self.batch(batch)
            if self.tally.full or self.uuid is not None:
                return
            marker = batch[-1].uuid

    def batch(self, batch: Sequence[Server]) -> None:
        ports = self.healer.ports_of(batch)
        for server in batch:
            if self.tally.full:
                return
            self.server(server, ports.get(server.uuid, ()))

    def server(self, server: Server, ports: Sequence[Any]) -> None:
        try:
            if self.healer.heal(server, ports):
                self.tally.add()
        except Unhealable as exc:
            self.session.say(f"Server {server.uuid} cannot be healed. {exc}")
            self.tally.fail(exc.code)


def _bound(max_count: str | None, instance_uuid: str | None, cell_uuid: str | None, *, force: bool) -> int | None:
    """How many servers at most; None for all. Raises Refused."""
    if instance_uuid and cell_uuid:
        raise Refused(INVALID, "--instance and --cell exclude one another.")
    if force and not instance_uuid:
        raise Refused(INVALID, "--force needs --instance: it replaces what one server holds.")
    if instance_uuid or max_count is None:
        return None
    return positive(max_count, wrong=INVALID)


def _cells(
    session: Session, instance_uuid: str | None, cell_uuid: str | None, tell: Callable[[str], object]
) -> list[Cell]:
    """The cells to go through; cell0 has no servers on hosts. Raises Refused."""
    try:
        if instance_uuid:
            found = _cell_of(session, instance_uuid, tell)
        else:
            found = [session.cells.cell(cell_uuid)] if cell_uuid else session.cells.all()
    except UnknownCellError:
        raise Refused(INVALID, f"There is no cell {cell_uuid}.") from None
    return [cell for cell in found if not cell.is_cell0]


def _cell_of(session: Session, uuid: str, tell: Callable[[str], object]) -> list[Cell]:
    mapping = session.cells.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is None:
        raise Refused(INVALID, f"Server {uuid} is not mapped to a cell: `nova-manage cell_v2 map_instances`.")
    if mapping["cell_uuid"] is None:
        tell(f"Server {uuid} is still being built; it is in no cell yet.")
        return []
    return [session.cells.cell(mapping["cell_uuid"])]


ACTIONS = (
    Action(
        "placement",
        "heal_allocations",
        "Let servers hold in Placement what they use: allocations that are missing, that carry another project or "
        "user, or that lack what ports ask for.\nServers that are busy or on no host are passed over; a server that "
        "cannot be healed does not stop the others.\nExit code 8: a server has virtual GPUs or accelerators, which "
        "only its host can tell.",
        heal_allocations,
        (
            argument("--max-count", metavar="<max_count>", help="Stop after so many healed servers. Default: all."),
            switch("--verbose", help="Tell what is done, server by server."),
            switch("--dry-run", help="With --verbose show what would be written; write nothing. Exits with 4."),
            argument(
                "--instance", dest="instance_uuid", metavar="<instance_uuid>", help="UUID of the only server to heal."
            ),
            switch("--skip-port-allocations", help="Do not ask Neutron for ports that want bandwidth."),
            argument("--cell", dest="cell_uuid", metavar="<cell_uuid>", help="UUID of the only cell to go through."),
            switch("--force", help="Replace what the server of --instance holds, be it right or wrong."),
        ),
        {
            0: "servers were healed",
            1: "--max-count was reached; run it again",
            2: "a server's compute node is not in the database",
            3: "allocations could not be written",
            4: "nothing was written",
            5: "Neutron does not show the ports",
            6: "Neutron does not change a port; nothing of it was left behind",
            7: "Neutron does not change ports back: remove their `allocation` by hand",
            127: "the arguments are wrong",
            255: "a cell does not answer, or something unforeseen happened",
        },
    ),
)
