"""A Falcon application from bindings: version, project and body of a request in, a handler's answer out.

The path beneath a mount (``/v2.1``) may start with a project id. What the contract has but is not built answers 501,
what it has removed 410.
"""

import itertools
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import falcon
import msgspec

from kilonova.contract import reasons
from kilonova.contract.cards import Route
from kilonova.contract.context import RequestContext
from kilonova.contract.fields import Invalid
from kilonova.contract.microversions import Versions
from kilonova.wire.http import bodies, bounds, faults, versions
from kilonova.wire.http.call import Binding, Call, Reply
from kilonova.wire.http.faults import Fault, forbidden
from kilonova.wire.http.policy import Policy
from kilonova.wire.http.standard import SENTENCES

LOG = logging.getLogger(__name__)
_JSON: Final = "application/json"
_OFFERED: Final = (_JSON, "application/vnd.openstack.compute+json")
_NO_CONTENT: Final = 204
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
CONTEXT: Final = "kilonova.context"
REQUEST_ID: Final = "openstack.request_id"
GLOBAL_REQUEST_ID: Final = "openstack.global_request_id"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Mount:
    """A prefix under which the API is served; ``legacy_version`` fixes the version and ignores the headers."""

    prefix: str
    legacy_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything the application is made of.

    ``unbuilt`` and ``removed`` are (method, path, action key or None) of the contract: the former with the policies of
    which a caller must pass one to hear 501, the latter with the versions that answer that it is gone (others answer
    404) and the code that says so. ``errors`` maps an exception of a handler to the (code, message) that the
    client sees, or None for what it must not see.
    """

    bindings: Sequence[Binding]
    negotiation: versions.Negotiation
    mounts: Sequence[Mount]
    policy: Policy
    services: Any
    content_types: Sequence[str]
    project_id: str
    errors: Callable[[Exception], tuple[int, str] | None]
    unbuilt: Mapping[tuple[str, str, str | None], Sequence[str]] = field(default_factory=dict)
    removed: Mapping[tuple[str, str, str | None], tuple[Versions, int]] = field(default_factory=dict)
    request_id_headers: Sequence[str] = ("x-openstack-request-id",)
    max_body: int = 114688
    link_prefix: str | None = None
    proxied: bool = False

    def root(self, environ: Mapping[str, Any]) -> str:
        """The URL under which clients reach the service: as configured, as a trusted proxy says, or as asked."""
        if self.link_prefix:
            return self.link_prefix.rstrip("/")
        scheme, host = environ["wsgi.url_scheme"], environ.get("HTTP_HOST")
        script = environ.get("SCRIPT_NAME", "")
        if self.proxied:
            scheme = environ.get("HTTP_X_FORWARDED_PROTO", scheme)
            host = environ.get("HTTP_X_FORWARDED_HOST", host)
            script = environ.get("HTTP_X_FORWARDED_PREFIX", "") + script
        return f"{scheme}://{host or environ['SERVER_NAME'] + ':' + environ['SERVER_PORT']}{script}".rstrip("/")


class _Stage:
    """Before routing: request id, mount, project id and version; after the answer: their headers and a log line."""

    def __init__(self, api: Api) -> None:
        self._api = api
        mounts = "|".join(re.escape(mount.prefix) for mount in api.mounts)
        self._path = re.compile(rf"^({mounts})(?:/({api.project_id}))?(/.*)$")
        self._mounts = {mount.prefix: mount for mount in api.mounts}

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        state = req.context
        state.version = state.project_id = None
        match = self._path.match(req.path)
        if not match:
            raise Fault(404, SENTENCES[404])
        prefix, state.project_id, req.path = match.groups()
        state.prefix = prefix
        mount = self._mounts[prefix]
        if mount.legacy_version is not None:
            state.version, state.legacy = mount.legacy_version, True
            return
        state.legacy = False
        state.version = self._api.negotiation.choose(req.get_header(versions.STANDARD), req.get_header(versions.OLDER))

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, succeeded: bool) -> None:
        state = req.context
        if state.version is not None and not state.legacy:
            for name, value in self._api.negotiation.headers(state.version).items():
                resp.set_header(name, value)


class _Endpoint:
    """One path: its methods, its actions."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._bound: dict[tuple[str, str | None], list[Binding]] = defaultdict(list)
        self._unbuilt: dict[tuple[str, str | None], Sequence[str]] = {}
        self._removed: dict[tuple[str, str | None], tuple[Versions, int]] = {}
        self._actions = False

    def bind(self, binding: Binding) -> None:
        self._bound[binding.route.method, binding.route.action].append(binding)

    def unbuilt(self, method: str, action: str | None, rules: Sequence[str]) -> None:
        self._unbuilt[method, action] = rules

    def removed(self, method: str, action: str | None, gone: tuple[Versions, int]) -> None:
        self._removed[method, action] = gone

    def open(self) -> "_Endpoint":
        """Give Falcon a responder for each method that the path has."""
        known = [*self._bound, *self._unbuilt, *self._removed]
        for method, _ in known:
            setattr(self, f"on_{method.lower()}", self._respond)
        self._actions = any(action for _, action in known)
        return self

    def _respond(self, req: falcon.Request, resp: falcon.Response, **params: str) -> None:
        api, state = self._api, req.context
        context = req.env[CONTEXT]
        if state.project_id and state.project_id != context.project_id:
            raise Fault(
                400,
                f"The project id {state.project_id!r} in the URL is not that of the token, {context.project_id!r}.",
            )
        body = _body(req, api) if req.method in ("POST", "PUT", "PATCH") else None
        binding = self._choose(req.method, self._action_of(req, body), state.version, context)
        bounds.check_names(params.values(), made=binding.route.makes)
        call = self._call(binding.route, req, body)
        # Falcon knows parameters by position, since one place has different names in different routes.
        names = _PARAMETER.findall(binding.route.path)
        answer = binding.handler(call, **dict(zip(names, params.values(), strict=True)))
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        _write(resp, binding.route, state.version, reply, _accepted(req))

    def _action_of(self, req: falcon.Request, body: Any) -> str | None:
        if not self._actions or req.method != "POST":
            return None
        if not isinstance(body, dict) or len(body) != 1:
            raise Fault(400, "Malformed request body")
        return next(iter(body))

    def _choose(self, method: str, action: str | None, version: int, context: RequestContext) -> Binding:
        bindings = self._bound.get((method, action))
        if bindings is None:
            raise self._refusal(method, action, version, context)
        for binding in bindings:
            if version in binding.route.versions:
                return binding
        raise Fault(404, SENTENCES[404])

    def _refusal(self, method: str, action: str | None, version: int, context: RequestContext) -> Fault:
        gone = self._removed.get((method, action))
        if gone is not None:
            versions, code = gone
            code = code if version in versions else 404
            return Fault(code, SENTENCES[code])
        rules = self._unbuilt.get((method, action))
        if rules is None:
            return Fault(400, f"There is no such action: {action}")
        # Who may not ask for it does not learn more of it than where it is built.
        if rules and not any(self._api.policy.allows(rule, None, context) for rule in rules):
            return forbidden(f"Policy doesn't allow {rules[0]} to be performed.")
        what = f"the action {action}" if action else "this request"
        return Fault(501, f"Not built yet: {what} is part of the API but not implemented by this service.")

    def _call(self, route: Route, req: falcon.Request, body: Any) -> Call[Any]:
        api, state = self._api, req.context
        return Call(
            route=route,
            context=req.env[CONTEXT],
            version=state.version,
            services=api.services,
            policy=api.policy,
            query=_query(route, req, state.version),
            body=_checked(route, "body", body, state.version),
            root=api.root(req.env),
            prefix=state.prefix,
            project=f"/{state.project_id}" if state.project_id else "",
            path=req.path,
            idempotency_key=req.get_header("Idempotency-Key"),
        )


