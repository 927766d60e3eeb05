"""The metadata service: tells a guest about itself, by where the request comes from.

Behind Neutron's proxy the request names the server in signed headers; else its source address tells which one it is.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import posixpath
from typing import Any

import falcon
from oslo_config import cfg
from oslo_log import log

from kilonova.clients.bundle import Clients
from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions
from kilonova.db.cells import Cells
from kilonova.metadata import documents, ec2
from kilonova.metadata.documents import Document, Documents, NotThere
from kilonova.metadata.servers import PASSWORD_LIMIT, PasswordIsSet, Servers
from kilonova.wire.http import bodies
from kilonova.wire.http.faults import Fault
from kilonova.wire.http.health import Health

LOG = log.getLogger(__name__)

_MOST_HOPS = 8
_UNKNOWN_ERROR = "An unknown error has occurred. Please try your request again."


def make_app(conf: cfg.ConfigOpts, cells: Cells, clients: Clients) -> Health:
    """The service as a WSGI application. Raises InvalidConfiguration."""
    if conf.neutron.service_metadata_proxy and not conf.neutron.metadata_proxy_shared_secret:
        LOG.warning("[neutron] metadata_proxy_shared_secret is not set: anybody can name any server")
    app = falcon.App(media_type=documents.TEXT)
    app.req_options.strip_url_path_trailing_slash = False
    app.add_sink(Metadata(conf, Servers(conf, cells, clients)), prefix="/")
    app.add_error_handler(Exception, _unexpected)
    app.set_error_serializer(_plain)
    return Health(app, conf)


class Metadata:
    """Every path of the service."""

    def __init__(self, conf: cfg.ConfigOpts, servers: Servers) -> None:
        self._proxied = conf.neutron.service_metadata_proxy
        self._secret = (conf.neutron.metadata_proxy_shared_secret or "").encode()
        self._servers = servers

    def __call__(self, req: falcon.Request, resp: falcon.Response, **_groups: Any) -> None:
        path = posixpath.normpath(req.path)
        if path in ("/", "//"):
            _answer(resp, Document("\n".join((*ec2.VERSIONS, ec2.LATEST)).encode()))
            return
        found = self._find(req)
        if _is_password(path):
            # Even an unknown version is looked up first: it answers 404, not the password.
            found.lookup(path)
            self._password(req, resp, found)
            return
        _answer(resp, found.lookup(path))

    def _find(self, req: falcon.Request) -> Documents:
        try:
            if not self._proxied:
                return self._by_address(req)
            if req.get_header("X-Metadata-Provider"):
                return self._by_provider(req)
            return self._by_id(req)
        except exceptions.NotFound as failure:
            LOG.info("No metadata for %s: %s", req.remote_addr, failure)
            raise falcon.HTTPNotFound from failure

    def _by_address(self, req: falcon.Request) -> Documents:
        if req.get_header("X-Instance-ID"):
            LOG.warning("X-Instance-ID is ignored: [neutron] service_metadata_proxy is off")
        address = str(req.remote_addr)
        return self._servers.documents(self._servers.id_at(address), address)

    def _by_id(self, req: falcon.Request) -> Documents:
        uuid = _header(req, "X-Instance-ID")
        signature = _header(req, "X-Instance-ID-Signature")
        project = _header(req, "X-Tenant-ID")
        address = req.get_header("X-Forwarded-For")
        self._check(uuid, signature, address)
        return self._of_project(uuid, project, address)

    def _by_provider(self, req: falcon.Request) -> Documents:
        addresses = _addresses(_header(req, "X-Forwarded-For"))
        provider = _header(req, "X-Metadata-Provider")
        if self._secret:
            self._check(provider, req.get_header("X-Metadata-Provider-Signature"), ", ".join(addresses))
        try:
            uuid, project = self._servers.id_behind(provider, addresses)
        except exceptions.NovaException as failure:
            raise falcon.HTTPBadRequest(description=str(failure)) from failure
        return self._of_project(uuid, project, addresses[0])

    def _of_project(self, uuid: str, project: str, address: str | None) -> Documents:
        found = self._servers.documents(uuid, address)
        if found.data.project_id != project:
            LOG.warning("Server %s is not of project %s", uuid, project)
            raise falcon.HTTPNotFound
        return found

    def _check(self, what: str, signature: str | None, address: str | None) -> None:
        expected = hmac.new(self._secret, what.encode(), hashlib.sha256).hexdigest()
        if not signature or not hmac.compare_digest(expected.encode(), signature.encode("latin-1", "replace")):
            LOG.warning("The signature of %s, asked for by %s, is wrong", what, address)
            raise falcon.HTTPForbidden(description="Invalid proxy request signature.")

    def _password(self, req: falcon.Request, resp: falcon.Response, found: Documents) -> None:
        if req.method == "GET":
            _answer(resp, Document((found.data.password or "").encode()))
            return
        if req.method != "POST":
            raise falcon.HTTPBadRequest(description="GET and POST only are supported.")
        if found.data.password:
            raise falcon.HTTPConflict
        try:
            body = bodies.read(req, PASSWORD_LIMIT)
        except Fault as failure:
            too_large = failure.code == 413
            kind = falcon.HTTPBadRequest if too_large else falcon.HTTPLengthRequired
            raise kind(description="Request is too large." if too_large else failure.message) from failure
        try:
            self._servers.keep_password(found.data.uuid, body.decode())
        except PasswordIsSet as failure:
            raise falcon.HTTPConflict from failure
        except UnicodeDecodeError as failure:
            raise falcon.HTTPBadRequest(description="The password must be UTF-8.") from failure
        except exceptions.InstanceNotFound as failure:
            raise falcon.HTTPBadRequest(description=str(failure)) from failure
        _answer(resp, Document(b""))


def _addresses(forwarded: str) -> list[str]:
    """Where a request has been: what the client wrote itself comes first, then who asked each of the proxies.

    Nobody has signed it. So all of them are looked at, and no guest is told of another by naming its address.
    """
    found = [each for part in forwarded.split(",") if _is_address(each := part.strip())]
    if not found or len(found) > _MOST_HOPS:
        raise falcon.HTTPBadRequest(description="X-Forwarded-For header does not say where the request comes from.")
    return list(dict.fromkeys(found))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_password(path: str) -> bool:
    parts = path.strip("/").split("/")
    return len(parts) == 3 and parts[0] == "openstack" and parts[2] == documents.PASSWORD


def _header(req: falcon.Request, name: str) -> str:
    value = req.get_header(name)
    if value is None:
        raise falcon.HTTPBadRequest(description=f"{name} header is missing from request.")
    return str(value)


def _answer(resp: falcon.Response, document: Document) -> None:
    resp.content_type = document.content_type
    resp.data = document.body


def _unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
    if isinstance(error, falcon.HTTPError):
        raise error
    if isinstance(error, NotThere):
        raise falcon.HTTPNotFound from error
    # What another service said, or that it said nothing, is no fault in here.
    inside = None if isinstance(error, ServiceError) else error
    LOG.error("Metadata for %s failed: %s", req.remote_addr, error, exc_info=inside)
    raise falcon.HTTPInternalServerError(description=_UNKNOWN_ERROR) from error


def _plain(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    """Guests read errors with shell scripts at best: one line of text."""
    resp.content_type = documents.TEXT
    resp.text = f"{error.status}: {error.description or ''}".rstrip(": ")
