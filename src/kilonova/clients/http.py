"""One way to talk to another service: a transport that sends, and `Http` that repeats what may be repeated.

A transport is replaced in tests by a small in-memory service, so that everything
above it (retries, error mapping, generations) is the code that runs in production.
"""

from __future__ import annotations

import json as jsonlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol, TypeAlias
from urllib.parse import unquote

import msgspec

from kilonova.base import retry
from kilonova.clients import passing, patience
from kilonova.clients.passing import Meaning
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})
USERS_OWN = frozenset({"cinder", "glance", "neutron"})
"""Services whose refusals speak of what users asked for; the others' speak of what we asked for."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_LONGEST_WORDS = 400

Params: TypeAlias = Mapping[str, Any] | Sequence[tuple[str, Any]]


class ServiceError(Exception):
    """Another service did not do what was asked; `meaning` says what that is worth (passing.py).

    `status` is None when no answer came. `kind` is the service's own name of the
    error (Neutron's type, Placement's code) where it has one.
    """

    def __init__(
        self,
        service: str,
        message: str,
        status: int | None = None,
        kind: str | None = None,
        *,
        meaning: Meaning | None = None,
    ) -> None:
        super().__init__(f"{service}: {message}" if status is None else f"{service}: {message} (HTTP {status})")
        self.service = service
        self.status = status
        self.kind = kind
        self.detail = message
        silent = Meaning.FINAL if meaning is None else meaning
        self.meaning = silent if status is None else passing.of_answer(status)

    @property
    def passes(self) -> bool:
        """Whether the service is only away, or too busy, for now."""
        return self.meaning.passes

    @property
    def refuses(self) -> bool:
        """Whether the service does not do this, however often and from wherever it is asked."""
        refused = self.status is not None and 400 <= self.status < 500 and not self.passes
        return refused and self.status not in _ABOUT_US

    @property
    def said(self) -> str | None:
        """The service's own words in one line of bounded length, if there are any."""
        # Another body than an error of the service's own is from something in between.
        if self.detail.startswith(("<", "{", "[")):
            return None
        return _CONTROL.sub(" ", self.detail)[:_LONGEST_WORDS] or None

    @property
    def words(self) -> str | None:
        """The service's own words, if it refused for good what a user asked for, and said why."""
        return self.said if self.refuses and self.service in USERS_OWN else None

    @property
    def ordinary(self) -> bool:
        """Whether the service refused, which its words explain."""
        return self.status is not None and 400 <= self.status < 500

    @property
    def for_users(self) -> str:
        """What everybody may read: of a service that is broken the words may tell of hosts and addresses."""
        if self.words is not None:
            return f"The service {self.service} refused: {self.words}"
        what = "does not answer" if self.status is None else f"answered with HTTP {self.status}"
        return f"The service {self.service} {what}."


_ABOUT_US = frozenset({401, 404, 405, 406, 407})
"""Refusals for which we are to blame (our credentials, our address of the service), unless the call knows better."""


class ServiceUnavailable(ServiceError):
    """No answer, or one that says try later; `sent` is False when the request certainly did not arrive."""

    def __init__(self, service: str, message: str, status: int | None = None, *, sent: bool = True) -> None:
        why = passing.LOST if sent else passing.REFUSED
        super().__init__(service, message, status, meaning=passing.SILENCE[why])

    @property
    def sent(self) -> bool:
        return self.meaning is not Meaning.UNDONE


class Unequipped(ServiceError):
    """The request could not be made: the service has no endpoint in the catalog, or we have no right to a token."""


class CredentialsMissing(Unequipped):
    """Neither a user's token nor credentials in the configuration are there for this call."""


