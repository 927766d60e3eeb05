"""`nova-manage placement sync_aggregates`: host aggregates are aggregates in Placement, too."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping

from kilonova.base import retry
from kilonova.clients.http import ServiceError
from kilonova.clients.placement.client import GenerationConflict, Placement, ProviderMissing
from kilonova.cmd.manage.actions import Action, Refused, switch
from kilonova.cmd.manage.session import Session
from kilonova.contract import context
from kilonova.db.api import aggregates, host_mappings
from kilonova.db.cell import compute_nodes
from kilonova.db.cells import CellDown

SYNCED, SEVERAL_NODES, NOT_READ, NOT_WRITTEN, UNMAPPED, NO_NODE, NO_PROVIDER, LOST = 0, 1, 2, 3, 4, 5, 6, 255
AGAIN = retry.Backoff(attempts=5, base=0.1, cap=1.0)

_WHY = {
    LOST: "The cell of these hosts does not answer",
    SEVERAL_NODES: "These hosts have several compute nodes, so that an aggregate cannot be told from another",
    NO_PROVIDER: "Placement does not know the node of these hosts; restart their nova-compute",
    NO_NODE: "These hosts have no compute node in the database; restart their nova-compute",
    UNMAPPED: "These hosts are not mapped to a cell: `nova-manage cell_v2 discover_hosts`",
}
"""Exit codes by weight, with what to say of the hosts."""


@dataclasses.dataclass
class _Found:
    """Hosts with their provider's uuid, and by exit code those without."""

    providers: dict[str, str] = dataclasses.field(default_factory=dict)
    problems: dict[int, list[str]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))


def sync_aggregates(session: Session, verbose: bool) -> int:
    def tell(text: str) -> None:
        if verbose:
            session.say(text)

    wanted: dict[str, set[str]] = collections.defaultdict(set)
    for aggregate in session.cells.api.query(aggregates.aggregate_list):
        for host in aggregate["hosts"]:
            wanted[host].add(aggregate["uuid"])
    found = _providers(session, wanted)
    for host in sorted(found.providers):
        if not _sync(session.clients.placement, host, found.providers[host], wanted[host], tell):
            found.problems[NO_PROVIDER].append(host)
    for code, text in _WHY.items():
        if found.problems.get(code):
            session.say(f"{text}: {', '.join(sorted(found.problems[code]))}.")
    return next((code for code in _WHY if found.problems.get(code)), SYNCED)


def _providers(session: Session, hosts: Iterable[str]) -> _Found:
    """One statement in the API database and one in each cell."""
    found = _Found()
    names = sorted(hosts)
    mappings = session.cells.api.query(host_mappings.host_mapping_list, hosts=names) if names else []
    cell_of = {mapping["host"]: mapping["cell_uuid"] for mapping in mappings}
    found.problems[UNMAPPED] = [host for host in names if host not in cell_of]
    by_cell: dict[str, list[str]] = collections.defaultdict(list)
    for host, cell in cell_of.items():
        by_cell[cell].append(host)
    answers = session.cells.scatter(
        lambda cell: cell.database.query(compute_nodes.compute_node_list, hosts=by_cell[cell.uuid]),
        [cell for cell in session.cells.all() if cell.uuid in by_cell],
    )
    for cell, mapped in by_cell.items():
        answer = answers[cell]
        if isinstance(answer, CellDown):
            found.problems[LOST] += mapped
        else:
            _note(found, mapped, answer)
    return found


def _note(found: _Found, hosts: Iterable[str], nodes: Iterable[Mapping[str, str]]) -> None:
    by_host: dict[str, list[str]] = collections.defaultdict(list)
    for node in nodes:
        by_host[node["host"]].append(node["uuid"])
    for host in hosts:
        match by_host[host]:
            case [uuid]:
                found.providers[host] = uuid
            case []:
                found.problems[NO_NODE].append(host)
            case _:
                found.problems[SEVERAL_NODES].append(host)


def _sync(placement: Placement, host: str, provider: str, wanted: set[str], tell: Callable[[str], object]) -> bool:
    """Put the provider into the aggregates that it is not in; False when there is none. Raises Refused."""
    try:
        added = retry.call(lambda: _add(placement, host, provider, wanted), on=(GenerationConflict,), backoff=AGAIN)
    except ProviderMissing:
        return False
    except ServiceError as exc:
        raise Refused(NOT_WRITTEN, f"Placement does not take the aggregates of host {host}: {exc}") from exc
    tell(f"Host {host}, provider {provider}: {', '.join(sorted(added)) or 'nothing'} added.")
    return True


def _add(placement: Placement, host: str, provider: str, wanted: set[str]) -> set[str]:
    ctxt = context.admin()
    try:
        present, generation = placement.aggregates_get(ctxt, provider)
    except ProviderMissing:
        raise
    except ServiceError as exc:
        raise Refused(NOT_READ, f"Placement does not show the aggregates of host {host}: {exc}") from exc
    missing = wanted - present
    if missing:
        placement.aggregates_set(ctxt, provider, present | wanted, generation)
    return missing


ACTIONS = (
    Action(
        "placement",
        "sync_aggregates",
        "Put the provider of each host into the aggregates that the host is in. Other aggregates of a provider, made "
        "by others, stay.",
        sync_aggregates,
        (switch("--verbose", help="Tell what was added, host by host."),),
        {
            0: "all hosts are in their aggregates",
            1: "a host has several compute nodes",
            2: "Placement does not show aggregates",
            3: "Placement does not take aggregates",
            4: "a host is not mapped to a cell",
            5: "a host has no compute node in the database",
            6: "Placement does not know a host",
            255: "a cell does not answer, or something unforeseen happened",
        },
    ),
)
