"""A request as a handler sees it, and what a handler may answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from kilonova.contract.cards import Route
from kilonova.contract.context import RequestContext
from kilonova.wire.http.policy import Policy

Services = TypeVar("Services")

_EACH_COUNTS: Final = frozenset({"sort_key", "sort_dir"})
"""Parameters of a list of which every value counts, not the last one alone."""


@dataclass(slots=True)
class Call(Generic[Services]):
    """One authenticated, validated request.

    ``version`` is the minor version, 0 on the legacy endpoint. ``query`` maps known parameters to lists of values.
    ``root`` is the URL of the service (``http://host:port``), ``prefix`` that of the API (``/v2.1``), ``project``
    the project id when the URL had one (``/abc``) and ``path`` the path beneath them. ``idempotency_key`` is the
    header of that name, with which a client may repeat a request (draft-ietf-httpapi-idempotency-key-header).
    """

    route: Route
    context: RequestContext
    version: int
    services: Services
    policy: Policy
    query: dict[str, list[str]] = field(default_factory=dict)
    body: Any = None
    root: str = ""
    prefix: str = ""
    project: str = ""
    path: str = ""
    idempotency_key: str | None = None

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Let pass, or raise `Fault` 403. Without a target the caller's own project and user are meant."""
        self.policy.authorize(rule, target, self.context)

    def allows(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Whether a rule that only hides or widens something passes."""
        return self.policy.allows(rule, target, self.context)

    def first(self, name: str, default: str | None = None) -> str | None:
        """The first value of a URL parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def last(self, name: str, default: str | None = None) -> str | None:
        """The last value of a URL parameter."""
        values = self.query.get(name)
        return values[-1] if values else default

    def url(self, path: str) -> str:
        """The URL of a path beneath the API."""
        return f"{self.root}{self.prefix}{self.project}{path}"

    def links(self, path: str) -> list[dict[str, str]]:
        """The two links of a resource: with the API's version, and without as a bookmark."""
        return [
            {"rel": "self", "href": self.url(path)},
            {"rel": "bookmark", "href": f"{self.root}{self.project}{path}"},
        ]

    def next_link(self, marker: str) -> dict[str, str]:
        """The link to the page after ``marker``: the same parameters by name, of each what counts, with that marker."""
        pairs = [
            (name, value)
            for name, values in sorted(self.query.items())
            if name != "marker"
            for value in (values if name in _EACH_COUNTS else values[-1:])
        ]
        # Where there is none yet it comes last, as in Nova's links.
        links = [*pairs, ("marker", marker)]
        wanted = sorted(links, key=lambda pair: pair[0]) if "marker" in self.query else links
        return {"rel": "next", "href": f"{self.url(self.path)}?{urlencode(wanted)}"}


@dataclass(slots=True)
class Reply:
    """An answer that is more than a body: another code, headers, or a body already in the asked version's form."""

    body: Any = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ready: bool = False


Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Binding:
    """A route and the function that serves it: ``handler(call, **path parameters) -> dict | None | Reply``."""

    route: Route
    handler: Handler
