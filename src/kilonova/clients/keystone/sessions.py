"""Sessions and credentials: who we are towards each service, made when first needed."""

from __future__ import annotations

import logging
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading, plugin, service_token, session
from keystoneauth1.access import service_catalog
from oslo_config import cfg

from kilonova.clients import passing
from kilonova.clients.http import CredentialsMissing, Reply, Request, ServiceError, ServiceUnavailable, Unequipped
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

PATIENCE = 120.0
"""Seconds to wait for an answer where the configuration names no time-out."""

CHUNK = 1 << 20

VERSION_SUFFIX = re.compile(r"/v[0-9.]+/?$")


class UserAuth(plugin.BaseAuthPlugin):
    """The user's token as it came with the request; endpoints from its catalog, else from our own credentials."""

    def __init__(self, ctxt: RequestContext, fallback: plugin.BaseAuthPlugin | None) -> None:
        super().__init__()
        self._token = ctxt.auth_token
        self._catalog = service_catalog.ServiceCatalogV2(list(ctxt.service_catalog or []))
        self._fallback = fallback

    def get_token(self, session: session.Session, **_: Any) -> str | None:
        return self._token

    def get_endpoint(self, session: session.Session, **wanted: Any) -> str | None:
        keys = ("service_type", "service_name", "interface", "region_name")
        try:
            return str(self._catalog.url_for(**{key: wanted.get(key) for key in keys}))
        except (ksa.EndpointNotFound, ksa.EmptyCatalog):
            if self._fallback is None:
                raise
            return self._fallback.get_endpoint(session, **wanted)

    def get_endpoint_data(self, session: session.Session, **wanted: Any) -> Any:
        """Without asking the endpoint for its versions."""
        wanted["discover_versions"] = False
        return super().get_endpoint_data(session, **wanted)


class Sessions:
    """Per configuration group one HTTP session and one set of credentials, shared by all threads."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf
        self._lock = threading.Lock()
        self._sessions: dict[str, session.Session] = {}
        self._credentials: dict[str, plugin.BaseAuthPlugin | None] = {}

    def session(self, group: str) -> session.Session:
        with self._lock:
            if group not in self._sessions:
                made = loading.load_session_from_conf_options(self.conf, group)
                if made.timeout is None:
                    made.timeout = PATIENCE
                self._sessions[group] = made
            return self._sessions[group]

    def credentials(self, group: str) -> plugin.BaseAuthPlugin | None:
        """The group's own credentials, None where `auth_type` is not set."""
        with self._lock:
            if group not in self._credentials:
                self._credentials[group] = loading.load_auth_from_conf_options(self.conf, group)
            return self._credentials[group]

    def auth(self, ctxt: RequestContext, groups: Iterable[str], *, admin: bool) -> plugin.BaseAuthPlugin:
        """The user's token (with a service token), or the first credentials among `groups`.

        Raises CredentialsMissing when there is neither.
        """
        own = next((found for found in map(self.credentials, groups) if found is not None), None)
        if ctxt.auth_token and not admin:
            return self._accompanied(UserAuth(ctxt, own))
        if own is None:
            raise CredentialsMissing("keystone", f"no credentials configured in {', '.join(groups)}")
        return own

    def _accompanied(self, user: plugin.BaseAuthPlugin) -> plugin.BaseAuthPlugin:
        if not self.conf.service_user.send_service_user_token:
            return user
        own = self.credentials("service_user")
        if own is None:
            LOG.warning("send_service_user_token is set, but [service_user] has no auth_type; sending the user's alone")
            return user
        return service_token.ServiceTokenAuthWrapper(user_auth=user, service_auth=own)


