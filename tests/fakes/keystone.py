"""Keystone in memory: projects that exist."""

from __future__ import annotations

from typing import Any

from tests.fakes.web import FakeService, Refused, route

from kilonova.clients.http import Request


class FakeKeystone(FakeService):
    def __init__(self) -> None:
        super().__init__()
        self.projects: set[str] = set()
        self.limits: list[dict[str, Any]] = []

    @route("GET", "/v3/projects/{project}")
    def project(self, request: Request, project: str) -> Any:
        if project not in self.projects:
            raise Refused(404, {"error": {"code": 404, "message": f"no project {project}"}})
        return {"project": {"id": project}}

    @route("GET", "/v3/registered_limits")
    def registered_limits(self, request: Request) -> Any:
        return {"registered_limits": self.limits}
