"""`nova-manage placement audit`: what is held of our hosts by servers and migrations that have no claim to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import os_resource_classes as orc

from kilonova.base import retry
from kilonova.clients.http import ServiceError
from kilonova.clients.placement.client import AllocationConflict, Provider, ProviderMissing
from kilonova.cmd.manage.actions import Action, Refused, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.contract import context
from kilonova.db.cell import explanations
from kilonova.db.cells import CellDown
from kilonova.db.engine import Tx
from kilonova.reconcile.control import known
from kilonova.reconcile.control.known import Traces

CLEAN, FAILED, FOUND, DELETED, INVALID = 0, 1, 3, 4, 127
SLICE = 400
AGAIN = retry.Backoff(attempts=4, base=0.1, cap=1.0)

OURS = frozenset(
    {
        orc.VCPU,
        orc.PCPU,
        orc.MEMORY_MB,
        orc.DISK_GB,
        orc.VGPU,
        orc.MEM_ENCRYPTION_CONTEXT,
        orc.NET_BW_EGR_KILOBIT_PER_SEC,
        orc.NET_BW_IGR_KILOBIT_PER_SEC,
    }
)
"""Who holds none of these holds nothing for a server."""


class Unsure(Exception):
    """The cell that would know does not answer."""


@dataclasses.dataclass(frozen=True)
class Orphan:
    """What a consumer holds of a provider, and why it should not."""

    consumer: str
    provider: Provider
    resources: Mapping[str, int]
    why: str

    def shown(self) -> str:
        amounts = ", ".join(f"{name}={amount}" for name, amount in sorted(self.resources.items()))
        return f"{amounts} of provider {self.provider.name} ({self.provider.uuid}) held by {self.consumer}, {self.why}"


@dataclasses.dataclass(frozen=True)
class Knowledge:
    """What the databases say of some consumers."""

    traces: Mapping[str, Traces]
    moving: frozenset[str]
    """Migrations going on, and the servers that they move."""
    nodes: Mapping[tuple[str | None, str | None], str]
    """Node uuids by host and node name; those of removed hosts too, unless another came in their place."""

    def objection(self, consumer: str, root: str) -> str | None:
        """Why the consumer should hold nothing below the root provider; None when it may. Raises Unsure."""
        traces = self.traces[consumer]
        if traces.build_request or traces.active_flow or consumer in self.moving:
            return None
        if traces.living:
            objections = [self._misplaced(server, root) for server in traces.living]
            return None if None in objections else objections[0]
        if traces.cell_down:
            raise Unsure(consumer)
        if traces.migration:
            return "a migration that is over"
        known_once = traces.servers or traces.mapping is not None or traces.past_flow
        return "a server that is deleted" if known_once else "which nobody here knows"

    def _misplaced(self, server: Mapping[str, Any], root: str) -> str | None:
        if server["task_state"] is not None:
            return None
        if server["host"] is None:
            return "a server that is on no host"
        own = self.nodes.get((server["host"], server["node"]))
        return None if own in (None, root) else f"a server that is on host {server['host']}"


def know(session: Session, consumers: Iterable[str]) -> Knowledge:
    """Look all of them up: a constant number of statements per cell and slice."""
    wanted = sorted(set(consumers))
    # In this order: a move that begins after the look at moves finds its server where it was.
    answers = session.cells.scatter(lambda cell: cell.database.query(_ask, wanted))
    alive = [answer for answer in answers.values() if not isinstance(answer, CellDown)]
    moving = {row[key] for answer in alive for row in answer[0] for key in ("uuid", "instance_uuid")}
    rows = sorted((row for answer in alive for row in answer[1]), key=lambda row: row["deleted"] == 0)
    nodes = {(row["host"], row["hypervisor_hostname"]): row["uuid"] for row in rows}
    return Knowledge(known.look(session, wanted), frozenset(moving), nodes)


def _ask(tx: Tx, consumers: list[str]) -> tuple[list[Any], list[Any]]:
    migrations = [
        row
        for start in range(0, len(consumers), SLICE)
        for row in explanations.open_migrations(tx, consumers[start : start + SLICE])
    ]
    return migrations, explanations.nodes(tx)


class Auditor:
    """Looks for orphans provider by provider, and removes them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = session.clients.placement
        self._ctxt = context.admin()

    def providers(self, uuid: str | None) -> list[Provider]:
        """All, or the one. Raises Refused when there is none."""
        found = self._placement.providers(self._ctxt, uuid)
        if uuid and not found:
            raise Refused(INVALID, f"There is no resource provider {uuid}.")
        return found

    def orphans(self, provider: Provider) -> tuple[list[Orphan], list[str]]:
        """Those of one provider, and the consumers of which nothing can be said."""
        try:
            held = self._placement.allocations_by_provider(self._ctxt, provider.uuid)
        except ProviderMissing:
            return [], []
        ours = {consumer: resources for consumer, resources in held.items() if OURS & set(resources)}
        knowledge = know(self._session, ours) if ours else None
        found, unsure = [], []
        for consumer, resources in ours.items():
            assert knowledge is not None
            try:
                why = knowledge.objection(consumer, provider.root or provider.uuid)
            except Unsure:
                unsure.append(consumer)
                continue
            if why is not None:
                found.append(Orphan(consumer, provider, resources, why))
        return found, unsure

    def remove(self, orphan: Orphan) -> bool:
        """Take the provider from what the consumer holds; False when it is no orphan any more. Raises ServiceError."""
        return retry.call(lambda: self._remove(orphan), on=(AllocationConflict,), backoff=AGAIN)

    def _remove(self, orphan: Orphan) -> bool:
        held = self._placement.allocations_get(self._ctxt, orphan.consumer)
        if orphan.provider.uuid not in held.allocations or not self._still(orphan):
            return False
        rest = {uuid: each for uuid, each in held.allocations.items() if uuid != orphan.provider.uuid}
        project, user = held.project_id or "", held.user_id or ""
        if not self._placement.allocations_put(self._ctxt, orphan.consumer, rest, project, user, held.generation):
            raise ServiceError("placement", "the rest of what the consumer holds has no room")
        return True

    def _still(self, orphan: Orphan) -> bool:
        now = know(self._session, [orphan.consumer])
        try:
            return now.objection(orphan.consumer, orphan.provider.root or orphan.provider.uuid) is not None
        except Unsure:
            return False


