"""What builds that follow each other ask of Neutron alike, remembered for some seconds.

Only what the service's own credentials see is remembered, and only what lets a request pass: before anything is
refused, Neutron is asked. What a server's own ports say is never remembered.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.clients.neutron.rest import Item, NeutronRest
from kilonova.contract.context import RequestContext

Servers = Mapping[str, str]
"""Address of the DHCP server by subnet id."""

TURN = 5.0
"""Seconds to wait for the answer that somebody else already asks for."""


class Memory:
    """Networks and subnets by id, DHCP servers by network, projects without a limit on ports. Thread-safe."""

    def __init__(self, rest: NeutronRest, seconds: float = 0.0) -> None:
        """`seconds`: for how long an answer serves; 0 asks every time."""
        self._rest = rest
        self._seconds = seconds
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[float, Any]] = {}
        self._turns: dict[str, threading.Lock] = {}

    def networks(self, ctxt: RequestContext, ids: Iterable[str]) -> dict[str, Item]:
        """Those that exist, as an administrator sees them; one without subnets may get some any moment."""

        def ask(missing: list[str]) -> dict[str, Item]:
            return {net["id"]: net for net in self._rest.list(ctxt, "networks", admin=True, id=missing)}

        return self._many("network", ids, ask, keep=lambda net: bool(net.get("subnets")))

    def subnets(self, ctxt: RequestContext, ids: Iterable[str]) -> dict[str, Item]:
        def ask(missing: list[str]) -> dict[str, Item]:
            return {subnet["id"]: subnet for subnet in self._rest.list(ctxt, "subnets", admin=True, id=missing)}

        return self._many("subnet", ids, ask)

    def dhcp_servers(self, ctxt: RequestContext, network_ids: Iterable[str]) -> dict[str, str]:
        """Of all subnets of the networks."""

        def ask(missing: list[str]) -> dict[str, dict[str, str]]:
            found = self._rest.list(
                ctxt,
                "ports",
                admin=True,
                network_id=missing,
                device_owner="network:dhcp",
                fields=["network_id", "fixed_ips"],
            )
            return {each: _servers(port for port in found if port["network_id"] == each) for each in missing}

        found = self._many("dhcp", network_ids, ask)
        return {subnet: address for servers in found.values() for subnet, address in servers.items()}

    def port_quota(self, ctxt: RequestContext, project: str) -> int:
        """The project's limit on ports, -1 for none; only that there is none is remembered."""

        def ask(missing: list[str]) -> dict[str, int]:
            return {each: self._rest.port_quota(ctxt, each) for each in missing}

        return int(self._many("port quota", [project], ask, keep=lambda limit: limit == -1)[project])

    def _many(
        self,
        kind: str,
        keys: Iterable[str],
        ask: Callable[[list[str]], Mapping[str, Any]],
        keep: Callable[[Any], bool] = lambda _: True,
    ) -> dict[str, Any]:
        wanted = sorted(set(keys))
        found = self._recall(kind, wanted)
        if len(found) == len(wanted):
            return found
        with self._turn(kind):
            found = self._recall(kind, wanted)
            missing = [each for each in wanted if each not in found]
            fresh = dict(ask(missing)) if missing else {}
            self._remember(kind, {key: value for key, value in fresh.items() if keep(value)})
        return found | fresh

    @contextlib.contextmanager
    def _turn(self, kind: str) -> Iterator[None]:
        """Builds that begin at once ask once: the others wait for that answer, but not for long."""
        with self._lock:
            turn = self._turns.setdefault(kind, threading.Lock())
        mine = self._seconds > 0 and turn.acquire(timeout=TURN)
        try:
            yield
        finally:
            if mine:
                turn.release()

    def _recall(self, kind: str, keys: Sequence[str]) -> dict[str, Any]:
        now = clock.monotonic()
        with self._lock:
            known = {key: self._known.get((kind, key)) for key in keys}
        return {key: entry[1] for key, entry in known.items() if entry is not None and entry[0] > now}

    def _remember(self, kind: str, fresh: Mapping[str, Any]) -> None:
        if self._seconds <= 0:
            return
        now = clock.monotonic()
        with self._lock:
            self._known = {key: entry for key, entry in self._known.items() if entry[0] > now}
            self._known |= {(kind, key): (now + self._seconds, value) for key, value in fresh.items()}


def _servers(ports: Iterable[Item]) -> dict[str, str]:
    servers: dict[str, str] = {}
    for port in ports:
        for each in port["fixed_ips"]:
            servers.setdefault(each["subnet_id"], each["ip_address"])
    return servers
