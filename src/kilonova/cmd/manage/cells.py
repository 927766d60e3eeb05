"""`nova-manage cell_v2 create_cell|list_cells|update_cell|delete_cell`."""

from __future__ import annotations

from typing import Any

from kilonova.base import ids
from kilonova.base.secrets import masked
from kilonova.cmd.manage.actions import Action, argument, switch
from kilonova.cmd.manage.cell_urls import database_or_own, transport_url_or_own
from kilonova.cmd.manage.session import Session
from kilonova.db.api import cell_mappings, host_mappings, instance_mappings
from kilonova.db.cell import compute_nodes, instances
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Tx
from kilonova.db.query import Row


def create_cell(
    session: Session,
    name: str | None,
    database_connection: str | None,
    transport_url: str | None,
    verbose: bool,
    disabled: bool,
) -> int:
    transport = transport_url_or_own(session, transport_url)
    database = database_or_own(session, database_connection) if transport else None
    if transport is None or database is None:
        return 1
    if _taken(session, transport, database):
        return 2
    values = {
        "uuid": ids.new_uuid(),
        "name": name,
        "transport_url": transport,
        "database_connection": database,
        "disabled": disabled,
    }
    session.cells.api.run(cell_mappings.cell_mapping_create, values)
    if verbose:
        session.say(values["uuid"])
    return 0


def list_cells(session: Session, verbose: bool, json: bool) -> int:
    shown = str if verbose else masked
    rows = [
        (
            cell["name"] or "",
            cell["uuid"],
            shown(cell["transport_url"]),
            shown(cell["database_connection"]),
            bool(cell["disabled"]),
        )
        for cell in session.cells.api.query(cell_mappings.cell_mapping_list)
    ]
    titles = ("Name", "UUID", "Transport URL", "Database Connection", "Disabled")
    session.table(titles, sorted(rows, key=lambda row: row[0]), as_json=json)
    return 0


def update_cell(
    session: Session,
    cell_uuid: str,
    name: str | None,
    transport_url: str | None,
    db_connection: str | None,
    disable: bool,
    enable: bool,
) -> int:
    cell = _cell(session, cell_uuid)
    if cell is None:
        return 1
    transport = transport_url_or_own(session, transport_url, required=False)
    database = database_or_own(session, db_connection, required=False)
    if _taken(session, transport, database, but=cell_uuid):
        return 3
    refused = _refusal(session, cell, disable=disable, enable=enable)
    if refused:
        return refused
    wanted = {"name": name, "transport_url": transport, "database_connection": database}
    values: dict[str, Any] = {key: value for key, value in wanted.items() if value}
    if disable or enable:
        values["disabled"] = disable
        if bool(cell["disabled"]) == disable:
            session.say(f"Cell {cell_uuid} is {'disabled' if disable else 'enabled'} already.")
    if not session.cells.api.run(cell_mappings.cell_mapping_update, cell_uuid, values):
        session.say(f"Cell {cell_uuid} was deleted meanwhile.")
        return 2
    return 0


def delete_cell(session: Session, cell_uuid: str, force: bool) -> int:
    cell = _cell(session, cell_uuid)
    if cell is None:
        return 1
    hosts, mapped = session.cells.api.query(cell_mappings.cell_mapping_usage, cell["id"])
    if hosts and not force:
        session.say(f"Cell {cell_uuid} has {hosts} hosts.")
        return 2
    database = session.cells.cell(cell_uuid).database
    if mapped:
        if database.query(instances.instance_count, {"deleted": False, "soft_deleted": True}):
            session.say(f"Cell {cell_uuid} has servers.")
            return 3
        if not force:
            session.say(f"Cell {cell_uuid} has no servers, but {mapped} deleted ones are still mapped to it.")
            session.say("`nova-manage db archive_deleted_rows` removes their mappings.")
            return 4
    session.cells.api.run(_delete, cell)
    if hosts:
        database.run(compute_nodes.compute_node_unmap)
    return 0


def _delete(tx: Tx, cell: Row) -> None:
    instance_mappings.instance_mapping_delete_by_cell(tx, cell["id"])
    host_mappings.host_mapping_delete_by_cell(tx, cell["id"])
    cell_mappings.cell_mapping_delete(tx, cell["uuid"])


def _cell(session: Session, uuid: str) -> Row | None:
    cell = session.cells.api.query(cell_mappings.cell_mapping_get, uuid)
    if cell is None:
        session.say(f"There is no cell {uuid}.")
    return cell


def _taken(session: Session, transport: str | None, database: str | None, but: str | None = None) -> bool:
    """Whether another cell has one of these URLs; says which."""
    for cell in session.cells.api.query(cell_mappings.cell_mapping_list):
        if cell["uuid"] != but and (cell["transport_url"] == transport or cell["database_connection"] == database):
            # kolla-ansible goes on when it reads "already exists".
            session.say(f"A cell with this transport URL or this database already exists: {cell['uuid']}.")
            return True
    return False


def _refusal(session: Session, cell: Row, *, disable: bool, enable: bool) -> int:
    if disable and enable:
        session.say("A cell cannot be enabled and disabled at once.")
        return 4
    if (disable or enable) and cell["uuid"] == CELL0_UUID:
        session.say("cell0 takes no new servers; it can be neither disabled nor enabled.")
        return 5
    return 0


_UUID = argument("--cell_uuid", metavar="<cell_uuid>", required=True, help="UUID of the cell.")
_NAME = argument("--name", metavar="<cell_name>", help="Name of the cell.")
_TRANSPORT = argument("--transport-url", metavar="<transport_url>", help="URL of the cell's message bus.")
_DATABASE = "--database_connection"

ACTIONS = (
    Action(
        "cell_v2",
        "create_cell",
        "Add a cell; URLs that are not given are taken from the configuration.",
        create_cell,
        (
            _NAME,
            argument(_DATABASE, metavar="<database_connection>", help="URL of the cell's database."),
            _TRANSPORT,
            switch("--verbose", help="Show the UUID of the new cell."),
            switch("--disabled", help="New servers are not to be put into the cell yet."),
        ),
        {0: "the cell is there", 1: "a URL is missing", 2: "another cell has one of the URLs"},
    ),
    Action(
        "cell_v2",
        "list_cells",
        "Show the cells.",
        list_cells,
        (switch("--verbose", help="Show passwords too."), switch("--json", help="As JSON.")),
        {0: "shown"},
    ),
    Action(
        "cell_v2",
        "update_cell",
        "Change a cell. Services see new URLs after a restart; URLs that are not given become the configuration's.",
        update_cell,
        (
            _UUID,
            _NAME,
            _TRANSPORT,
            argument(
                _DATABASE, dest="db_connection", metavar="<database_connection>", help="URL of the cell's database."
            ),
            switch("--disable", help="Put no new servers into the cell."),
            switch("--enable", help="Put new servers into the cell again."),
        ),
        {
            0: "changed",
            1: "there is no such cell",
            2: "the cell could not be changed",
            3: "another cell has one of the URLs",
            4: "both --enable and --disable",
            5: "cell0 cannot be disabled",
        },
    ),
    Action(
        "cell_v2",
        "delete_cell",
        "Remove a cell without servers.",
        delete_cell,
        (switch("--force", help="Remove the mappings of its hosts and deleted servers too."), _UUID),
        {
            0: "removed",
            1: "there is no such cell",
            2: "it has hosts",
            3: "it has servers",
            4: "deleted servers are still mapped to it",
        },
    ),
)
