"""The compute API as one WSGI application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from oslo_config import cfg

from kilonova.api import documents, errors, routes
from kilonova.api.services import Services
from kilonova.clients.bundle import Clients
from kilonova.contract import microversions, policies, surface
from kilonova.contract.context import RequestContext
from kilonova.db.cells import Cells
from kilonova.wire.http import app as http
from kilonova.wire.http.auth import KeystoneContext, KeystoneTokens, NoAuth
from kilonova.wire.http.front import Front
from kilonova.wire.http.health import Health
from kilonova.wire.http.policy import Enforcer
from kilonova.wire.http.versions import Negotiation

if TYPE_CHECKING:
    from kilonova.wire.rpc.bus import Bus

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_MOUNTS: Final = (http.Mount("/v2.1"), http.Mount("/v2", legacy_version=microversions.LEGACY))


def make_app(conf: cfg.ConfigOpts, cells: Cells, bus: Bus, clients: Clients) -> Wsgi:
    """The application, complete with authentication. Raises what a broken policy file raises."""
    enforcer = Enforcer(conf, policies.RULES)
    enforcer.load()
    api = http.Api(
        bindings=routes.collect(),
        negotiation=Negotiation("compute", 2, microversions.MIN, microversions.MAX),
        mounts=_MOUNTS,
        policy=enforcer,
        services=Services.assemble(conf, cells, bus, clients),
        # Nova takes text/plain for nothing said.
        content_types=("application/json", "application/vnd.openstack.compute+json", "text/plain"),
        project_id="[0-9a-f-]+",
        errors=errors.seen,
        unbuilt=surface.rules(),
        removed=surface.removed(),
        request_id_headers=("x-compute-request-id", "x-openstack-request-id"),
        max_body=conf.oslo_middleware.max_request_body_size,
        link_prefix=conf.api.compute_link_prefix,
        proxied=conf.oslo_middleware.enable_proxy_headers_parsing,
    )

    def is_admin(context: RequestContext) -> bool:
        return enforcer.allows("context_is_admin", None, context)

    return Health(Front(api, _authenticated(conf, http.make(api), is_admin), documents.Documents(api).find), conf)


def _authenticated(conf: cfg.ConfigOpts, app: Wsgi, is_admin: Callable[[RequestContext], bool]) -> Wsgi:
    if conf.api.auth_strategy == "noauth2":
        return NoAuth(app, is_admin)
    return KeystoneTokens(KeystoneContext(app, is_admin), conf)
