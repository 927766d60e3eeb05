"""Mapping new compute hosts to their cells, on request of the configuration (otherwise an operator's command)."""

from __future__ import annotations

import logging

from kilonova.db.api import host_mappings
from kilonova.db.cell import compute_nodes
from kilonova.db.cells import Cell, CellDown, Cells
from kilonova.db.outcomes import DuplicateError

LOG = logging.getLogger(__name__)


def discover(cells: Cells) -> list[str]:
    """Map the hosts of all cells that reported and are not mapped yet; their names. Several schedulers may do so."""
    found: list[str] = []
    answers = cells.scatter(lambda cell: _discover(cells, cell), cells.all(include_cell0=False))
    for uuid, answer in answers.items():
        if isinstance(answer, CellDown):
            LOG.warning("cell %s does not answer, its new hosts are mapped later: %s", uuid, answer.reason)
        else:
            found += answer
    if found:
        LOG.info("mapped new hosts: %s", ", ".join(found))
    return found


def _discover(cells: Cells, cell: Cell) -> list[str]:
    nodes = cell.database.query(compute_nodes.compute_node_list, mapped_less_than=1)
    if not nodes:
        return []
    hosts = dict.fromkeys(node["host"] for node in nodes)
    known = {row["host"] for row in cells.api.query(host_mappings.host_mapping_list, hosts=list(hosts))}
    new = [host for host in hosts if host not in known and _map(cells, cell, host)]
    cell.database.run(compute_nodes.compute_node_set_mapped, [node["id"] for node in nodes])
    return new


def _map(cells: Cells, cell: Cell, host: str) -> bool:
    try:
        cells.api.run(host_mappings.host_mapping_create, host, cell.id)
    except DuplicateError:
        return False
    return True
