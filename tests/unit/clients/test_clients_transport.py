"""Requests as they leave: tokens, service tokens, endpoints, microversions, lost connections."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator

import pytest
from keystoneauth1 import loading

from kilonova import conf as options
from kilonova.base import retry
from kilonova.clients import http as clients_http
from kilonova.clients.bundle import Clients
from kilonova.clients.http import CredentialsMissing, Reply, Request, ServiceError, ServiceUnavailable, Unequipped
from kilonova.contract import context, exceptions


class Server(http.server.ThreadingHTTPServer):
    """Keystone's token call, and for the rest whatever `answers` says: (status, body) in turn, the last for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.answers: list[tuple[int, object]] = [(200, {})]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def catalog(self) -> list[dict]:
        kinds = {"placement": "/placement", "network": "/network/v2.0", "volumev3": "/v3/p", "image": "/v2",
                 "identity": "/v3"}  # fmt: skip
        return [
            {
                "type": kind,
                "name": kind,
                "id": kind,
                "endpoints": [
                    {"interface": name, "url": self.url + path, "region": "R", "region_id": "R", "id": name}
                    for name in ("public", "internal")
                ],
            }
            for kind, path in kinds.items()
        ]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        status, body = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        self.answer(status, body)

    do_PUT = do_DELETE = do_GET  # noqa: N815

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = json.loads(self.rfile.read(length) or b"{}")
        if not self.path.endswith("/auth/tokens"):
            self.do_GET()
            return
        user = asked["auth"]["identity"]["password"]["user"]["name"]
        token = {
            "methods": ["password"],
            "user": {"id": user, "name": user, "domain": {"id": "d", "name": "d"}},
            "project": {"id": "service", "name": "service", "domain": {"id": "d", "name": "d"}},
            "roles": [{"id": "r", "name": "service"}],
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "catalog": self.server.catalog(),
        }
        self.answer(201, {"token": token}, {"X-Subject-Token": f"token-of-{user}"})

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def configure(server: Server, groups=("placement", "neutron", "service_user", "keystone")):
    conf = options.load([])
    for group in groups:
        conf.set_override("auth_type", "password", group)
        conf.register_opts(loading.get_auth_plugin_conf_options("password"), group=group)
        values = {"auth_url": f"{server.url}/v3", "username": group, "password": "x", "project_name": "service",
                  "user_domain_name": "d", "project_domain_name": "d"}  # fmt: skip
        for name, value in values.items():
            conf.set_override(name, value, group)
    conf.set_override("send_service_user_token", True, "service_user")
    return conf


@pytest.fixture
def user(server) -> context.RequestContext:
    catalog = [
        {
            "type": each["type"],
            "name": each["name"],
            "endpoints": [{"publicURL": each["endpoints"][0]["url"], "region": "R"}],
        }
        for each in server.catalog()
    ]
    return context.RequestContext(
        user_id="u",
        project_id="p",
        auth_token="users",
        service_catalog=catalog,
        global_request_id="req-11111111-1111-4111-8111-111111111111",
    )


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(retry.time, "sleep", lambda _: None)


def test_placement_gets_the_services_own_token_and_microversion(server, user):
    server.answers = [(200, {"usages": {}})]
    Clients.from_conf(configure(server)).placement.usages(user, "p")
    _, path, headers = server.seen[-1]
    assert path == "/placement/usages?project_id=p"
    assert headers["X-Auth-Token"] == "token-of-placement"
    assert headers["OpenStack-API-Version"] == "placement 1.9"
    assert {n.lower(): v for n, v in headers.items()}["x-openstack-request-id"] == user.global_request_id


def test_users_token_travels_with_a_service_token(server, user):
    server.answers = [(200, {"networks": []})]
    Clients.from_conf(configure(server)).neutron.rest.list(user, "networks", shared=True)
    _, path, headers = server.seen[-1]
    assert path == "/network/v2.0/networks?shared=True", "a version in the catalog is not doubled"
    assert headers["X-Auth-Token"] == "users"
    assert headers["X-Service-Token"] == "token-of-service_user"


def test_admin_calls_use_the_services_credentials(server, user):
    server.answers = [(200, {"ports": []})]
    Clients.from_conf(configure(server)).neutron.rest.list(user, "ports", admin=True)
    headers = server.seen[-1][2]
    assert headers["X-Auth-Token"] == "token-of-neutron"
    assert "X-Service-Token" not in headers


def test_a_token_without_catalog_finds_its_way(server):
    server.answers = [(200, {"ports": []})]
    bare = context.RequestContext(user_id="u", project_id="p", auth_token="users")
    Clients.from_conf(configure(server)).neutron.rest.list(bare, "ports")
    assert server.seen[-1][2]["X-Auth-Token"] == "users"


def test_neither_token_nor_credentials(server):
    clients = Clients.from_conf(configure(server, groups=()))
    with pytest.raises(CredentialsMissing, match="neutron"):
        clients.neutron.rest.list(context.admin(), "ports")


def test_cinder_by_template_or_catalog(server, user):
    server.answers = [(404, {"itemNotFound": {"message": "no", "code": 404}})]
    conf = configure(server)
    with pytest.raises(exceptions.VolumeNotFound):
        Clients.from_conf(conf).cinder.volume_show(user, "v1")
    assert server.seen[-1][1] == "/v3/p/volumes/v1"
    assert server.seen[-1][2]["OpenStack-API-Version"] == "volume 3.0"
    conf.set_override("endpoint_template", f"{server.url}/vol/%(project_id)s", "cinder")
    with pytest.raises(exceptions.VolumeNotFound):
        Clients.from_conf(conf).cinder.volume_show(user, "v1")
    assert server.seen[-1][1] == "/vol/p/volumes/v1"


