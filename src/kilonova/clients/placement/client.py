"""Placement: candidates, claims, and what a host offers.

Generations are Placement's: a provider generation guards inventories, traits and
aggregates, a consumer generation guards allocations. Source: Placement API
reference, microversions up to 1.36.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from kilonova.base import retry
from kilonova.clients.http import Http, Params, Reply, ServiceError
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

CONCURRENT = "placement.concurrent_update"

TRAITS = "1.6"
RESOURCE_CLASSES = "1.7"
USAGES = "1.9"
NESTED = "1.14"
SHARING = "1.18"
AGGREGATES = "1.19"
CREATE_RETURNS = "1.20"
ERROR_CODES = "1.23"
"""From here on a refusal says which it is: without, a conflict of generations cannot be told from others."""
RESERVED_ALL = "1.26"
CONSUMERS = "1.28"
RESHAPER = "1.30"
CANDIDATES = "1.36"
"""The oldest Placement we work with offers this one."""

Resources: TypeAlias = Mapping[str, int]
ProviderAllocations: TypeAlias = Mapping[str, Mapping[str, Any]]
"""{provider uuid: {"resources": {class: amount}}}"""


class GenerationConflict(ServiceError):
    """Someone else changed the provider; read it again and decide anew."""


class AllocationConflict(ServiceError):
    """Someone else changed the consumer's allocations."""


class InventoryInUse(ServiceError):
    """An inventory cannot shrink below, or vanish under, what is allocated from it."""


class ProviderMissing(ServiceError):
    """No such resource provider."""


class Allocations(msgspec.Struct, frozen=True):
    """All a consumer holds. `generation` is None when it holds nothing (the consumer does not exist)."""

    allocations: dict[str, dict[str, Any]]
    generation: int | None = None
    project_id: str | None = None
    user_id: str | None = None

    def resources(self) -> dict[str, dict[str, int]]:
        """{provider uuid: {class: amount}}"""
        return {provider: dict(each["resources"]) for provider, each in self.allocations.items()}


class Provider(msgspec.Struct, frozen=True):
    """A resource provider; `generation` as last seen."""

    uuid: str
    name: str
    generation: int
    parent: str | None = None
    root: str | None = None


