"""A service in memory that answers like one over HTTP, with latency and failures on demand."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kilonova.clients.http import Reply, Request, ServiceUnavailable

Handler = Callable[..., Any]


def route(method: str, template: str) -> Callable[[Handler], Handler]:
    """Mark a method as the handler of `METHOD /path/{name}`; it gets the request and the path's values."""

    def mark(handler: Handler) -> Handler:
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template) + "$")
        handler.routes = [*getattr(handler, "routes", ()), (method, pattern)]  # type: ignore[attr-defined]
        return handler

    return mark


class Refused(Exception):
    """A handler's way to answer with an error."""

    def __init__(self, status: int, body: Any) -> None:
        self.reply = reply(status, body)


@dataclasses.dataclass
class Fault:
    """What happens to the next matching requests instead of (or after) the real thing."""

    method: str
    path: re.Pattern[str]
    times: int
    answer: Reply | Exception
    after: bool = False


class FakeService:
    """Dispatches requests to the marked methods, one at a time; bodies pass through JSON.

    `calls` lists what came in: (method, path). Set `latency` (seconds) to make it slow.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.calls: list[tuple[str, str]] = []
        self.requests: list[Request] = []
        self.latency = 0.0
        self.page = 2
        """Items on one page of a list, whatever is asked for: all that lists must follow pages."""
        self.away: int | None = None
        """While set, every request is answered with this status; with 0 nobody listens."""
        self.faults: list[Fault] = []
        self._routes = [
            (method, pattern, getattr(self, name))
            for name in dir(type(self))
            for method, pattern in getattr(getattr(type(self), name), "routes", ())
        ]

    # --- the transport ---------------------------------------------------------------------

    def send(self, request: Request) -> Reply:
        if self.latency:
            time.sleep(self.latency)
        with self.lock:
            self.calls.append((request.method, request.path))
            self.requests.append(request)
            if self.away == 0:
                raise ServiceUnavailable("fake", "Connection refused", sent=False)
            if self.away:
                return reply(self.away, {"message": "away"})
            fault = self._fault(request)
            if fault is not None and not fault.after:
                return answer(fault)
            done = self._dispatch(request)
            return answer(fault) if fault is not None else done

    def stream(self, request: Request) -> tuple[Reply, Iterable[bytes]]:
        found = self.send(request)
        if found.status >= 400:
            return found, ()
        size = 1 << 16
        chunks = [found.content[at : at + size] for at in range(0, len(found.content), size)]
        return Reply(found.status, headers=found.headers), chunks

    def _dispatch(self, request: Request) -> Reply:
        for method, pattern, handler in self._routes:
            match = pattern.match(request.path)
            if match and method == request.method:
                try:
                    found = handler(request, **match.groupdict())
                except Refused as exc:
                    return exc.reply
                return found if isinstance(found, Reply) else reply(200, found)
        return reply(404, {"message": f"no route {request.method} {request.path}"})

    def paged(self, request: Request, items: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str | None]:
        """One page of `items` and the address of the next one, which services give with every full page."""
        wanted = dict(query(request))
        limit = min(self.page, int(wanted.get("limit") or self.page))
        marker = wanted.get("marker")
        ids = [str(each.get("id") or number) for number, each in enumerate(items)]
        if marker is not None and marker not in ids:
            raise Refused(400, {"badRequest": {"code": 400, "message": f"marker {marker} is not found"}})
        start = 0 if marker is None else ids.index(marker) + 1
        shown = items[start : start + limit]
        if len(shown) < limit:
            return shown, None
        more = urllib.parse.urlencode({"limit": limit, "marker": ids[start + limit - 1]})
        return shown, f"http://service{request.path}?{more}"

    # --- failures on demand ----------------------------------------------------------------

    def fail(
        self,
        method: str,
        path: str,
        *,
        status: int = 500,
        body: Any = None,
        times: int = 1,
        after: bool = False,
    ) -> None:
        """Answer the next `times` matching requests (regular expression, from the start of the path) with an error.

        `after`: the request is carried out first, so that its answer is what gets lost.
        """
        self.faults.append(Fault(method, re.compile(path), times, reply(status, body or {}), after))

    def unreachable(self, method: str, path: str, *, times: int = 1, after: bool = False) -> None:
        """Like `fail`, but no answer comes at all."""
        lost = ServiceUnavailable("fake", "connection lost", sent=after)
        self.faults.append(Fault(method, re.compile(path), times, lost, after))

    def _fault(self, request: Request) -> Fault | None:
        for fault in self.faults:
            if fault.times and fault.method == request.method and fault.path.match(request.path):
                fault.times -= 1
                return fault
        return None


def answer(fault: Fault) -> Reply:
    if isinstance(fault.answer, Exception):
        raise fault.answer
    return fault.answer


def reply(status: int, body: Any = None) -> Reply:
    content = b"" if body is None else json.dumps(body).encode()
    return Reply(status, content, {"Content-Type": "application/json"})


def body(request: Request) -> Any:
    """The request's body as it would arrive: a copy, JSON types only."""
    return json.loads(json.dumps(request.body))


def query(request: Request) -> list[tuple[str, str]]:
    """The query as (name, value) texts, from the parameters and the path."""
    params = request.params or ()
    items: Sequence[tuple[str, Any]] = list(params.items()) if isinstance(params, Mapping) else list(params)
    pairs: list[tuple[str, str]] = []
    for name, value in items:
        values = value if isinstance(value, list | tuple | set) else [value]
        pairs.extend((name, str(each)) for each in values)
    return pairs + urllib.parse.parse_qsl(urllib.parse.urlsplit(request.path).query)
