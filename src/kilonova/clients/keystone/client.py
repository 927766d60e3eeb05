"""Identity: does a project exist, and what limits are there."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from kilonova.clients import paging
from kilonova.clients.http import Http, Params
from kilonova.contract.context import RequestContext


class Keystone:
    """Calls to the identity service (API v3)."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def project_exists(self, ctxt: RequestContext, project_id: str) -> bool | None:
        """True or False; None when we may not ask (403), which callers should take as yes."""
        reply = self._http.call(ctxt, "GET", f"/v3/projects/{quote(project_id, safe='')}")
        if reply.ok:
            return True
        if reply.status == 404:
            return False
        if reply.status in (401, 403):
            return None
        raise self._http.error(reply)

    def service_id(self, ctxt: RequestContext, name: str) -> str | None:
        """The id of the catalog's service of this name."""
        found = self._list(ctxt, "services", {"name": name})
        return str(found[0]["id"]) if found else None

    # --- unified limits --------------------------------------------------------------------

    def registered_limits(self, ctxt: RequestContext, service_id: str, region_id: str | None) -> list[dict[str, Any]]:
        """Unified limits registered for a service, as Keystone lists them."""
        return self._list(ctxt, "registered_limits", _present(service_id=service_id, region_id=region_id))

    def project_limits(
        self, ctxt: RequestContext, service_id: str, region_id: str | None, project_id: str
    ) -> list[dict[str, Any]]:
        """A project's own limits of a service, as Keystone lists them."""
        wanted = _present(service_id=service_id, region_id=region_id, project_id=project_id)
        return self._list(ctxt, "limits", wanted)

    def registered_limit_create(
        self, ctxt: RequestContext, service_id: str, region_id: str | None, resource: str, limit: int
    ) -> bool:
        """What every project may have of a resource; False when that is registered already."""
        new = _present(service_id=service_id, region_id=region_id, resource_name=resource, default_limit=limit)
        return self._create(ctxt, "registered_limits", new)

    def project_limit_create(
        self, ctxt: RequestContext, service_id: str, region_id: str | None, project_id: str, resource: str, limit: int
    ) -> bool:
        """What one project may have of a resource; False when it has a limit of its own already."""
        new = _present(
            service_id=service_id,
            region_id=region_id,
            project_id=project_id,
            resource_name=resource,
            resource_limit=limit,
        )
        return self._create(ctxt, "limits", new)

    def _create(self, ctxt: RequestContext, noun: str, new: dict[str, Any]) -> bool:
        reply = self._http.call(ctxt, "POST", f"/v3/{noun}", admin=True, body={noun: [new]})
        if reply.status == 409:
            return False
        if not reply.ok:
            raise self._http.error(reply)
        return True

    def _list(self, ctxt: RequestContext, noun: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        def ask(query: Params) -> Any:
            reply = self._http.call(ctxt, "GET", f"/v3/{noun}", admin=True, params=query)
            if not reply.ok:
                raise self._http.error(reply)
            return reply.json()

        return list(paging.every("keystone", ask, params, noun))


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
