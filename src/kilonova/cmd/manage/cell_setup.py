"""`nova-manage cell_v2 simple_cell_setup|map_cell0|map_cell_and_hosts`: a first cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.base import ids
from kilonova.cmd.manage import cell_instances
from kilonova.cmd.manage.actions import Action, argument, switch
from kilonova.cmd.manage.cell_urls import transport_url_or_own
from kilonova.cmd.manage.session import Session
from kilonova.db import urls
from kilonova.db.api import cell_mappings, host_mappings
from kilonova.db.cell import compute_nodes
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import DatabaseError, Tx
from kilonova.db.migrations import sync
from kilonova.db.outcomes import DuplicateError

CELL0_TRANSPORT = "none:///"
"""Nothing listens in cell0."""

THERE = "Cell0 is already setup"
"""kolla-ansible looks for these words, to tell whether it changed something."""


def map_cell0(session: Session, database_connection: str | None) -> int:
    url = database_connection or urls.with_suffix(session.conf.database.connection, "_cell0")
    values = {
        "uuid": CELL0_UUID,
        "name": "cell0",
        "transport_url": CELL0_TRANSPORT,
        "database_connection": url,
    }
    try:
        session.cells.api.run(cell_mappings.cell_mapping_create, values)
    except DuplicateError:
        session.say(THERE)
    return 0


def simple_cell_setup(session: Session, transport_url: str | None) -> int:
    url = transport_url_or_own(session, transport_url)
    if url is None:
        return 1
    map_cell0(session, None)
    try:
        sync.sync_main(session.cells.cell0.database)
    except (sync.MigrationError, DatabaseError) as exc:
        session.say(f"The database of cell0 cannot be brought up to date: {exc}")
    uuid = _map(session, url, None, verbose=False)
    if uuid is None:
        return 1
    cell_instances.map_instances(session, uuid, None, False)
    return 0


def map_cell_and_hosts(session: Session, transport_url: str | None, name: str | None, verbose: bool) -> int:
    url = transport_url_or_own(session, transport_url)
    if url is None:
        return 1
    _map(session, url, name, verbose=verbose)
    return 0


def _map(session: Session, transport_url: str, name: str | None, *, verbose: bool) -> str | None:
    """Map the own cell (unless a host of it is mapped already) and its hosts; its uuid, or None without hosts."""
    nodes = session.cells.own.query(compute_nodes.compute_node_list)
    if not nodes:
        session.say("No compute host has reported yet, so there is nothing to map.")
        return None
    hosts = {node["host"] for node in nodes}
    mapped = session.cells.api.query(host_mappings.host_mapping_list, hosts=hosts)
    uuid = mapped[-1]["cell_uuid"] if mapped else None
    if verbose:
        for mapping in mapped:
            session.say(f"Host {mapping['host']} is mapped to cell {mapping['cell_uuid']} already.")
    missing = hosts - {mapping["host"] for mapping in mapped}
    if not missing:
        session.say("All hosts are mapped already.")
        return uuid
    connection = session.conf.database.connection
    values = {"name": name, "transport_url": transport_url, "database_connection": connection}
    uuid = session.cells.api.run(_map_hosts, uuid, values, missing)
    if verbose:
        session.say(uuid)
    return uuid


def _map_hosts(tx: Tx, uuid: str | None, values: Mapping[str, Any], hosts: set[str]) -> str:
    """Map the hosts to a cell that there is, or to one that is made of these values."""
    cell = cell_mappings.cell_mapping_get(tx, uuid) if uuid else None
    if cell is None:
        cell = cell_mappings.cell_mapping_create(tx, {"uuid": ids.new_uuid(), **values})
    for host in sorted(hosts):
        host_mappings.host_mapping_create(tx, host, cell["id"])
    return str(cell["uuid"])


_TRANSPORT = argument("--transport-url", metavar="<transport_url>", help="URL of the cell's message bus.")

ACTIONS = (
    Action(
        "cell_v2",
        "simple_cell_setup",
        "Set up cell0 and one cell of the databases and hosts of this configuration; may be repeated.",
        simple_cell_setup,
        (_TRANSPORT,),
        {0: "the cells are set up", 1: "no host has reported yet, or there is no bus"},
    ),
    Action(
        "cell_v2",
        "map_cell0",
        "Set up the cell of servers for which no host was found.",
        map_cell0,
        (
            argument(
                "--database_connection",
                metavar="<database_connection>",
                help="URL of its database. Default: that of [database] connection with _cell0 behind the name.",
            ),
        ),
        {0: "cell0 is set up, or was before"},
    ),
    Action(
        "cell_v2",
        "map_cell_and_hosts",
        "Set up a cell of this configuration's database and the hosts in it.",
        map_cell_and_hosts,
        (
            _TRANSPORT,
            argument("--name", metavar="<cell_name>", help="A name for the cell."),
            switch("--verbose", help="Tell each step."),
        ),
        {0: "done", 1: "there is no bus"},
    ),
)
