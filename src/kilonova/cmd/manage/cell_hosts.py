"""`nova-manage cell_v2 discover_hosts|list_hosts|delete_host`: which host is in which cell."""

from __future__ import annotations

from kilonova.cmd.manage.actions import UNFORESEEN, Action, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.db.api import host_mappings
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.cells import Cell, CellDown, UnknownCellError
from kilonova.db.engine import Tx
from kilonova.db.outcomes import DuplicateError


def discover_hosts(session: Session, cell_uuid: str | None, verbose: bool, strict: bool, by_service: bool) -> int:
    def tell(text: str) -> None:
        if verbose:
            session.say(text)

    try:
        cells = [session.cells.cell(cell_uuid)] if cell_uuid else session.cells.all()
    except UnknownCellError:
        session.say(f"There is no cell {cell_uuid}.")
        return 1
    tell(f"{len(cells)} cells.")
    found: list[str] = []
    down = False
    for cell in cells:
        if cell.is_cell0:
            tell("cell0 has no hosts.")
            continue
        try:
            new = session.cells.ask(lambda cell: map_new_hosts(session, cell, by_service=by_service), cell)
        except DuplicateError:
            session.say("ERROR: a host was mapped by another run of this command at the same time; run it once.")
            return 2
        if isinstance(new, CellDown):
            session.complain(f"Cell {cell.name or ''} {cell.uuid} does not answer: {new.reason.splitlines()[0]}")
            down = True
            continue
        tell(f"Cell {cell.name or ''} {cell.uuid}: {len(new)} new hosts{': ' if new else ''}{', '.join(new)}")
        found += new
    if down:
        return UNFORESEEN
    return int(not found) if strict else 0


def map_new_hosts(session: Session, cell: Cell, *, by_service: bool = False) -> list[str]:
    """Map the hosts of a cell that are not mapped yet and return them. Raises DuplicateError in a race."""
    nodes = [] if by_service else cell.database.query(compute_nodes.compute_node_list, mapped_less_than=1)
    reported = cell.database.query(services.service_list, binary="nova-compute") if by_service else nodes
    hosts = dict.fromkeys(one["host"] for one in reported)
    new = session.cells.api.run(_map, list(hosts), cell.id)
    cell.database.run(compute_nodes.compute_node_set_mapped, [node["id"] for node in nodes])
    return new


def _map(tx: Tx, hosts: list[str], cell_id: int) -> list[str]:
    known = {mapping["host"] for mapping in host_mappings.host_mapping_list(tx, hosts=hosts)}
    new = [host for host in hosts if host not in known]
    for host in new:
        host_mappings.host_mapping_create(tx, host, cell_id)
    return new


def list_hosts(session: Session, cell_uuid: str | None, json: bool) -> int:
    cell_id = None
    if cell_uuid:
        try:
            cell_id = session.cells.cell(cell_uuid).id
        except UnknownCellError:
            session.say(f"There is no cell {cell_uuid}.")
            return 1
    mappings = session.cells.api.query(host_mappings.host_mapping_list, cell_id=cell_id)
    rows = [(mapping["cell_name"], mapping["cell_uuid"], mapping["host"]) for mapping in mappings]
    session.table(("Cell Name", "Cell UUID", "Hostname"), sorted(rows, key=lambda row: row[2]), as_json=json)
    return 0


def delete_host(session: Session, cell_uuid: str, host: str) -> int:
    try:
        cell = session.cells.cell(cell_uuid)
    except UnknownCellError:
        session.say(f"There is no cell {cell_uuid}.")
        return 1
    mapping = session.cells.api.query(host_mappings.host_mapping_get, host)
    if mapping is None:
        session.say(f"Host {host} is not mapped.")
        return 2
    if mapping["cell_uuid"] != cell_uuid:
        session.say(f"Host {host} is in cell {mapping['cell_uuid']}.")
        return 3
    if cell.database.query(instances.instance_uuids_by_host, [host])[host]:
        session.say(f"Host {host} has servers.")
        return 4
    cell.database.run(compute_nodes.compute_node_unmap, host)
    session.cells.api.run(host_mappings.host_mapping_delete, host)
    return 0


_OPTIONAL_UUID = argument("--cell_uuid", metavar="<cell_uuid>", help="Only this cell.")

ACTIONS = (
    Action(
        "cell_v2",
        "discover_hosts",
        "Map hosts that have reported in a cell and are not mapped yet.",
        discover_hosts,
        (
            _OPTIONAL_UUID,
            switch("--verbose", help="Tell what was found in each cell."),
            switch("--strict", help="Exit with 1 when there was no new host."),
            switch("--by-service", help="Go by service records, for drivers whose nodes come and go."),
        ),
        {
            0: "done",
            1: "no new host (--strict), or no such cell",
            2: "another run mapped a host at the same time",
        },
    ),
    Action(
        "cell_v2",
        "list_hosts",
        "Show the mapped hosts.",
        list_hosts,
        (_OPTIONAL_UUID, switch("--json", help="As JSON.")),
        {0: "shown", 1: "there is no such cell"},
    ),
    Action(
        "cell_v2",
        "delete_host",
        "Forget a host without servers.",
        delete_host,
        (
            argument("--cell_uuid", metavar="<cell_uuid>", required=True, help="UUID of its cell."),
            argument("--host", metavar="<host>", required=True, help="Name of the host."),
        ),
        {
            0: "forgotten",
            1: "there is no such cell",
            2: "the host is not mapped",
            3: "the host is in another cell",
            4: "the host has servers",
        },
    ),
)
