"""From many hosts to an ordered few: named hosts, filters, weighers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.scheduler.candidates import field
from kilonova.scheduler.explain import TOP, Decision, Step, Weight, label
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host
from kilonova.scheduler.weighers.base import Weigher, normalize

Objections = dict[tuple[str, str], str | None]


class Ranking:
    """Filters and weighs the hosts of one request; answers of filters that hold for all its servers are kept."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        rng: random.Random | None = None,
    ) -> None:
        self._conf = conf
        self._filters = filters
        self._weighers = weighers
        self._rng = rng or random.Random()  # noqa: S311
        self._known: Objections = {}

    def best(self, hosts: Sequence[Host], request: Request, decision: Decision) -> list[Host]:
        """Hosts that will do, the first one to be tried first. What happened is written to `decision`."""
        left = self.passing(hosts, request, decision)
        if not left:
            return []
        return self._choose(self.weighed(left, request, decision))

    # --- filtering -------------------------------------------------------------------------

    def passing(self, hosts: Sequence[Host], request: Request, decision: Decision) -> list[Host]:
        named = named_only(hosts, request, decision)
        if forced(request) and not request.hints.get("_nova_check_type"):
            return named
        left = named
        for each in self._filters:
            if not left:
                break
            if (request.check_only and not each.on_rebuild) or not each.applies(request):
                continue
            left = self._filter(each, left, request, decision)
        return left

    def _filter(self, each: Filter, hosts: Sequence[Host], request: Request, decision: Decision) -> list[Host]:
        step = Step(each.name, len(hosts), 0)
        left = []
        for host in hosts:
            reason = self._objection(each, host, request)
            if reason is None:
                left.append(host)
            else:
                step.object(reason, label(host))
        step.after = len(left)
        decision.steps.append(step)
        return left

    def _objection(self, each: Filter, host: Host, request: Request) -> str | None:
        if not each.once:
            return each.objection(host, request)
        key = each.name, host.uuid
        if key not in self._known:
            self._known[key] = each.objection(host, request)
        return self._known[key]

    # --- weighing --------------------------------------------------------------------------

    def weighed(self, hosts: Sequence[Host], request: Request, decision: Decision) -> list[tuple[float, Host]]:
        """(weight, host), the heaviest first; a single host is not weighed."""
        if len(hosts) == 1:
            decision.weights = [Weight(hosts[0].host, hosts[0].nodename, 0.0, {})]
            return [(0.0, hosts[0])]
        totals = [0.0] * len(hosts)
        shares: list[dict[str, float]] = [{} for _ in hosts]
        for weigher in self._weighers:
            name, multipliers = weigher.name, weigher.multipliers(hosts)
            if not any(multipliers) or not weigher.applies(request):
                continue
            weights = normalize(weigher.weights(hosts, request), weigher.minimum)
            for at, (weight, multiplier) in enumerate(zip(weights, multipliers, strict=True)):
                if weight and multiplier:
                    totals[at] += multiplier * weight
                    shares[at][name] = multiplier * weight
        order = sorted(range(len(hosts)), key=lambda at: totals[at], reverse=True)
        decision.weights = [Weight(hosts[at].host, hosts[at].nodename, totals[at], shares[at]) for at in order[:TOP]]
        return [(totals[at], hosts[at]) for at in order]

    def _choose(self, weighed: list[tuple[float, Host]]) -> list[Host]:
        options = self._conf.filter_scheduler
        if options.shuffle_best_same_weighed_hosts:
            best = [pair for pair in weighed if pair[0] == weighed[0][0]]
            self._rng.shuffle(best)
            weighed = best + weighed[len(best) :]
        hosts = [host for _, host in weighed]
        chosen = self._rng.randrange(min(options.host_subset_size, len(hosts)))
        return [hosts.pop(chosen), *hosts]


def forced(request: Request) -> bool:
    """A host or node that an admin forces is taken without asking the filters."""
    return bool(field(request.spec, "force_hosts") or field(request.spec, "force_nodes"))


def named_only(hosts: Sequence[Host], request: Request, decision: Decision) -> list[Host]:
    """Hosts left by requested_destination, ignore_hosts, retry, force_hosts and force_nodes, each of them a step."""
    spec = request.spec
    left = list(hosts)
    target: Any = field(spec, "requested_destination")
    if target is not None and target.obj_attr_is_set("host"):
        node = target.node if target.obj_attr_is_set("node") else None
        wanted = [host for host in left if host.host == target.host and (not node or host.nodename == node)]
        left = _narrowed("requested_destination", left, wanted, "another host is requested", decision)
    ignored = {name.lower() for name in _names(spec, "ignore_hosts")}
    if ignored:
        wanted = [host for host in left if host.host.lower() not in ignored]
        left = _narrowed("ignore_hosts", left, wanted, "it is to be ignored", decision)
    tried = _tried(spec)
    if tried:
        wanted = [host for host in left if host.key not in tried]
        left = _narrowed("retry", left, wanted, "it was tried before", decision)
    named = {name.lower() for name in _names(spec, "force_hosts")}
    if named:
        wanted = [host for host in left if host.host.lower() in named]
        left = _narrowed("force_hosts", left, wanted, "another host is forced", decision)
    nodes = set(_names(spec, "force_nodes"))
    if nodes:
        wanted = [host for host in left if host.nodename in nodes]
        left = _narrowed("force_nodes", left, wanted, "another node is forced", decision)
    return left


def _tried(spec: Any) -> set[tuple[str, str]]:
    retry: Any = field(spec, "retry")
    if retry is None or not retry.obj_attr_is_set("hosts"):
        return set()
    return {(node.host, node.hypervisor_hostname) for node in retry.hosts.objects}


def _names(spec: Any, name: str) -> Iterable[str]:
    found: Any = field(spec, name)
    return found or ()


def _narrowed(name: str, before: Sequence[Host], after: list[Host], reason: str, decision: Decision) -> list[Host]:
    step = Step(name, len(before), len(after))
    kept = {id(host) for host in after}
    for host in before:
        if id(host) not in kept:
            step.object(reason, label(host))
    decision.steps.append(step)
    return after
