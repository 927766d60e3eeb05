"""The documents of versions, open to everyone: ``/``, ``/v2/``, ``/v2.1/``."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from kilonova.contract import microversions
from kilonova.wire.http import faults
from kilonova.wire.http.app import Api
from kilonova.wire.http.faults import Fault

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def _version(name: str, status: str, updated: str, lowest: str, highest: str) -> dict[str, Any]:
    media_version = name.removeprefix("v").removesuffix(".0")
    return {
        "id": name,
        "status": status,
        "version": highest,
        "min_version": lowest,
        "updated": updated,
        "links": [{"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}],
        "media-types": [
            {
                "base": "application/json",
                "type": f"application/vnd.openstack.compute+json;version={media_version}",
            }
        ],
    }


VERSIONS: Final[Mapping[str, dict[str, Any]]] = {
    "/v2": _version("v2.0", "DEPRECATED", "2025-07-04T12:00:00Z", "", ""),
    "/v2.1": _version(
        "v2.1",
        "CURRENT",
        "2013-07-23T11:33:21Z",
        microversions.text(microversions.MIN),
        microversions.text(microversions.MAX),
    ),
}


class Documents:
    """Finds the document that a path names; paths of the API proper are left to it."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def find(self, environ: dict[str, Any]) -> Wsgi | None:
        path: str = environ.get("PATH_INFO") or "/"
        mount = "/v2.1" if path.startswith("/v2.1") else "/v2" if path.startswith("/v2") else ""
        beneath = path[len(mount) :]
        if not mount or (beneath and not beneath.startswith("/")):
            return self._choices if path.strip("/") else self._all
        return None if beneath.strip("/") else self._one(mount)

    def _one(self, mount: str) -> Wsgi:
        def show(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            headers: dict[str, str] = {}
            try:
                if mount == "/v2.1":
                    standard = environ.get("HTTP_OPENSTACK_API_VERSION")
                    older = environ.get("HTTP_X_OPENSTACK_NOVA_API_VERSION")
                    headers = self._api.negotiation.headers(self._api.negotiation.choose(standard, older))
            except Fault as fault:
                body = faults.document(fault.code, fault.message)
                return _answer(environ, start_response, fault.code, body, fault.headers)
            version = VERSIONS[mount]
            own = {"rel": "self", "href": f"{self._api.root(environ)}{mount}/"}
            shown = {"version": version | {"links": [own, *version["links"]]}}
            return _answer(environ, start_response, 200, shown, headers)

        return show

    def _all(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        listed = [
            {key: version[key] for key in ("id", "status", "version", "min_version", "updated")}
            | {"links": [{"rel": "self", "href": f"{self._api.root(environ)}{mount}/"}]}
            for mount, version in VERSIONS.items()
        ]
        return _answer(environ, start_response, 200, {"versions": listed}, {})

    def _choices(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"].rstrip("/")
        choices = [
            {
                "id": version["id"],
                "status": version["status"],
                "links": [{"rel": "self", "href": f"{self._api.root(environ)}{mount}{path}"}],
                "media-types": version["media-types"],
            }
            for mount, version in VERSIONS.items()
        ]
        return _answer(environ, start_response, 300, {"choices": choices}, {})


_REASONS: Final = {200: "OK", 300: "Multiple Choices", 400: "Bad Request", 406: "Not Acceptable"}


def _answer(
    environ: Mapping[str, Any],
    start_response: Callable[..., Any],
    code: int,
    body: Any,
    headers: Mapping[str, str],
) -> Iterable[bytes]:
    data = msgspec.json.encode(body)
    # Of the two kinds of answers only faults name a character set, in Nova as here.
    kind = "application/json; charset=UTF-8" if code >= 400 else "application/json"
    fixed = [("Content-Type", kind), ("Content-Length", str(len(data)))]
    start_response(f"{code} {_REASONS[code]}", [*fixed, *headers.items()])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [data]
