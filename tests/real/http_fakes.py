"""The fakes of the other services behind one HTTP port, for tests whose services are processes of their own."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from tests import fakes

from kilonova.clients.http import Reply, Request, ServiceUnavailable
from kilonova.contract.context import RequestContext
from kilonova.wire.http.server import serve

SERVICES = ("placement", "neutron", "glance", "cinder")


class HttpFakes:
    """`url(service)` is that service's endpoint; `cloud` holds the fakes, open for assertions."""

    def __init__(self) -> None:
        self.cloud = fakes.Cloud()
        self._server = serve(self._answer, "127.0.0.1", 0, threads=8)
        self._server.start()

    def url(self, service: str) -> str:
        return f"http://127.0.0.1:{self._server.port}/{service}"

    def stop(self) -> None:
        self._server.stop(10)

    def _answer(self, environ: Mapping[str, Any], start_response: Any) -> Iterable[bytes]:
        _, service, path = environ["PATH_INFO"].split("/", 2)
        request = _request(environ, "/" + path)
        try:
            reply = getattr(self.cloud, service).send(request)
        except ServiceUnavailable:
            reply = Reply(503, b"{}")
        headers = {"Content-Type": "application/json", **reply.headers, "Content-Length": str(len(reply.content))}
        start_response(f"{reply.status} x", list(headers.items()))
        return [reply.content]


def _request(environ: Mapping[str, Any], path: str) -> Request:
    """Without a token, or with the one of keystoneauth's plugin `none`, it comes from a service."""
    token = environ.get("HTTP_X_AUTH_TOKEN")
    token = None if token == "notused" else token
    user, _, project = (token or "service:service").partition(":")
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = json.loads(environ["wsgi.input"].read(length)) if length else None
    version = environ.get("HTTP_OPENSTACK_API_VERSION")
    return Request(
        environ["REQUEST_METHOD"],
        path,
        RequestContext(user, project or "service", auth_token=token, overwrite=False),
        admin=token is None,
        params=urllib.parse.parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True),
        body=body,
        microversion=version.split()[-1] if version else None,
        headers={name[5:].replace("_", "-").title(): v for name, v in environ.items() if name.startswith("HTTP_IF_")},
    )