def _body(req: falcon.Request, api: Api) -> Any:
    """The JSON of a request, None when there is none. Raises `Fault` 400, 413, 415."""
    kind = (req.content_type or _JSON).partition(";")[0].strip().lower()
    raw = bodies.read(req, api.max_body)
    if not raw:
        return None
    if kind not in api.content_types:
        raise Fault(415, "Unsupported Content-Type")
    try:
        body = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Fault(400, "Malformed request body") from None
    bounds.check_body(body)
    return body


def _query(route: Route, req: falcon.Request, version: int) -> dict[str, list[str]]:
    """Known parameters as lists, in the order of the URL. Raises `Fault` 400."""
    if not req.query_string:
        return {}
    try:
        unquote_to_bytes(req.query_string).decode()
    except UnicodeDecodeError:
        raise Fault(400, "The query string is not UTF-8.") from None
    given = falcon.uri.parse_query_string(req.query_string, keep_blank=True, csv=False)
    lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    if "query" not in route.compiled:
        bounds.check_query(lists)
        return lists
    bounds.check_query({name: values for name, values in lists.items() if route.compiled["query"].known(version)(name)})
    checked: dict[str, list[str]] = _checked(route, "query", lists, version)
    known = route.compiled["query"].known(version)
    return {name: values for name, values in checked.items() if known(name)}


