"""`nova-manage cell_v2 map_instances|verify_instance`: which server is in which cell."""

from __future__ import annotations

from kilonova.cmd.manage.actions import Action, argument, positive, switch
from kilonova.cmd.manage.session import Session
from kilonova.db.api import instance_mappings
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, UnknownCellError
from kilonova.db.engine import Tx
from kilonova.db.query import Row

BATCH = 50
MARKER_PROJECT = "INSTANCE_MIGRATION_MARKER"
"""Where a run that did not finish is remembered: a mapping of this project, whose uuid has blanks for hyphens."""


def map_instances(session: Session, cell_uuid: str, max_count: str | None, reset_marker: bool) -> int:
    count = BATCH if max_count is None else positive(max_count, wrong=127)
    try:
        cell = session.cells.cell(cell_uuid)
    except UnknownCellError:
        session.say(f"There is no cell {cell_uuid}.")
        return 1
    marker = session.cells.api.run(_take_marker)
    if reset_marker:
        marker = None
    while True:
        marker = _map_batch(session, cell, count, marker)
        if marker is None:
            return 0
        if max_count is not None:
            session.cells.api.run(_leave_marker, marker)
            return 1


def verify_instance(session: Session, uuid: str, quiet: bool) -> int:
    code, text = _verdict(session, uuid)
    if not quiet:
        session.say(text)
    return code


def _verdict(session: Session, uuid: str) -> tuple[int, str]:
    mapping = session.cells.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is None:
        return 1, f"Server {uuid} is not mapped to a cell, or does not exist."
    if mapping["cell_uuid"] is None:
        return 2, f"Server {uuid} is in no cell yet."
    cell = session.cells.cell(mapping["cell_uuid"])
    found = cell.database.query(instances.instance_get, uuid, deleted_too=True, columns=("uuid", "deleted"))
    if found is None:
        return 4, f"Server {uuid} has been archived, but its mapping is still there."
    if found["deleted"]:
        return 3, f"Server {uuid} is deleted; `nova-manage db archive_deleted_rows` removes its mapping."
    return 0, f"Server {uuid} is in cell {cell.name} ({cell.uuid})."


def _map_batch(session: Session, cell: Cell, count: int, marker: str | None) -> str | None:
    """Map up to `count` servers of the cell after the marker, oldest first; the new marker, None at the end."""
    found = cell.database.query(
        instances.instance_list,
        {},
        (("created_at", "asc"),),
        count,
        marker,
        columns=("uuid", "project_id", "user_id"),
    )
    session.cells.api.run(_map, found, cell.id)
    return found[-1]["uuid"] if len(found) == count else None


def _map(tx: Tx, found: list[Row], cell_id: int) -> None:
    uuids = [row["uuid"] for row in found]
    known = {mapping["instance_uuid"] for mapping in instance_mappings.instance_mapping_list(tx, uuids)}
    new = [
        {"instance_uuid": row["uuid"], "project_id": row["project_id"], "user_id": row["user_id"], "cell_id": cell_id}
        for row in found
        if row["uuid"] not in known
    ]
    instance_mappings.instance_mapping_create_many(tx, new)


def _take_marker(tx: Tx) -> str | None:
    marker = None
    for mapping in instance_mappings.instance_mapping_list_by_project(tx, MARKER_PROJECT):
        marker = mapping["instance_uuid"].replace(" ", "-")
        instance_mappings.instance_mapping_delete(tx, mapping["instance_uuid"])
    return marker


def _leave_marker(tx: Tx, marker: str) -> None:
    values = {
        "instance_uuid": marker.replace("-", " "),
        "project_id": MARKER_PROJECT,
        "user_id": MARKER_PROJECT,
        "cell_id": None,
    }
    instance_mappings.instance_mapping_create(tx, values)


ACTIONS = (
    Action(
        "cell_v2",
        "map_instances",
        "Map the servers in a cell's database that are not mapped yet, oldest first.",
        map_instances,
        (
            argument("--cell_uuid", metavar="<cell_uuid>", required=True, help="UUID of the cell."),
            argument("--max-count", metavar="<max_count>", help="Stop after so many; the next run goes on from there."),
            switch("--reset", dest="reset_marker", help="Begin at the first server again."),
        ),
        {
            0: "all are mapped",
            1: "there are more: run it again; or no such cell",
            127: "--max-count is no number",
            255: "something unforeseen happened",
        },
    ),
    Action(
        "cell_v2",
        "verify_instance",
        "Tell which cell a server is in.",
        verify_instance,
        (
            argument("--uuid", metavar="<instance_uuid>", required=True, help="UUID of the server."),
            switch("--quiet", help="Print nothing; the exit code tells."),
        ),
        {
            0: "it is in a cell",
            1: "it is not mapped",
            2: "it is in no cell yet",
            3: "it is deleted",
            4: "it is archived, the mapping is left",
        },
    ),
)