@dataclasses.dataclass
class _Report:
    session: Session
    verbose: bool
    delete: bool
    found: list[tuple[Orphan, bool]] = dataclasses.field(default_factory=list)
    failed: bool = False

    def add(self, auditor: Auditor, provider: Provider) -> None:
        orphans, unsure = auditor.orphans(provider)
        for consumer in unsure:
            self.session.complain(f"Consumer {consumer} may be a server or migration of a cell that does not answer.")
            self.failed = True
        for orphan in orphans:
            self._add(auditor, orphan)

    def _add(self, auditor: Auditor, orphan: Orphan) -> None:
        if not self.delete:
            self.found.append((orphan, False))
            self._tell(f"Could be deleted: {orphan.shown()}.")
            return
        try:
            removed = auditor.remove(orphan)
        except ServiceError as exc:
            self.session.complain(f"Not deleted: {orphan.shown()}. {exc}")
            self.failed = True
            return
        if removed:
            self.found.append((orphan, True))
            self._tell(f"Deleted: {orphan.shown()}.")

    def _tell(self, text: str) -> None:
        if self.verbose:
            self.session.say(text)

    def exit_code(self) -> int:
        if self.failed:
            return FAILED
        if not self.found:
            return CLEAN
        return DELETED if self.delete else FOUND


def audit(session: Session, verbose: bool, provider_uuid: str | None, delete: bool, json: bool) -> int:
    auditor = Auditor(session)
    report = _Report(session, verbose and not json, delete)
    try:
        for provider in auditor.providers(provider_uuid):
            report.add(auditor, provider)
    except ServiceError as exc:
        session.complain(f"Placement does not answer as it must: {exc}")
        report.failed = True
    if json:
        titles = ("consumer", "provider", "resources", "why", "deleted")
        rows = [(each.consumer, each.provider.uuid, each.resources, each.why, gone) for each, gone in report.found]
        session.table(titles, rows, as_json=True)
    elif verbose:
        session.say(f"Orphaned allocations: {len(report.found)}.")
    return report.exit_code()


ACTIONS = (
    Action(
        "placement",
        "audit",
        "Look for allocations whose server or migration is gone, or is on another host.\nWhat a cell that does not "
        "answer may know is never taken for orphaned.",
        audit,
        (
            switch("--verbose", help="Tell of each allocation that was found."),
            argument(
                "--resource_provider",
                dest="provider_uuid",
                metavar="<provider_uuid>",
                help="UUID of the only resource provider to look at.",
            ),
            switch("--delete", help="Delete what was found."),
            switch("--json", help="Show what was found as JSON."),
        ),
        {
            0: "there are no orphaned allocations",
            1: "not all could be looked at, or deleted",
            3: "there are orphaned allocations",
            4: "there were orphaned allocations; they are deleted",
            127: "there is no such resource provider",
        },
        unforeseen=1,
    ),
)