def _checked(route: Route, part: str, value: Any, version: int) -> Any:
    compiled = route.compiled.get(part)
    if compiled is None:
        return value
    try:
        return compiled.validator(version).check(value)
    except Invalid as error:
        raise Fault(400, _refused(part, error)) from None


def _refused(part: str, error: Invalid) -> str:
    """The name of the member (of a parameter, that of the list of its values), its value and what is wrong with it."""
    if not error.path:
        return error.reason
    value = reasons.said(error.value)
    if part == "query":
        return f"Invalid input for query parameters {error.path[0]}. Value: {value}. {error.reason}"
    return f"Invalid input for field/attribute {error.path[-1]}. Value: {value}. {error.reason}"


def _accepted(req: falcon.Request) -> str:
    """The media type of the answer: JSON under its own name or Nova's, as the client prefers."""
    if req.accept in ("*/*", _JSON):
        return _JSON
    return req.client_prefers(_OFFERED) or _JSON


def _write(resp: falcon.Response, route: Route, version: int, reply: Reply, kind: str) -> None:
    resp.status = reply.status or route.status(version)
    for name, value in reply.headers.items():
        resp.set_header(name, value)
    if reply.body is None:
        if resp.status_code != _NO_CONTENT:
            resp.content_type = kind
        return
    body = reply.body
    compiled = None if reply.ready else route.compiled.get("response")
    if compiled is not None:
        body = compiled.serializer(version)(body)
    resp.content_type = kind
    resp.data = body if isinstance(body, bytes) else _encode(body)


def _fault_response(req: falcon.Request, resp: falcon.Response, fault: Fault, params: Mapping[str, Any]) -> None:
    resp.status = fault.code
    resp.content_type = "application/json; charset=UTF-8"
    for name, value in fault.headers.items():
        resp.set_header(name, value)
    resp.data = _encode(faults.document(fault.code, fault.message))


class _Errors:
    """Turns every exception into a fault; what the client must not see is logged with the request id."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def http(self, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
        fault = Fault(error.status_code, SENTENCES.get(error.status_code, error.title), dict(error.headers or {}))
        _fault_response(req, resp, fault, params)

    def any(self, req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
        seen = self._api.errors(error)
        if seen is None:
            request_id = req.env.get(REQUEST_ID)
            LOG.error("%s %s failed [%s]", req.method, req.path, request_id, exc_info=error)
            seen = 500, f"The request failed inside the service ({type(error).__name__}); see its log for {request_id}."
        _fault_response(req, resp, Fault(*seen), params)


def _template(path: str) -> str:
    """The path with its parameters named by their position."""
    position = itertools.count()
    return _PARAMETER.sub(lambda _: f"{{p{next(position)}}}", path)


def make(api: Api) -> falcon.App:
    """The Falcon application; the caller's context is expected in the environment under `CONTEXT`."""
    app: falcon.App = falcon.App(middleware=[_Stage(api)])
    app.req_options.strip_url_path_trailing_slash = True
    app.req_options.auto_parse_qs_csv = False
    errors = _Errors(api)
    app.add_error_handler(Exception, errors.any)
    app.add_error_handler(falcon.HTTPError, errors.http)
    app.add_error_handler(Fault, _fault_response)
    endpoints: defaultdict[str, _Endpoint] = defaultdict(lambda: _Endpoint(api))
    for binding in api.bindings:
        endpoints[_template(binding.route.path)].bind(binding)
    for (method, path, action), rules in api.unbuilt.items():
        endpoints[_template(path)].unbuilt(method, action, rules)
    for (method, path, action), gone in api.removed.items():
        endpoints[_template(path)].removed(method, action, gone)
    for template, endpoint in endpoints.items():
        app.add_route(template, endpoint.open())
    return app