class Reply(msgspec.Struct, frozen=True):
    """An answer: `content` is the raw body, empty for a streamed one."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status < 400

    def json(self) -> Any:
        return jsonlib.loads(self.content) if self.content else {}


class Request(msgspec.Struct, frozen=True):
    """A request to a path below the service's endpoint.

    `admin` sends the service's own credentials even where the context carries a user's token.
    """

    method: str
    path: str
    ctxt: RequestContext
    admin: bool = False
    params: Params | None = None
    body: Any = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    microversion: str | None = None
    timeout: float | None = None
    upload: IO[bytes] | Iterator[bytes] | None = None


class Transport(Protocol):
    """Sends a request once. Raises ServiceUnavailable when no answer comes."""

    def send(self, request: Request) -> Reply: ...

    def stream(self, request: Request) -> tuple[Reply, Iterable[bytes]]:
        """Like `send`, with the body in chunks."""
        ...


class Http:
    """A service's requests, repeated with jittered backoff where repeating is harmless.

    GET, HEAD, PUT and DELETE are repeated after whatever may be another time (passing.py), others only when the
    request certainly was not carried out. Where the work is patient (patience.py), what passes is waited for.
    """

    def __init__(self, service: str, transport: Transport, retries: int = 3) -> None:
        self.service = service
        self.transport = transport
        self._backoff = retry.Backoff(attempts=retries + 1, base=0.2, cap=5.0)

    def call(self, ctxt: RequestContext, method: str, path: str, **more: Any) -> Reply:
        """The answer, if it is final and below 500; keywords are those of `Request`.

        Raises ServiceUnavailable when attempts are used up, ServiceError for any other 5xx.
        """
        if _leads_elsewhere(path):
            return NOTHING_THERE
        request = Request(method, path, ctxt, **more)
        return patience.outlast(
            lambda: self._repeated(request),
            lambda exc: isinstance(exc, ServiceError) and exc.passes and may_repeat(request, exc),
            f"{method} {path} of {self.service}",
        )

    def _repeated(self, request: Request) -> Reply:
        return retry.call(
            lambda: self._once(request),
            on=lambda exc: isinstance(exc, ServiceError) and may_repeat(request, exc),
            backoff=self._backoff,
            before_retry=lambda exc, n: LOG.info("%s %s: attempt %d failed: %s", request.method, request.path, n, exc),
        )

    def _once(self, request: Request) -> Reply:
        reply = self.transport.send(request)
        if passing.of_answer(reply.status).passes:
            raise ServiceUnavailable(self.service, explain(reply)[1], reply.status)
        if reply.status >= 500:
            raise self.error(reply)
        return reply

    def error(self, reply: Reply) -> ServiceError:
        """The reply as an exception, with the service's own words."""
        kind, message = explain(reply)
        return ServiceError(self.service, message, reply.status, kind)


NOTHING_THERE = Reply(404)


def _leads_elsewhere(path: str) -> bool:
    """Whether a name in the path (of an image, say, which users write) is none, and would make it another request."""
    plain = unquote(path)
    return "?" in plain or "#" in plain or any(part in (".", "..") for part in re.split(r"[/\\]", plain))


def passes(exc: Exception) -> bool:
    """Whether another service is only away, or too busy, for now."""
    return isinstance(exc, ServiceError) and exc.passes


def may_repeat(request: Request, exc: ServiceError) -> bool:
    if request.upload is not None:
        return False
    return exc.meaning is Meaning.UNDONE or (exc.meaning is not Meaning.FINAL and request.method in IDEMPOTENT)


def explain(reply: Reply) -> tuple[str | None, str]:
    """(the service's name of the error, its message) from the error bodies that OpenStack services use."""
    try:
        body = reply.json()
    except ValueError:
        return None, reply.content[:200].decode("utf-8", "replace")
    if not isinstance(body, dict):
        return None, str(body)[:200]
    errors = body.get("errors")
    if isinstance(errors, list) and errors:
        return errors[0].get("code"), str(errors[0].get("detail") or errors[0].get("title"))
    inner = next((value for value in body.values() if isinstance(value, dict)), None)
    if inner is not None:
        return inner.get("type"), str(inner.get("message", inner))
    return body.get("code"), str(body.get("message") or body.get("NeutronError") or body or f"status {reply.status}")
