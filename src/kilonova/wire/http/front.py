"""Outside of authentication: request ids, the open documents, the log line of each request.

What leaves here is fit to be sent: a header has printable ASCII in it, whatever a user's text was made of.
"""

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote

import msgspec
from oslo_context.context import generate_request_id

from kilonova.base import clock, present
from kilonova.contract.context import RequestContext
from kilonova.wire.http import faults, versions
from kilonova.wire.http.app import CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID, Api

LOG = logging.getLogger(__name__)
ACCESS = logging.getLogger("kilonova.http.access")

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]
_REQUEST_ID_FORM: Final = re.compile(r"req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")
_PATH_SAFE: Final = "/~!$&'()*+,;=:@"
_QUERY_SAFE: Final = _PATH_SAFE + "%?[]"
_KEPT: Final = 2000
"""Characters of a URL in the log."""


class Front:
    """The outermost application."""

    def __init__(self, api: Api, protected: Wsgi, open_paths: Callable[[dict[str, Any]], Wsgi | None]) -> None:
        self._api = api
        self._protected = protected
        self._open = open_paths

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        began = clock.monotonic()
        request_id = generate_request_id()
        given = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        environ[REQUEST_ID] = request_id
        environ[GLOBAL_REQUEST_ID] = given if _REQUEST_ID_FORM.fullmatch(given) else None
        if self._api.proxied:
            environ["REMOTE_ADDR"] = _client(environ)
        answer = _Answer(start_response, [(name, request_id) for name in self._api.request_id_headers])
        # Until it is known who asks, log lines have the request's id alone.
        asking = RequestContext(request_id=request_id, global_request_id=environ[GLOBAL_REQUEST_ID])
        with present.working(asking):
            body = self._answered(environ, answer)
        with present.working(environ.get(CONTEXT, asking)):
            _log(environ, answer, clock.monotonic() - began)
        return body

    def _answered(self, environ: dict[str, Any], answer: "_Answer") -> Iterable[bytes]:
        try:
            return (self._open(environ) or self._protected)(environ, answer.start)
        except Exception as error:
            LOG.exception("%s %s failed outside of the API", environ["REQUEST_METHOD"], _url(environ))
            if answer.status:
                raise
            message = f"The request failed inside the service ({type(error).__name__}); see its log."
            body = msgspec.json.encode(faults.document(500, message))
            kind = [("Content-Type", "application/json; charset=UTF-8"), ("Content-Length", str(len(body)))]
            answer.start("500 Internal Server Error", kind)
            return [body]


class _Answer:
    """What is sent as status and headers, as far as the log line says it."""

    def __init__(self, start_response: Callable[..., Any], more: Headers) -> None:
        self._start_response = start_response
        self._more = more
        self.status = self.length = self.version = ""

    def start(self, status: str, headers: Headers, exc_info: Any = None) -> Any:
        sent = [(name, printable(value)) for name, value in headers]
        by_name = {name.lower(): value for name, value in sent}
        self.status = status[:3]
        self.length = by_name.get("content-length", "")
        self.version = by_name.get(versions.OLDER.lower(), "")
        return self._start_response(status, sent + self._more, exc_info)


def printable(value: str) -> str:
    """Text as a header can carry it: in a URL what is none is percent-encoded, elsewhere nobody relies on it."""
    return _UNPRINTABLE.sub(lambda found: quote(found[0]), value)


def _client(environ: dict[str, Any]) -> str:
    """Who asked a trusted proxy, as the nearest one says: earlier entries of the list are the client's own words."""
    listed = environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
    return printable(listed or environ.get("REMOTE_ADDR", ""))


def _url(environ: dict[str, Any]) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING", "")
    shown = quote(path, _PATH_SAFE, "latin-1", "replace")
    return (shown + "?" + quote(query, _QUERY_SAFE, "latin-1", "replace") if query else shown)[:_KEPT]


def _log(environ: dict[str, Any], answer: _Answer, seconds: float) -> None:
    """One line in the form of Nova's, which operators' tools read."""
    ACCESS.info(
        '%s "%s %s" status: %s len: %s microversion: %s time: %.6f',
        environ.get("REMOTE_ADDR") or "-",
        printable(environ["REQUEST_METHOD"]),
        _url(environ),
        answer.status or "-",
        answer.length or "-",
        answer.version or "-",
        seconds,
    )
