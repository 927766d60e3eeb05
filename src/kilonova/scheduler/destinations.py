"""Choosing: from a request spec to hosts that are claimed, with alternates."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import logging
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.base.stripes import Stripes
from kilonova.clients.bundle import Clients
from kilonova.clients.placement.client import CANDIDATES
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db.cells import Cells
from kilonova.scheduler import candidates, groups, prefilters, strangers
from kilonova.scheduler.candidates import Query, field
from kilonova.scheduler.claim import Claim, Claims
from kilonova.scheduler.explain import CLAIMED, FULL, Decision, Record, label
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.ranking import Ranking
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.cache import Snapshot
from kilonova.scheduler.snapshot.host import Host
from kilonova.scheduler.weighers.base import Weigher

LOG = logging.getLogger(__name__)

ALL_CANDIDATES_HINTS = ("group", "same_host", "different_host")
"""Hints about certain hosts: a cut list of candidates might not have them."""

NO_LIMITS: Mapping[str, None] = dict.fromkeys(objects.SchedulerLimits.fields)
OVERTAKEN = 10
"""How often hosts are chosen anew because another scheduler gave one to a member of the same group."""

AT_ONCE = 4
"""Requests that talk to Placement at the same time; more would only conflict with each other there."""

CANDIDATES_PER_HOST = 10
"""Allocation requests of one host that are tried before the next host."""


@dataclasses.dataclass(frozen=True)
class Offer:
    """What Placement has: hosts in its order, and per node the allocation requests that take from it."""

    hosts: list[Host]
    requests: dict[str, list[dict[str, Any]]]


@dataclasses.dataclass
class Chosen:
    request: Request
    host: Host
    claim: Claim | None


class Chooser:
    """Selects destinations. Thread-safe: all that changes is in the snapshot and the record."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        cells: Cells,
        clients: Clients,
        snapshot: Snapshot,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        record: Record | None = None,
    ) -> None:
        self._conf = conf
        self._cells = cells
        self._clients = clients
        self._snapshot = snapshot
        self._filters = filters
        self._weighers = weighers
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._claiming = Stripes()
        self._grouped = Stripes()
        self._active = frozenset([each.name for each in filters] + [each.name for each in weighers])
        self.record = record or Record()

    def select(
        self,
        ctxt: RequestContext,
        spec: objects.RequestSpec,
        instance_uuids: Sequence[str] | None = None,
        *,
        alternates: bool = False,
    ) -> list[list[objects.Selection]]:
        """For each server its chosen host (claimed) and then its alternates.

        All servers or none: what was claimed is given back when one finds no host. Raises NoValidHost with
        the explanation (`kwargs["explanation"]`, plain data), UnsupportedPolicyException.
        """
        uuids = list(instance_uuids or [spec.instance_uuid])
        name = groups.name_of(spec)
        if name is None:
            with self._turns:
                return self._select(ctxt, spec, uuids, alternates=alternates)
        # Members of a group do not choose at once in this process: the next one sees where the last one went.
        with self._grouped.held([name]), self._turns:
            return self._select_for_group(ctxt, spec, uuids, alternates=alternates)

    def _select_for_group(
        self, ctxt: RequestContext, spec: objects.RequestSpec, uuids: list[str], *, alternates: bool
    ) -> list[list[objects.Selection]]:
        # What a try adds to the request is not asked for twice by the next one.
        untouched = copy.deepcopy(spec)
        for _ in range(OVERTAKEN):
            with contextlib.suppress(groups.OvertakenError):
                return self._select(ctxt, spec, uuids, alternates=alternates)
            spec = copy.deepcopy(untouched)
        raise self._none(Decision(uuids[0], ctxt.request_id), "Other members of the server group were always faster.")

    def _select(
        self, ctxt: RequestContext, spec: objects.RequestSpec, uuids: list[str], *, alternates: bool
    ) -> list[list[objects.Selection]]:
        check_only = hints_of(spec).get("_nova_check_type") == ["rebuild"]
        group = groups.of_request(self._cells, spec, uuids[0])
        groups.check_supported(group, self._active)
        others = strangers.of_request(self._cells, ctxt, Request(spec, uuids[0]))
        first = Decision(uuids[0], ctxt.request_id)
        offer = self._in_place(spec, first) if check_only else self._offered(ctxt, spec, first)
        ranking = Ranking(self._conf, self._filters, self._weighers)
        user = field(spec, "user_id") or ctxt.user_id
        claims = Claims(self._clients.placement, self._claiming, ctxt, spec.project_id, str(user))
        chosen: list[Chosen] = []
        left: list[Host] = []
        try:
            for uuid in uuids:
                decision = first if uuid == uuids[0] else dataclasses.replace(first, instance_uuid=uuid)
                request = Request(spec, uuid, group, dict(offer.requests), strangers=others, check_only=check_only)
                left = self._one(offer, request, ranking, claims, chosen, self._fresh(decision))
            if alternates and len(uuids) > 1:
                left = ranking.best(offer.hosts, chosen[-1].request, self._fresh(first))
            if not check_only:
                groups.settle(self._cells, group, {each.request.instance_uuid: each.host.host for each in chosen})
        except Exception:
            self._undo(claims, chosen, group)
            raise
        return [self._selections(each, chosen, left, alternates=alternates) for each in chosen]

    # --- what there is ---------------------------------------------------------------------

    def _offered(self, ctxt: RequestContext, spec: objects.RequestSpec, decision: Decision) -> Offer:
        """Raises NoValidHost when Placement has nothing."""
        around = prefilters.Surroundings(ctxt, self._conf, self._snapshot, self._clients)
        try:
            prefilters.run(around, spec)
        except exceptions.RequestFilterFailed as exc:
            raise self._none(decision, str(exc)) from exc
        query = self._query(spec, decision, pinning=True)
        decision.query = query.params()
        requests, summaries = self._clients.placement.allocation_candidates(ctxt, decision.query)
        if query.pinned:
            more = self._query(spec, decision, pinning=False)
            fallback, other = self._clients.placement.allocation_candidates(ctxt, more.params())
            requests, summaries = requests + fallback, {**other, **summaries}
        if not requests:
            raise self._none(decision)
        by_node = by_root(requests, summaries)
        hosts = self._in_cell(self._snapshot.by_uuid(list(by_node)), spec)
        decision.candidates = len(hosts)
        return Offer(hosts, by_node)

    def _in_place(self, spec: objects.RequestSpec, decision: Decision) -> Offer:
        """A rebuild: the host it is on, nothing asked of Placement."""
        target: Any = field(spec, "requested_destination")
        host = target.host if target is not None and target.obj_attr_is_set("host") else None
        node = target.node if target is not None and target.obj_attr_is_set("node") else None
        hosts = self._snapshot.by_name(host, node) if host or node else self._snapshot.all()
        decision.candidates = len(hosts)
        return Offer(self._in_cell(hosts, spec), {})

    def _query(self, spec: objects.RequestSpec, decision: Decision, *, pinning: bool) -> Query:
        query = candidates.from_request(spec, self._conf.scheduler.max_placement_results, translate_pinning=pinning)
        target: Any = field(spec, "requested_destination")
        if target is not None:
            group = query.group()
            for any_of in prefilters.optional(target, "aggregates") or ():
                group.aggregates = [*group.aggregates, any_of.split(",")]
            closed = prefilters.optional(target, "forbidden_aggregates") or ()
            group.forbidden_aggregates = set(group.forbidden_aggregates) | set(closed)
        self._aim(query, spec, decision)
        if any(name in hints_of(spec) for name in ALL_CANDIDATES_HINTS):
            query.limit = None
        return query

    def _aim(self, query: Query, spec: objects.RequestSpec, decision: Decision) -> None:
        """A host or node that is named: ask for its tree only. Raises NoValidHost when there is no such one."""
        target: Any = field(spec, "requested_destination")
        host = prefilters.optional(target, "host") if target is not None else None
        node = prefilters.optional(target, "node") if target is not None else None
        host = host or first_of(field(spec, "force_hosts"))
        node = node or first_of(field(spec, "force_nodes"))
        if not host and not node:
            return
        nodes = self._snapshot.by_name(host, node)
        if not nodes:
            raise self._none(decision, f"No such host - host: {host} node: {node} ")
        if len(nodes) > 1:
            query.limit = None
            return
        query.group().in_tree = nodes[0].uuid
        if target is not None:
            target.host, target.node = nodes[0].host, nodes[0].nodename

    def _in_cell(self, hosts: list[Host], spec: objects.RequestSpec) -> list[Host]:
        target: Any = field(spec, "requested_destination")
        cell = prefilters.optional(target, "cell") if target is not None else None
        if cell is None or prefilters.optional(target, "allow_cross_cell_move"):
            return hosts
        return [host for host in hosts if host.cell_uuid == cell.uuid]

    # --- one server ------------------------------------------------------------------------

    def _one(
        self,
        offer: Offer,
        request: Request,
        ranking: Ranking,
        claims: Claims,
        chosen: list[Chosen],
        decision: Decision,
    ) -> list[Host]:
        """Choose and claim for one server; returns the hosts that would also do. Raises NoValidHost."""
        ranked = ranking.best(offer.hosts, request, decision)
        for host in ranked:
            claim = self._claim(host, request, claims, decision)
            if claim is None and not request.check_only:
                continue
            decision.chosen = label(host)
            chosen.append(Chosen(request, host, claim))
            self._consume(host, request)
            self.record.add(decision)
            LOG.info("server %s goes to %s (%s)", request.instance_uuid, decision.chosen, decision.summary())
            return [each for each in ranked if each is not host]
        raise self._none(decision)

    def _claim(self, host: Host, request: Request, claims: Claims, decision: Decision) -> Claim | None:
        if request.check_only:
            return None
        moving = self._snapshot.is_placed(request.instance_uuid)
        for allocation_request in request.viable(host)[:CANDIDATES_PER_HOST]:
            if claims.take(request.instance_uuid, host, allocation_request, moving=moving):
                decision.claims.append((label(host), CLAIMED))
                return claims.made[-1]
        decision.claims.append((label(host), FULL))
        return None

    def _consume(self, host: Host, request: Request) -> None:
        if request.check_only:
            return
        flavor = request.spec.flavor
        self._snapshot.consume(
            host,
            instance=request.instance_uuid,
            memory_mb=flavor.memory_mb,
            disk_gb=flavor.root_gb + flavor.ephemeral_gb,
            vcpus=flavor.vcpus,
        )
        groups.consume(request.group, request.instance_uuid, host.host)

    def _undo(self, claims: Claims, chosen: Sequence[Chosen], group: groups.Group | None) -> None:
        claims.undo()
        for each in chosen:
            if not each.request.check_only:
                self._snapshot.forget(each.host, each.request.instance_uuid)
                groups.release(group, each.request.instance_uuid)

    def _fresh(self, decision: Decision) -> Decision:
        """The same question, steps and claims of its own."""
        return dataclasses.replace(decision, steps=[], weights=[], claims=[], chosen=None)

    def _none(self, decision: Decision, reason: str | None = None) -> exceptions.NoValidHost:
        self.record.add(decision)
        text = reason or f"There are not enough hosts available ({decision.summary()})."
        LOG.warning("no host for server %s: %s\n%s", decision.instance_uuid, text, decision.details())
        return exceptions.NoValidHost(reason=text, explanation=decision.to_dict())

    # --- the answer ------------------------------------------------------------------------

    def _selections(
        self, each: Chosen, chosen: Sequence[Chosen], left: Sequence[Host], *, alternates: bool
    ) -> list[objects.Selection]:
        taken = each.claim.allocation_request if each.claim else None
        found = [self._selection(each.host, each.request, taken)]
        if not alternates:
            return found
        used = {id(other.host) for other in chosen}
        for host in left:
            if len(found) >= self._conf.scheduler.max_attempts:
                break
            possible = each.request.viable(host)
            if host.cell_uuid == each.host.cell_uuid and id(host) not in used and possible:
                found.append(self._selection(host, each.request, possible[0]))
        return found

    def _selection(self, host: Host, request: Request, taken: Mapping[str, Any] | None) -> objects.Selection:
        # Hosts that are not ours read every one of them.
        limits = objects.SchedulerLimits(**{**NO_LIMITS, **request.limits.get(host.uuid, {})})
        return objects.Selection(
            compute_node_uuid=host.uuid,
            service_host=host.host,
            nodename=host.nodename,
            cell_uuid=host.cell_uuid,
            limits=limits,
            allocation_request=json.dumps(taken),
            allocation_request_version=CANDIDATES if taken is not None else None,
            availability_zone=host.availability_zone(self._conf.default_availability_zone),
        )


def hints_of(spec: objects.RequestSpec) -> Mapping[str, Any]:
    found: Any = field(spec, "scheduler_hints")
    return found or {}


def first_of(names: Any) -> str | None:
    return names[0] if names else None


def by_root(
    requests: Sequence[dict[str, Any]], summaries: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """{root provider: allocation requests}; a compute node is the root of its tree, sharing providers have own ones."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for request in requests:
        roots = {summaries[each].get("root_provider_uuid", each) for each in request["allocations"]}
        for root in sorted(roots):
            found[root].append(request)
    return dict(found)