class Placement:
    """Calls to Placement with the service's own credentials."""

    def __init__(self, http: Http, sleep: Callable[[float], object] = time.sleep) -> None:
        self._http = http
        self._sleep = sleep

    def newest_version(self, ctxt: RequestContext) -> str:
        """The highest microversion it speaks. Raises ServiceError."""
        versions = self._expect(self._call(ctxt, "GET", "/", None)).json()["versions"]
        return str(versions[0]["max_version"])

    # --- choosing and claiming -------------------------------------------------------------

    def allocation_candidates(
        self, ctxt: RequestContext, query: Params
    ) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """(allocation requests, provider summaries) for a query as GET /allocation_candidates takes it.

        Each request is `{"allocations": {provider: {"resources": ...}}, "mappings": {suffix: [providers]}}`.
        Raises ServiceError with status 400 for a query that Placement refuses (an unknown trait, say).
        """
        reply = self._expect(self._call(ctxt, "GET", "/allocation_candidates", CANDIDATES, params=query))
        body = reply.json()
        return body["allocation_requests"], body["provider_summaries"]

    def claim(
        self,
        ctxt: RequestContext,
        consumer: str,
        allocation_request: Mapping[str, Any],
        project: str,
        user: str,
        generation: int | None = None,
    ) -> bool:
        """Take a candidate for a consumer that holds nothing yet (`generation` None) or is at that generation.

        False: the providers have no room any more. Repeating a claim that succeeded is True.
        Raises AllocationConflict when the consumer holds something else.
        """
        wanted = {
            provider: {"resources": dict(each["resources"])}
            for provider, each in allocation_request["allocations"].items()
        }
        body = allocation_body(wanted, project, user, generation)
        if allocation_request.get("mappings"):
            body["mappings"] = allocation_request["mappings"]
        try:
            return self._put(ctxt, consumer, body, CANDIDATES)
        except AllocationConflict:
            held = self.allocations_get(ctxt, consumer)
            if held.resources() == {provider: each["resources"] for provider, each in wanted.items()}:
                return True
            raise

    # --- allocations -----------------------------------------------------------------------

    def allocations_get(self, ctxt: RequestContext, consumer: str) -> Allocations:
        """What a consumer holds; empty when it holds nothing."""
        body = self._expect(self._call(ctxt, "GET", f"/allocations/{consumer}", CONSUMERS)).json()
        held = body.get("allocations") or {}
        if not held:
            return Allocations({})
        return Allocations(held, body.get("consumer_generation"), body.get("project_id"), body.get("user_id"))

    def allocations_put(
        self,
        ctxt: RequestContext,
        consumer: str,
        allocations: ProviderAllocations,
        project: str,
        user: str,
        generation: int | None,
    ) -> bool:
        """Replace all that a consumer holds. False: no room. Raises AllocationConflict when `generation` is old."""
        return self._put(ctxt, consumer, allocation_body(allocations, project, user, generation), CONSUMERS)

    def allocations_delete(self, ctxt: RequestContext, consumer: str, *, force: bool = False) -> bool:
        """Let go of everything a consumer holds; False when it held nothing.

        Without `force`, what changes meanwhile is respected: AllocationConflict after a few attempts.
        """
        if force:
            reply = self._call(ctxt, "DELETE", f"/allocations/{consumer}", None)
            if reply.status == 404:
                return False
            self._expect(reply)
            return True
        return retry.call(
            lambda: self._release(ctxt, consumer), on=(AllocationConflict,), backoff=CONFLICT, sleep=self._sleep
        )

    def _release(self, ctxt: RequestContext, consumer: str) -> bool:
        held = self.allocations_get(ctxt, consumer)
        if not held.allocations:
            return False
        body = allocation_body({}, held.project_id or "", held.user_id or "", held.generation)
        return self._put(ctxt, consumer, body, CONSUMERS)

    def allocations_move(self, ctxt: RequestContext, consumers: Mapping[str, Mapping[str, Any]]) -> bool:
        """Replace several consumers' allocations in one transaction (POST /allocations).

        Values are bodies made by `allocation_body`. False: no room. Raises AllocationConflict.
        """
        reply = self._patiently(lambda: self._call(ctxt, "POST", "/allocations", CONSUMERS, body=dict(consumers)))
        return self._taken(reply)

    def allocations_by_provider(self, ctxt: RequestContext, provider: str) -> dict[str, dict[str, int]]:
        """{consumer: {class: amount}} of what is taken from one provider."""
        reply = self._call(ctxt, "GET", f"/resource_providers/{provider}/allocations", None)
        body = self._expect(reply, missing=provider).json()
        return {consumer: each["resources"] for consumer, each in body["allocations"].items()}

    def usages(self, ctxt: RequestContext, project: str, user: str | None = None) -> dict[str, int]:
        """{class: amount} a project (or one user in it) holds in total."""
        params = {"project_id": project, **({"user_id": user} if user else {})}
        return dict(self._expect(self._call(ctxt, "GET", "/usages", USAGES, params=params)).json()["usages"])

    def _put(self, ctxt: RequestContext, consumer: str, body: Mapping[str, Any], version: str) -> bool:
        path = f"/allocations/{consumer}"
        return self._taken(self._patiently(lambda: self._call(ctxt, "PUT", path, version, body=body)))

    def _taken(self, reply: Reply) -> bool:
        if reply.ok:
            return True
        if reply.status != 409:
            raise self._http.error(reply)
        error = self._http.error(reply)
        if error.kind == CONCURRENT:
            raise AllocationConflict(error.service, error.detail, 409, error.kind)
        LOG.debug("no room: %s", error.detail)
        return False

    def _patiently(self, send: Callable[[], Reply]) -> Reply:
        """Send again while providers change under us; a consumer's change is the caller's to judge."""
        for wait in CONFLICT.waits():
            reply = send()
            if not self._provider_race(reply):
                return reply
            self._sleep(wait)
        return send()

    def _provider_race(self, reply: Reply) -> bool:
        if reply.status != 409:
            return False
        error = self._http.error(reply)
        return error.kind == CONCURRENT and "consumer generation conflict" not in error.detail

    # --- providers -------------------------------------------------------------------------

    def provider_get(self, ctxt: RequestContext, uuid: str) -> Provider | None:
        reply = self._call(ctxt, "GET", f"/resource_providers/{uuid}", NESTED)
        return None if reply.status == 404 else provider(self._expect(reply).json())

    def provider_by_name(self, ctxt: RequestContext, name: str) -> Provider | None:
        found = self._providers(ctxt, {"name": name})
        return found[0] if found else None

    def providers(self, ctxt: RequestContext, uuid: str | None = None) -> list[Provider]:
        """Every provider, roots and what is below them; with `uuid` that one, if it exists."""
        return self._providers(ctxt, {"uuid": uuid} if uuid else {})

    def provider_ensure(self, ctxt: RequestContext, uuid: str, name: str, parent: str | None = None) -> Provider:
        """The provider, created when it is not there. Raises ServiceError 409 when another one has the name."""
        found = self.provider_get(ctxt, uuid)
        if found is not None:
            return found
        body = {"uuid": uuid, "name": name, **({"parent_provider_uuid": parent} if parent else {})}
        reply = self._call(ctxt, "POST", "/resource_providers", CREATE_RETURNS, body=body)
        if reply.status == 409:
            found = self.provider_get(ctxt, uuid)
            if found is not None:
                return found
        return provider(self._expect(reply).json())

    def provider_delete(self, ctxt: RequestContext, uuid: str) -> bool:
        """False when it was not there. Raises InventoryInUse when allocations or children hang on it."""
        reply = self._call(ctxt, "DELETE", f"/resource_providers/{uuid}", None)
        if reply.status == 404:
            return False
        self._expect(reply)
        return True

    def provider_tree(self, ctxt: RequestContext, uuid: str) -> list[Provider]:
        """The provider's whole tree, root first where Placement lists it so."""
        return self._providers(ctxt, {"in_tree": uuid})

    def sharing_providers(self, ctxt: RequestContext, aggregates: Iterable[str]) -> list[Provider]:
        """Providers that share through any of the aggregates."""
        params = {"member_of": f"in:{','.join(aggregates)}", "required": "MISC_SHARES_VIA_AGGREGATE"}
        return self._providers(ctxt, params, SHARING)

    def _providers(self, ctxt: RequestContext, params: Params, version: str = NESTED) -> list[Provider]:
        body = self._expect(self._call(ctxt, "GET", "/resource_providers", version, params=params)).json()
        return [provider(each) for each in body["resource_providers"]]

    # --- what a provider offers ------------------------------------------------------------

    def inventory_get(self, ctxt: RequestContext, uuid: str) -> tuple[dict[str, dict[str, Any]], int]:
        """({class: record}, provider generation)."""
        body = self._expect(
            self._call(ctxt, "GET", f"/resource_providers/{uuid}/inventories", None), missing=uuid
        ).json()
        return body["inventories"], body["resource_provider_generation"]

    def inventory_set(
        self, ctxt: RequestContext, uuid: str, inventories: Mapping[str, Mapping[str, Any]], generation: int
    ) -> int:
        """Replace the inventory; the new generation. Raises GenerationConflict, InventoryInUse."""
        body = {"inventories": dict(inventories), "resource_provider_generation": generation}
        reply = self._call(ctxt, "PUT", f"/resource_providers/{uuid}/inventories", RESERVED_ALL, body=body)
        if reply.status == 400 and "resource class" in self._http.error(reply).detail.lower():
            self.resource_classes_ensure(ctxt, (name for name in inventories if name.startswith("CUSTOM_")))
            reply = self._call(ctxt, "PUT", f"/resource_providers/{uuid}/inventories", RESERVED_ALL, body=body)
        return int(self._expect(reply, missing=uuid).json()["resource_provider_generation"])

    def traits_get(self, ctxt: RequestContext, uuid: str) -> tuple[set[str], int]:
        """(traits, provider generation)."""
        body = self._expect(self._call(ctxt, "GET", f"/resource_providers/{uuid}/traits", TRAITS), missing=uuid).json()
        return set(body["traits"]), body["resource_provider_generation"]

    def traits_set(self, ctxt: RequestContext, uuid: str, traits: Iterable[str], generation: int) -> int:
        """Replace the traits, creating custom ones that are new; the new generation. Raises GenerationConflict."""
        wanted = sorted(set(traits))
        self.traits_ensure(ctxt, wanted)
        body = {"traits": wanted, "resource_provider_generation": generation}
        reply = self._call(ctxt, "PUT", f"/resource_providers/{uuid}/traits", ERROR_CODES, body=body)
        return int(self._expect(reply, missing=uuid).json()["resource_provider_generation"])

    def traits_ensure(self, ctxt: RequestContext, traits: Iterable[str]) -> None:
        """Create the custom traits that Placement does not know."""
        custom = [name for name in traits if name.startswith("CUSTOM_")]
        if not custom:
            return
        params = {"name": f"in:{','.join(custom)}"}
        known = set(self._expect(self._call(ctxt, "GET", "/traits", TRAITS, params=params)).json()["traits"])
        for name in set(custom) - known:
            self._expect(self._call(ctxt, "PUT", f"/traits/{name}", TRAITS))

    def resource_classes_ensure(self, ctxt: RequestContext, names: Iterable[str]) -> None:
        """Create custom resource classes; existing ones stay as they are."""
        for name in names:
            self._expect(self._call(ctxt, "PUT", f"/resource_classes/{name}", RESOURCE_CLASSES))

    def aggregates_get(self, ctxt: RequestContext, uuid: str) -> tuple[set[str], int]:
        """(aggregate uuids, provider generation)."""
        reply = self._call(ctxt, "GET", f"/resource_providers/{uuid}/aggregates", AGGREGATES)
        body = self._expect(reply, missing=uuid).json()
        return set(body["aggregates"]), body["resource_provider_generation"]

    def aggregates_set(self, ctxt: RequestContext, uuid: str, aggregates: Iterable[str], generation: int) -> int:
        """Replace the aggregates; the new generation. Raises GenerationConflict."""
        body = {"aggregates": sorted(set(aggregates)), "resource_provider_generation": generation}
        reply = self._call(ctxt, "PUT", f"/resource_providers/{uuid}/aggregates", ERROR_CODES, body=body)
        return int(self._expect(reply, missing=uuid).json()["resource_provider_generation"])

    def reshape(
        self,
        ctxt: RequestContext,
        inventories: Mapping[str, Mapping[str, Any]],
        allocations: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Move inventories and the allocations from them in one transaction. Raises GenerationConflict."""
        body = {"inventories": dict(inventories), "allocations": dict(allocations)}
        self._expect(self._call(ctxt, "POST", "/reshaper", RESHAPER, body=body))

    # --- shared ----------------------------------------------------------------------------

    def _call(self, ctxt: RequestContext, method: str, path: str, version: str | None, **more: Any) -> Reply:
        return self._http.call(ctxt, method, path, admin=True, microversion=version, **more)

    def _expect(self, reply: Reply, missing: str | None = None) -> Reply:
        if reply.ok:
            return reply
        error = self._http.error(reply)
        if reply.status == 404 and missing is not None:
            raise ProviderMissing(error.service, f"no resource provider {missing}", 404, error.kind)
        if reply.status == 409:
            kind: type[ServiceError] = GenerationConflict if error.kind == CONCURRENT else InventoryInUse
            raise kind(error.service, error.detail, 409, error.kind)
        raise error


CONFLICT = retry.Backoff(attempts=6, base=0.1, cap=2.0)


def allocation_body(
    allocations: ProviderAllocations, project: str, user: str, generation: int | None
) -> dict[str, Any]:
    """The body of PUT /allocations/{consumer}, and one consumer's part of POST /allocations (1.28)."""
    return {
        "allocations": {provider: {"resources": dict(each["resources"])} for provider, each in allocations.items()},
        "project_id": project,
        "user_id": user,
        "consumer_generation": generation,
    }


def provider(body: Mapping[str, Any]) -> Provider:
    return Provider(
        body["uuid"],
        body["name"],
        body["generation"],
        body.get("parent_provider_uuid"),
        body.get("root_provider_uuid"),
    )