def test_glance_from_the_configured_servers(server, user):
    server.answers = [(404, {})]
    conf = configure(server)
    conf.set_override("api_servers", [f"{server.url}/images-here"], "glance")
    with pytest.raises(exceptions.ImageNotFound):
        Clients.from_conf(conf).glance.image_show(user, "i1")
    assert server.seen[-1][1] == "/images-here/v2/images/i1"


def test_an_image_server_that_is_away_is_passed_over(server, user):
    server.answers = [(404, {})]
    conf = configure(server)
    conf.set_override("api_servers", ["http://127.0.0.1:9", server.url], "glance")
    conf.set_override("num_retries", 30, "glance")
    for _ in range(12):
        clients = Clients.from_conf(conf)
        clients.glance._http._backoff = retry.Backoff(attempts=31, base=0.0)
        with pytest.raises(exceptions.ImageNotFound):
            clients.glance.image_show(user, "i1")


def test_status_codes_that_an_operator_wants_retried(server, user):
    conf = configure(server)
    conf.set_override("status_code_retries", 2, "placement")
    conf.set_override("retriable_status_codes", ["429"], "placement")
    conf.set_override("status_code_retry_delay", 0.01, "placement")
    server.answers = [(429, {}), (429, {}), (200, {"usages": {"VCPU": 1}})]
    assert Clients.from_conf(conf).placement.usages(user, "p") == {"VCPU": 1}


def test_endpoint_override(server, user):
    server.answers = [(200, {"usages": {}})]
    conf = configure(server)
    conf.set_override("endpoint_override", f"{server.url}/elsewhere", "placement")
    Clients.from_conf(conf).placement.usages(user, "p")
    assert server.seen[-1][1].startswith("/elsewhere/usages")


def test_passing_trouble_is_waited_out_and_lasting_trouble_is_told(server, user):
    placement = Clients.from_conf(configure(server)).placement
    server.answers = [(503, {}), (500, {}), (200, {"usages": {"VCPU": 1}})]
    assert placement.usages(user, "p") == {"VCPU": 1}
    server.answers = [(503, {"errors": [{"detail": "down for repair"}]})]
    with pytest.raises(ServiceUnavailable, match="down for repair"):
        placement.usages(user, "p")
    server.answers = [(500, {"errors": [{"detail": "broken"}]})]
    with pytest.raises(ServiceError, match="broken"):
        placement.usages(user, "p")


def test_nobody_listens(server, user):
    conf = configure(server)
    conf.set_override("endpoint_override", "http://127.0.0.1:9", "placement")
    with pytest.raises(ServiceUnavailable) as caught:
        Clients.from_conf(conf).placement.usages(user, "p")
    assert caught.value.sent is False


def test_no_endpoint_in_the_catalog(server, user):
    conf = configure(server)
    conf.set_override("region_name", "nowhere", "placement")
    with pytest.raises(Unequipped, match="endpoint") as caught:
        Clients.from_conf(conf).placement.usages(user, "p")
    assert not caught.value.passes


def test_wrong_credentials_are_no_traceback(server, user):
    conf = configure(server)
    conf.set_override("auth_url", f"{server.url}/nothing-here", "placement")
    server.answers = [(404, {})]
    with pytest.raises((ServiceUnavailable, ServiceError)):
        Clients.from_conf(conf).placement.usages(user, "p")


@pytest.mark.parametrize(
    ("method", "error", "again"),
    [
        ("GET", ServiceUnavailable("x", "lost"), True),
        ("POST", ServiceUnavailable("x", "lost"), False),
        ("POST", ServiceUnavailable("x", "refused", sent=False), True),
        ("POST", ServiceUnavailable("x", "busy", 503), False),
        ("POST", ServiceUnavailable("x", "slowly", 429), True),
        ("PUT", ServiceError("x", "race", 500), True),
        ("POST", ServiceError("x", "race", 500), False),
        ("GET", ServiceError("x", "unknown", 501), False),
        ("GET", CredentialsMissing("x", "none"), False),
    ],
)
def test_what_may_be_sent_again(method, error, again):
    assert clients_http.may_repeat(Request(method, "/", context.admin()), error) is again


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"errors": [{"code": "c", "detail": "d"}]}, "c", "d"),
        ({"NeutronError": {"type": "T", "message": "m", "detail": ""}}, "T", "m"),
        ({"badRequest": {"code": 400, "message": "m"}}, None, "m"),
        ({"message": "plain"}, None, "plain"),
        ([1, 2], None, "[1, 2]"),
    ],
)
def test_errors_of_all_services_are_understood(body, kind, message):
    assert clients_http.explain(Reply(400, json.dumps(body).encode())) == (kind, message)


def test_errors_that_are_no_json():
    assert clients_http.explain(Reply(502, b"<html>Bad Gateway</html>")) == (None, "<html>Bad Gateway</html>")


@pytest.mark.parametrize("name", [".", "..", "../tasks", "a?b", "a#b", "%2e%2e", "a/%2E%2E/b", "..\\a"])
def test_a_name_that_would_make_it_another_request_names_nothing(name: str) -> None:
    sent: list[Request] = []

    class Recording:
        def send(self, request: Request) -> Reply:
            sent.append(request)
            return Reply(200)

        def stream(self, request: Request) -> tuple[Reply, Iterator[bytes]]:
            raise AssertionError

    http = clients_http.Http("glance", Recording())
    assert http.call(context.RequestContext(), "GET", f"/v2/images/{name}").status == 404
    assert sent == []
    assert http.call(context.RequestContext(), "GET", "/v2/images/a..b").status == 200
