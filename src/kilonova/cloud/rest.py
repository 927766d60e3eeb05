"""A small client of Keystone and the other REST services, for setting a cloud up. Standard library only."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

from kilonova.cloud import loopback
from kilonova.cloud.errors import CloudError
from kilonova.cloud.site import Site

UNAVAILABLE: Final = 503
PATIENCE: Final = 30.0
"""Seconds for which a service may be unavailable."""
EVERY: Final = 0.5


class RestError(CloudError):
    def __init__(self, method: str, url: str, code: int, text: str) -> None:
        super().__init__(f"{method} {url} answered {code}: {text[:500]}")
        self.code = code


class Rest:
    """One user's token in one project; `call` speaks JSON."""

    def __init__(self, site: Site, user: str = "admin", project: str = "admin") -> None:
        self.site = site
        self.user = user
        self.project = project
        self.token = ""
        self.project_id = ""

    def login(self) -> None:
        domain = {"id": "default"}
        body = {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {
                        "user": {"name": self.user, "domain": domain, "password": self.site.user_password(self.user)}
                    },
                },
                "scope": {"project": {"name": self.project, "domain": domain}},
            }
        }
        url = self.site.url("keystone", "/v3/auth/tokens")
        _, headers, data = self.send("POST", url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        self.token = headers["X-Subject-Token"]
        self.project_id = json.loads(data)["token"]["project"]["id"]

    def send(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str], timeout: float = 120
    ) -> tuple[int, Mapping[str, str], bytes]:
        request = urllib.request.Request(url, data, dict(headers), method=method)  # noqa: S310  our own http URLs
        try:
            with loopback.opened(request, timeout) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            raise RestError(method, url, error.code, error.read().decode(errors="replace")) from error
        except OSError as error:
            raise CloudError(f"{method} {url}: {error}") from error

    def call(self, method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        if not self.token:
            self.login()
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        sent = {"X-Auth-Token": self.token, "Accept": "application/json"} | (
            {"Content-Type": kind} if data is not None else {}
        )
        _, _, answer = self.repeated(method, url, data, sent | dict(headers or {}))
        return json.loads(answer) if answer else None

    def repeated(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """As `send`; what only asks is asked again while a service says that another one is not there yet."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.send(method, url, data, headers)
            except RestError as error:
                if method != "GET" or error.code != UNAVAILABLE or time.monotonic() > end:
                    raise
            time.sleep(EVERY)

    def get(self, url: str, **headers: str) -> Any:
        return self.call("GET", url, headers=headers)

    def post(self, url: str, body: Any, headers: Mapping[str, str] | None = None) -> Any:
        return self.call("POST", url, body, headers)

    def put(self, url: str, body: Any = None) -> Any:
        return self.call("PUT", url, body)

    def find(self, url: str, plural: str, name: str, **query: str) -> Any:
        """The first resource of that name, or None."""
        link = f"{url}?{urllib.parse.urlencode({'name': name, **query})}"
        found = [item for item in self.get(link)[plural] if item.get("name") == name]
        return found[0] if found else None

    def ensure(self, url: str, singular: str, body: dict[str, Any]) -> Any:
        """The resource of that name, made if there is none."""
        found = self.find(url, f"{singular}s", body["name"])
        return found or self.post(url, {singular: body})[singular]


def poll(what: str, ask: Callable[[], Any], within: float, every: float = 0.5) -> Any:
    """Ask until the answer is true."""
    end = time.monotonic() + within
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            raise CloudError(f"{what}: not within {within:.0f} s")
        time.sleep(every)


def patient(ask: Callable[[], Any]) -> Callable[[], Any]:
    """The question, with a service that does not answer yet taken for a no."""

    def asked() -> Any:
        try:
            return ask()
        except CloudError:
            return False

    return asked
