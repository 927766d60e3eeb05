"""Neutron's REST calls, one method each, with its error types mapped to what users know."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kilonova.base import clock
from kilonova.clients import paging, refusals
from kilonova.clients.http import Http, Params, Reply, ServiceError
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext

Item = dict[str, Any]

RENEWING = 60.0
"""Seconds for which the extensions known before serve while they are asked for anew."""

_UNAUTHORIZED = 401


class NeutronError(ServiceError):
    """Neutron refused; `kind` is its error type (OverQuota, IpAddressInUse, ...)."""


class NeutronRest:
    """Calls to Neutron (API v2.0). `admin` uses the service's own credentials."""

    def __init__(self, http: Http, extension_ttl: float = 600) -> None:
        self._http = http
        self._ttl = extension_ttl
        self._extensions: tuple[float, frozenset[str]] = float("-inf"), frozenset()
        """Until when they are known, and which they are."""

    # --- reading ---------------------------------------------------------------------------

    def page(
        self, ctxt: RequestContext, noun: str, limit: int, marker: str | None, *, admin: bool = False, **filters: Any
    ) -> tuple[list[Item], str | None]:
        """Up to so many items of a collection in the order of their ids, those behind the marker; and the next marker,
        None at the end.
        """
        where = filters | {"limit": limit, "sort_key": "id", "sort_dir": "asc"} | ({"marker": marker} if marker else {})
        found = list(itertools.islice(self._all(ctxt, noun, where, admin=admin), limit))
        return found, found[-1]["id"] if len(found) == limit else None

    def list(self, ctxt: RequestContext, noun: str, *, admin: bool = False, **filters: Any) -> list[Item]:
        """All items of a collection (`ports`, `security-groups`, ...) that match; a list value matches any of it.

        Many values are asked for in several requests, so that the URL stays below common limits of 8 KiB.
        """

        return [item for part in batches(filters) for item in self._all(ctxt, noun, part, admin=admin)]

    def _all(self, ctxt: RequestContext, noun: str, where: Mapping[str, Any], *, admin: bool) -> Iterator[Item]:
        """Page after page, as they are taken: Neutron may have shorter ones than are asked for."""

        def ask(params: Params) -> Any:
            return self._expect(self._call(ctxt, "GET", f"/v2.0/{noun}", admin=admin, params=params)).json()

        return paging.every("neutron", ask, pairs(where), noun.replace("-", "_"))

    def show(self, ctxt: RequestContext, noun: str, item: str, *, admin: bool = False, **query: Any) -> Item | None:
        """One item, None when there is none (or none that we may see)."""
        reply = self._call(ctxt, "GET", f"/v2.0/{noun}/{item}", admin=admin, params=pairs(query))
        if reply.status == 404:
            return None
        return dict(next(iter(self._expect(reply).json().values())))

    def port_show(self, ctxt: RequestContext, port_id: str, *, admin: bool = False) -> Item:
        """Raises PortNotFound."""
        port = self.show(ctxt, "ports", port_id, admin=admin)
        if port is None:
            raise exceptions.PortNotFound(port_id=port_id)
        return port

    def extensions(self, ctxt: RequestContext) -> frozenset[str]:
        """Aliases of the extensions the service has, asked for again now and then."""
        until, known = self._extensions
        if clock.monotonic() < until:
            return known
        # Nobody waits for what another one asks, which lasts while Neutron is away: they go by what was known.
        self._extensions = clock.monotonic() + (RENEWING if known else 0.0), known
        reply = self._expect(self._call(ctxt, "GET", "/v2.0/extensions"))
        found = frozenset(each["alias"] for each in reply.json()["extensions"])
        self._extensions = clock.monotonic() + self._ttl, found
        return found

    def port_quota(self, ctxt: RequestContext, project: str) -> int:
        """The project's limit on ports, -1 for none."""
        quota = self.show(ctxt, "quotas", project) or {}
        return int(quota.get("port", -1))

    # --- changing --------------------------------------------------------------------------

    def create(self, ctxt: RequestContext, noun: str, item: Mapping[str, Any], *, admin: bool = False) -> Item:
        key = singular(noun)
        reply = self._call(ctxt, "POST", f"/v2.0/{noun}", admin=admin, body={key: dict(item)})
        return dict(self._expect(reply).json()[key])

    def update(
        self,
        ctxt: RequestContext,
        noun: str,
        item: str,
        values: Mapping[str, Any],
        *,
        admin: bool = False,
        revision: int | None = None,
    ) -> Item:
        """Raises NeutronError: status 404 when there is none, 412 when it is not at `revision` any more."""
        key = singular(noun)
        headers = {} if revision is None else {"If-Match": f"revision_number={revision}"}
        reply = self._call(ctxt, "PUT", f"/v2.0/{noun}/{item}", admin=admin, body={key: dict(values)}, headers=headers)
        return dict(self._expect(reply).json()[key])

    def delete(self, ctxt: RequestContext, noun: str, item: str, *, admin: bool = False) -> bool:
        """False when it was not there."""
        reply = self._call(ctxt, "DELETE", f"/v2.0/{noun}/{item}", admin=admin)
        if reply.status == 404:
            return False
        self._expect(reply)
        return True

    def binding_create(self, ctxt: RequestContext, port_id: str, binding: Mapping[str, Any]) -> Item:
        """A second, inactive binding of a port to another host (extension binding-extended)."""
        path = f"/v2.0/ports/{port_id}/bindings"
        return dict(
            self._expect(self._call(ctxt, "POST", path, admin=True, body={"binding": dict(binding)})).json()["binding"]
        )

    def binding_activate(self, ctxt: RequestContext, port_id: str, host: str) -> None:
        """Make a host's binding the active one; one that already is active is fine."""
        path = f"/v2.0/ports/{port_id}/bindings/{host}/activate"
        reply = self._call(ctxt, "PUT", path, admin=True)
        if reply.status != 409:
            self._expect(reply)

    def binding_delete(self, ctxt: RequestContext, port_id: str, host: str) -> bool:
        """False when it was not there."""
        reply = self._call(ctxt, "DELETE", f"/v2.0/ports/{port_id}/bindings/{host}", admin=True)
        if reply.status == 404:
            return False
        self._expect(reply)
        return True

    def auto_topology(self, ctxt: RequestContext, project: str, *, dry_run: bool = False) -> str | None:
        """The network made (or with `dry_run` that could be made) for a project; None when that is impossible."""
        params = [("fields", "dry-run")] if dry_run else None
        reply = self._call(ctxt, "GET", f"/v2.0/auto-allocated-topology/{project}", params=params)
        if reply.status in (404, 409):
            return None
        return str(self._expect(reply).json()["auto_allocated_topology"]["id"])

    def _call(self, ctxt: RequestContext, method: str, path: str, *, admin: bool = False, **more: Any) -> Reply:
        reply = self._http.call(ctxt, method, path, admin=admin, **more)
        if reply.status == _UNAUTHORIZED and (admin or not ctxt.auth_token):
            # It is our credentials that Neutron does not take: no refusal of what a user asked for.
            raise self._http.error(reply)
        return reply

    def _expect(self, reply: Reply) -> Reply:
        if reply.ok:
            return reply
        error = self._http.error(reply)
        raise refusals.of(NeutronError(error.service, error.detail, error.status, error.kind))


def project_of(ctxt: RequestContext) -> str:
    """The project that the request acts in; one without is not entitled to networks of any."""
    if not ctxt.project_id:
        raise exceptions.InvalidInput(reason="the request names no project")
    return ctxt.project_id


def singular(noun: str) -> str:
    """`security-groups` -> `security_group`: the key of one item's body."""
    return noun.replace("-", "_").removesuffix("s")


BATCH = 150
"""Values of one filter in one query."""


def batches(filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same filters, a long list of values cut into shorter ones; an item has one value, so it comes once."""
    long = next((name for name, value in filters.items() if isinstance(value, list) and len(value) > BATCH), None)
    if long is None:
        yield dict(filters)
        return
    for start in range(0, len(filters[long]), BATCH):
        yield from batches({**filters, long: filters[long][start : start + BATCH]})


def pairs(filters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Query parameters: lists repeated, booleans as Neutron spells them."""
    out: list[tuple[str, Any]] = []
    for name, value in filters.items():
        values: Iterable[Any] = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
        out.extend((name, str(each) if isinstance(each, bool) else each) for each in values)
    return out
