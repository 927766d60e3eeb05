"""Identity: does a project exist."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from kilonova.clients.http import Http
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

    def registered_limits(self, ctxt: RequestContext, service_id: str, region_id: str | None) -> list[dict[str, Any]]:
        """Unified limits registered for a service, as Keystone lists them."""
        params = {"service_id": service_id, **({"region_id": region_id} if region_id else {})}
        reply = self._http.call(ctxt, "GET", "/v3/registered_limits", admin=True, params=params)
        if not reply.ok:
            raise self._http.error(reply)
        return list(reply.json()["registered_limits"])