class KeystoneTransport:
    """Requests over keystoneauth1; the endpoint comes from the catalog unless overridden.

    `groups`: the configuration groups whose credentials serve when no user's token does, best first.
    `endpoint`: what `Session.get_endpoint` takes; its `endpoint_override` may be a list of URLs that are all the same.
    `versioned_paths`: paths carry the API's version, so one at the end of the catalog's URL is cut off.
    """

    def __init__(
        self,
        sessions: Sessions,
        group: str,
        endpoint: dict[str, Any],
        groups: tuple[str, ...],
        microversion_name: str | None = None,
        versioned_paths: bool = False,
    ) -> None:
        self._sessions = sessions
        self._group = group
        self._endpoint = endpoint
        self._groups = groups
        self._microversion_name = microversion_name
        self._versioned_paths = versioned_paths
        self._repeating = adapter_repeating(sessions.conf, group)

    def send(self, request: Request) -> Reply:
        response = self._request(request)
        return Reply(response.status_code, response.content, response.headers)

    def stream(self, request: Request) -> tuple[Reply, Iterable[bytes]]:
        response = self._request(request, stream=True)
        if response.status_code >= 400:
            return Reply(response.status_code, response.content, response.headers), ()
        return Reply(response.status_code, headers=response.headers), self._chunks(response)

    def _chunks(self, response: Any) -> Iterator[bytes]:
        try:
            yield from response.iter_content(CHUNK)
        except OSError as exc:
            raise ServiceUnavailable(self._group, f"the answer broke off: {exc}") from exc
        finally:
            response.close()

    def _request(self, request: Request, **more: Any) -> Any:
        auth = self._sessions.auth(request.ctxt, self._groups, admin=request.admin)
        try:
            return self._sessions.session(self._group).request(
                request.path,
                request.method,
                auth=auth,
                raise_exc=False,
                global_request_id=request.ctxt.global_request_id or request.ctxt.request_id,
                endpoint_override=self._base(request, auth),
                **self._what(request),
                **self._repeating,
                **more,
            )
        except (ksa.ClientException, ksa.RetriableConnectionFailure) as exc:
            raise unanswered(self._group, exc) from exc

    def _base(self, request: Request, auth: plugin.BaseAuthPlugin) -> str:
        override = self._endpoint.get("endpoint_override")
        if isinstance(override, list):
            # Of several any one will do; a request that is sent again may come to another.
            override = random.choice(override)  # noqa: S311
        if override:
            return str(override).replace("%(project_id)s", request.ctxt.project_id or "")
        wanted = {key: value for key, value in self._endpoint.items() if value is not None}
        found = self._sessions.session(self._group).get_endpoint(auth=auth, **wanted)
        if not found:
            raise Unequipped(self._group, "the service catalog has no endpoint")
        return VERSION_SUFFIX.sub("", found) if self._versioned_paths else found

    def _what(self, request: Request) -> dict[str, Any]:
        what: dict[str, Any] = {"headers": {"Accept": "application/json", **request.headers}}
        if request.params:
            what["params"] = request.params
        if request.body is not None:
            what["json"] = request.body
        if request.upload is not None:
            what["data"] = request.upload
        if request.microversion is not None:
            what["headers"]["OpenStack-API-Version"] = f"{self._microversion_name} {request.microversion}"
        if request.timeout is not None:
            what["timeout"] = request.timeout
        return what


def unanswered(service: str, exc: Exception) -> ServiceError:
    """Why no answer came, in the words of the table of what passes."""
    why, text = next((why(exc), text) for kinds, why, text in _WHY if isinstance(exc, kinds))
    if passing.SILENCE[why].passes:
        return ServiceUnavailable(service, text.format(exc), sent=why == passing.LOST)
    return Unequipped(service, text.format(exc))


def _of_connection(exc: Exception) -> str:
    return passing.REFUSED if never_connected(exc) else passing.LOST


def _of_keystone(exc: Any) -> str:
    """Keystone's own answer; those of the service itself are no exceptions."""
    answer = int(exc.http_status or 0)
    busy = answer >= 500 or passing.of_answer(answer).passes
    return passing.NO_TOKEN if busy else passing.NOT_CONFIGURED


_WHY: tuple[tuple[tuple[type[Exception], ...], Callable[[Exception], str], str], ...] = (
    ((ksa.EndpointNotFound, ksa.EmptyCatalog, ksa.CatalogException), lambda _: passing.NO_ENDPOINT, "no endpoint: {}"),
    ((ksa.ConnectionError, ksa.RetriableConnectionFailure), _of_connection, "{}"),
    ((ksa.HttpError,), _of_keystone, "cannot authenticate: {}"),
    # Also what is raised while Keystone is away and its address names no version.
    ((ksa.DiscoveryFailure,), lambda _: passing.NO_TOKEN, "cannot authenticate: {}"),
    ((Exception,), lambda _: passing.NOT_CONFIGURED, "cannot authenticate: {}"),
)
"""keystoneauth's exceptions, first match first."""


def never_connected(exc: BaseException) -> bool:
    """True when the connection was refused or the name not found, so that nothing was sent."""
    text = f"{exc!r} {exc.__cause__!r} {exc.__context__!r}"
    return any(sign in text for sign in ("NewConnectionError", "Connection refused", "NameResolutionError"))


def adapter_repeating(conf: cfg.ConfigOpts, group: str) -> dict[str, Any]:
    """What [group] wants tried again; keystoneauth1 does that by itself, for any method, before `Http` does."""
    options = conf[group]
    names = (
        "connect_retries",
        "connect_retry_delay",
        "status_code_retries",
        "status_code_retry_delay",
        "retriable_status_codes",
    )
    return {name: options[name] for name in names if name in options and options[name] is not None}
