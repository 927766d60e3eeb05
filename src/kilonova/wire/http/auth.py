"""Who calls: the caller's context from a Keystone token or, without Keystone, from the token's own text."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

import msgspec
from keystonemiddleware import auth_token
from oslo_config import cfg

from kilonova.base import clock, present
from kilonova.contract.context import RequestContext
from kilonova.wire.http import faults
from kilonova.wire.http.app import CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
IsAdmin = Callable[[RequestContext], bool]
_MOST_TOKENS: Final = 10_000


class TokenCache:
    """Validated tokens of this process for ``seconds``; the oldest go first."""

    def __init__(self, seconds: float, now: Callable[[], float] = clock.monotonic) -> None:
        self._seconds = seconds
        self._now = now
        self._tokens: OrderedDict[str, tuple[float, Any]] = OrderedDict()
        self._lock = Lock()

    def get(self, token: str) -> Any:
        with self._lock:
            until, data = self._tokens.get(token, (0.0, None))
            if data is not None and until <= self._now():
                del self._tokens[token]
                return None
            return data

    def put(self, token: str, data: Any) -> None:
        with self._lock:
            self._tokens[token] = (self._now() + self._seconds, data)
            self._tokens.move_to_end(token)
            while len(self._tokens) > _MOST_TOKENS:
                self._tokens.popitem(last=False)


class KeystoneTokens(auth_token.AuthProtocol):
    """keystonemiddleware, with validated tokens kept in the process where no memcached is configured.

    ``[keystone_authtoken] token_cache_time`` bounds in both cases how long a revoked token still passes; -1 keeps
    none. Expiry of a kept token is checked at each request by the middleware itself.
    """

    def __init__(self, app: Wsgi, conf: cfg.ConfigOpts) -> None:
        super().__init__(app, {"oslo_config_config": conf})
        seconds = int(self._conf.get("token_cache_time"))
        shared = self._conf.get("memcached_servers") or self._conf.get("cache")
        self._own = TokenCache(seconds) if seconds > 0 and not shared else None

    def fetch_token(self, token: str, allow_expired: bool = False) -> Any:
        if self._own is None or allow_expired:
            return super().fetch_token(token, allow_expired=allow_expired)
        data = self._own.get(token)
        if data is None:
            data = super().fetch_token(token)
            self._own.put(token, data)
        return data


class KeystoneContext:
    """Makes the context from the headers that keystonemiddleware sets."""

    def __init__(self, app: Wsgi, is_admin: IsAdmin) -> None:
        self._app = app
        self._is_admin = is_admin

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not environ.get("HTTP_X_USER_ID"):
            return _unauthorized(start_response)
        environ[CONTEXT] = context = _context(environ, self._is_admin)
        with present.working(context):
            return self._app(environ, start_response)


def _context(environ: dict[str, Any], is_admin: IsAdmin) -> RequestContext:
    catalog = environ.get("HTTP_X_SERVICE_CATALOG")
    context = RequestContext(
        user_id=environ.get("HTTP_X_USER_ID"),
        project_id=environ.get("HTTP_X_PROJECT_ID"),
        user_name=environ.get("HTTP_X_USER_NAME"),
        project_name=environ.get("HTTP_X_PROJECT_NAME"),
        user_domain_id=environ.get("HTTP_X_USER_DOMAIN_ID"),
        project_domain_id=environ.get("HTTP_X_PROJECT_DOMAIN_ID"),
        domain_id=environ.get("HTTP_X_DOMAIN_ID"),
        system_scope=environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"),
        roles=_split(environ.get("HTTP_X_ROLES")),
        service_roles=_split(environ.get("HTTP_X_SERVICE_ROLES")),
        auth_token=environ.get("HTTP_X_AUTH_TOKEN"),
        service_catalog=msgspec.json.decode(catalog) if catalog else None,
        remote_address=environ.get("REMOTE_ADDR"),
        **_request_ids(environ),
    )
    context.is_admin = is_admin(context)
    return context


class NoAuth:
    """``X-Auth-Token: user:project`` is believed; the user ``admin`` is the administrator. For tests and small labs."""

    def __init__(self, app: Wsgi, is_admin: IsAdmin) -> None:
        self._app = app
        self._is_admin = is_admin

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if not token:
            return _unauthorized(start_response)
        user_id, _, project_id = token.partition(":")
        roles = ["admin", "manager", "member", "reader"] if user_id == "admin" else ["member", "reader"]
        context = RequestContext(
            user_id=user_id,
            project_id=project_id or user_id,
            roles=roles,
            auth_token=token,
            remote_address=environ.get("REMOTE_ADDR"),
            **_request_ids(environ),
        )
        context.is_admin = self._is_admin(context)
        environ[CONTEXT] = context
        with present.working(context):
            return self._app(environ, start_response)


def _request_ids(environ: dict[str, Any]) -> dict[str, Any]:
    return {"request_id": environ.get(REQUEST_ID), "global_request_id": environ.get(GLOBAL_REQUEST_ID)}


def _split(roles: str | None) -> list[str]:
    return [role.strip() for role in (roles or "").split(",") if role.strip()]


def _unauthorized(start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = msgspec.json.encode(faults.document(401, "This request needs a valid token."))
    start_response("401 Unauthorized", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
