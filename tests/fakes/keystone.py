"""Keystone in memory: projects that exist, services, unified limits."""

from __future__ import annotations

import uuid
from typing import Any

from tests.fakes.web import FakeService, Refused, body, query, route

from kilonova.clients.http import Request


class FakeKeystone(FakeService):
    """`limits` are the registered ones, `project_limits` those of projects: as Keystone shows them."""

    def __init__(self) -> None:
        super().__init__()
        self.projects: set[str] = set()
        self.services: dict[str, str] = {"nova": "nova-service-id"}
        self.limits: list[dict[str, Any]] = []
        self.project_limits: list[dict[str, Any]] = []

    @route("GET", "/v3/projects/{project}")
    def project(self, request: Request, project: str) -> Any:
        if project not in self.projects:
            raise Refused(404, {"error": {"code": 404, "message": f"no project {project}"}})
        return {"project": {"id": project}}

    @route("GET", "/v3/services")
    def list_services(self, request: Request) -> Any:
        name = dict(query(request)).get("name")
        found = [{"id": id, "name": each} for each, id in self.services.items() if name in (None, each)]
        return self._page(request, "services", found)

    def _page(self, request: Request, key: str, found: list[dict[str, Any]]) -> Any:
        page, link = self.paged(request, found)
        return {key: page, "links": {"next": link}}

    @route("GET", "/v3/registered_limits")
    def registered_limits(self, request: Request) -> Any:
        return self._page(request, "registered_limits", _matching(self.limits, request))

    @route("POST", "/v3/registered_limits")
    def register_limits(self, request: Request) -> Any:
        return {"registered_limits": _add(self.limits, body(request)["registered_limits"])}

    @route("GET", "/v3/limits")
    def list_limits(self, request: Request) -> Any:
        return self._page(request, "limits", _matching(self.project_limits, request))

    @route("POST", "/v3/limits")
    def create_limits(self, request: Request) -> Any:
        new = body(request)["limits"]
        registered = {(each["service_id"], each.get("region_id"), each["resource_name"]) for each in self.limits}
        for each in new:
            if (each["service_id"], each.get("region_id"), each["resource_name"]) not in registered:
                raise _error(403, f"no registered limit for {each['resource_name']}")
        return {"limits": _add(self.project_limits, new)}


def _matching(limits: list[dict[str, Any]], request: Request) -> list[dict[str, Any]]:
    wanted = {name: value for name, value in query(request) if name not in ("limit", "marker")}
    return [each for each in limits if all(each.get(name, value) == value for name, value in wanted.items())]


def _add(limits: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    key = ("service_id", "region_id", "project_id", "resource_name")
    present = {tuple(each.get(name) for name in key) for each in limits}
    if any(tuple(each.get(name) for name in key) in present for each in new):
        raise _error(409, "duplicate entry")
    made = [{"id": uuid.uuid4().hex, "region_id": None, **each} for each in new]
    limits.extend(made)
    return made


def _error(status: int, message: str) -> Refused:
    return Refused(status, {"error": {"code": status, "message": message}})
