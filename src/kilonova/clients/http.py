"""One way to talk to another service: a transport that sends, and `Http` that repeats what may be repeated.

A transport is replaced in tests by a small in-memory service, so that everything
above it (retries, error mapping, generations) is the code that runs in production.
"""

from __future__ import annotations

import json as jsonlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol, TypeAlias

import msgspec

from kilonova.base import retry
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})
UNAVAILABLE = frozenset({502, 503, 504})
"""Answers of a service or proxy that is busy or starting."""

PASSING = UNAVAILABLE | {500}
"""Answers that may be another when asked again: services answer 500 when their database lost a race, too."""

Params: TypeAlias = Mapping[str, Any] | Sequence[tuple[str, Any]]


class ServiceError(Exception):
    """Another service did not do what was asked.

    `status` is None when no answer came. `kind` is the service's own name of the
    error (Neutron's type, Placement's code) where it has one.
    """

    def __init__(self, service: str, message: str, status: int | None = None, kind: str | None = None) -> None:
        super().__init__(f"{service}: {message}" if status is None else f"{service}: {message} (HTTP {status})")
        self.service = service
        self.status = status
        self.kind = kind
        self.detail = message

    @property
    def ordinary(self) -> bool:
        """Whether the service refused, which its words explain."""
        return self.status is not None and 400 <= self.status < 500

    @property
    def for_users(self) -> str:
        """What everybody may read: the service's own words may tell of hosts and addresses."""
        what = "does not answer" if self.status is None else f"answered with HTTP {self.status}"
        return f"The service {self.service} {what}."


class ServiceUnavailable(ServiceError):
    """No answer, or one that says try later; `sent` is False when the request certainly did not arrive."""

    def __init__(self, service: str, message: str, status: int | None = None, *, sent: bool = True) -> None:
        super().__init__(service, message, status)
        self.sent = sent


class CredentialsMissing(ServiceError):
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

    GET, HEAD, PUT and DELETE are repeated after a failed connection or a 500, 502,
    503 or 504; others only when the request certainly did not arrive.
    """

    def __init__(self, service: str, transport: Transport, retries: int = 3) -> None:
        self.service = service
        self.transport = transport
        self._backoff = retry.Backoff(attempts=retries + 1, base=0.2, cap=5.0)

    def call(self, ctxt: RequestContext, method: str, path: str, **more: Any) -> Reply:
        """The answer, whatever its status below 500; keywords are those of `Request`.

        Raises ServiceUnavailable when attempts are used up, ServiceError for any other 5xx.
        """
        request = Request(method, path, ctxt, **more)
        return retry.call(
            lambda: self._once(request),
            on=lambda exc: isinstance(exc, ServiceError) and may_repeat(request, exc),
            backoff=self._backoff,
            before_retry=lambda exc, n: LOG.info("%s %s: attempt %d failed: %s", method, path, n, exc),
        )

    def _once(self, request: Request) -> Reply:
        reply = self.transport.send(request)
        if reply.status in UNAVAILABLE:
            raise ServiceUnavailable(self.service, explain(reply)[1], reply.status)
        if reply.status >= 500:
            raise self.error(reply)
        return reply

    def error(self, reply: Reply) -> ServiceError:
        """The reply as an exception, with the service's own words."""
        kind, message = explain(reply)
        return ServiceError(self.service, message, reply.status, kind)


def may_repeat(request: Request, exc: ServiceError) -> bool:
    if request.upload is not None:
        return False
    unsent = isinstance(exc, ServiceUnavailable) and not exc.sent
    passing = exc.status in PASSING or (exc.status is None and isinstance(exc, ServiceUnavailable))
    return unsent or (passing and request.method in IDEMPOTENT)


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
