"""The HTTP machinery with a small API of its own."""

import io
import logging
import re
from typing import Any

import falcon.testing
import msgspec
import pytest
from oslo_config import cfg

from kilonova.base import present
from kilonova.contract import policies
from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.context import RequestContext
from kilonova.contract.fields import TEXT, Field, Object, query
from kilonova.contract.microversions import since, until
from kilonova.wire.http import app as http
from kilonova.wire.http.auth import NoAuth
from kilonova.wire.http.call import Binding, Call, Reply
from kilonova.wire.http.faults import Fault
from kilonova.wire.http.front import Front
from kilonova.wire.http.policy import Enforcer
from kilonova.wire.http.versions import Negotiation

SHOW = Route(
    method="GET",
    path="/things/{id}",
    query=query(Field("color", TEXT), Field("size", TEXT, since(10)), lenient=until(74)),
    response=Object(Field("thing", Object(Field("id", TEXT), Field("description", TEXT, since(19))))),
)
CREATE = Route(
    method="POST",
    path="/things",
    success=201,
    body=Object(Field("thing", Object(Field("name", TEXT, required=True), Field("tag", TEXT, since(52))))),
)
OLD = Route(method="GET", path="/old", versions=until(35))
NEW = Route(method="GET", path="/old", versions=since(36))
PAINT = Route(method="POST", path="/things/{id}/action", action="paint", success=202, body=Object(Field("paint", {})))
PARTS = Route(method="GET", path="/things/{thing_id}/parts/{id}")


def show(call: Call[Any], id: str) -> dict[str, Any]:
    if id == "missing":
        raise Fault(404, "no such thing")
    if id == "broken":
        raise RuntimeError("secret")
    if id == "guarded":
        call.authorize("os_compute_api:os-services:list")
    return {"thing": {"id": id, "description": str(call.query)}}


def create(call: Call[Any]) -> Reply:
    return Reply({"got": call.body, "project": call.context.project_id}, headers={"Location": call.url("/things/1")})


BINDINGS = [
    Binding(SHOW, show),
    Binding(CREATE, create),
    Binding(OLD, lambda call: {"old": True}),
    Binding(NEW, lambda call: {"links": call.links("/things/1"), "next": call.next_link("7")}),
    Binding(PAINT, lambda call, id: None),
    Binding(PARTS, lambda call, thing_id, id: {"ids": [thing_id, id]}),
]


def make(**changes: Any) -> Any:
    conf = cfg.ConfigOpts()
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    enforcer = Enforcer(conf, policies.RULES)
    api = http.Api(
        **{
            "bindings": BINDINGS,
            "negotiation": Negotiation("compute", 2, 1, 104),
            "mounts": (http.Mount("/v2.1"), http.Mount("/v2", legacy_version=0)),
            "policy": enforcer,
            "services": None,
            "content_types": ("application/json",),
            "project_id": "[0-9a-f-]+",
            "errors": lambda error: None,
            "unbuilt": {
                ("GET", "/planned", None): (),
                ("POST", "/things/{server_id}/action", "bend"): ("os_compute_api:os-evacuate",),
                ("GET", "/things/{id}", None): (),
            },
            "removed": {
                ("GET", "/gone", None): (until(5), 410),
                ("GET", "/gone/too", None): (until(5), 400),
            },
            "request_id_headers": ("x-compute-request-id", "x-openstack-request-id"),
            "max_body": 1000,
        }
        | changes
    )

    def is_admin(context: RequestContext) -> bool:
        return enforcer.allows("context_is_admin", None, context)

    return Front(api, NoAuth(http.make(api), is_admin), lambda environ: None)


@pytest.fixture
def client() -> falcon.testing.TestClient:
    return falcon.testing.TestClient(make(), headers={"X-Auth-Token": "joe:abc"})


def test_an_answer_carries_version_and_request_id(client: Any) -> None:
    answer = client.simulate_get("/v2.1/things/1")
    assert answer.status_code == 200
    assert answer.json == {"thing": {"id": "1"}}
    assert answer.headers["openstack-api-version"] == "compute 2.1"
    assert answer.headers["x-openstack-nova-api-version"] == "2.1"
    assert answer.headers["vary"] == "OpenStack-API-Version, X-OpenStack-Nova-API-Version"
    assert answer.headers["x-compute-request-id"] == answer.headers["x-openstack-request-id"]
    assert answer.headers["x-compute-request-id"].startswith("req-")


@pytest.mark.parametrize(
    ("accepted", "kind"),
    [
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("application/vnd.openstack.compute+json", "application/vnd.openstack.compute+json"),
        ("application/vnd.openstack.compute+json;q=0.1, application/json", "application/json"),
        ("not / a type", "application/json"),
    ],
)
def test_an_answer_has_the_accepted_name_of_json(client: Any, accepted: str, kind: str) -> None:
    assert client.simulate_get("/v2.1/things/1", headers={"Accept": accepted}).headers["content-type"] == kind


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"OpenStack-API-Version": "compute 2.19"}, "2.19"),
        ({"OpenStack-API-Version": "volume 3.0, Compute 2.19"}, "2.19"),
        ({"X-OpenStack-Nova-API-Version": "2.19"}, "2.19"),
        ({"OpenStack-API-Version": "compute latest"}, "2.104"),
        ({"OpenStack-API-Version": "compute 2.7", "X-OpenStack-Nova-API-Version": "2.19"}, "2.7"),
        ({"OpenStack-API-Version": "volume 3.59"}, "2.1"),
        ({"OpenStack-API-Version": "compute\t2.19"}, "2.19"),
    ],
)
def test_the_version_is_negotiated(client: Any, headers: dict[str, str], shown: str) -> None:
    answer = client.simulate_get("/v2.1/things/1", headers=headers)
    assert answer.headers["x-openstack-nova-api-version"] == shown
    assert ("description" in answer.json["thing"]) == (shown in ("2.19", "2.104"))


@pytest.mark.parametrize(("wanted", "code"), [("2.105", 406), ("3.1", 406), ("2", 400), ("new", 400), ("2.01", 400)])
def test_a_version_that_is_not_served(client: Any, wanted: str, code: int) -> None:
    answer = client.simulate_get("/v2.1/things/1", headers={"OpenStack-API-Version": f"compute {wanted}"})
    assert answer.status_code == code
    assert next(iter(answer.json.values()))["code"] == code
    # Caches must keep it apart from the answer to another version.
    named = (answer.headers.get("x-openstack-nova-api-version"), "vary" in answer.headers)
    assert named == ((wanted, True) if code == 406 else (None, False))


def test_headers_and_queries_that_say_nothing(client: Any) -> None:
    assert client.simulate_get("/v2.1/things/1", headers={"X-OpenStack-Nova-API-Version": ""}).status_code == 400
    answer = client.simulate_get("/v2.1/things/1", query_string="name=%FF")
    assert answer.status_code == 400
    assert "UTF-8" in answer.json["badRequest"]["message"]


def test_the_legacy_endpoint_ignores_versions_and_drops_unknown_members(client: Any) -> None:
    answer = client.simulate_post(
        "/v2/abc/things", json={"thing": {"name": "a", "x": 1}}, headers={"OpenStack-API-Version": "compute 9"}
    )
    assert answer.status_code == 201
    assert answer.json["got"] == {"thing": {"name": "a"}}
    assert "openstack-api-version" not in answer.headers


def test_the_project_id_may_stand_in_the_path(client: Any) -> None:
    assert client.simulate_get("/v2.1/abc/things/1").status_code == 200
    answer = client.simulate_get("/v2.1/abcdef/things/1")
    assert answer.status_code == 400
    assert "abcdef" in answer.json["badRequest"]["message"]


def test_links_repeat_the_form_of_the_url(client: Any) -> None:
    answer = client.simulate_get("/v2.1/abc/old?limit=2&marker=1", headers={"OpenStack-API-Version": "compute 2.36"})
    assert answer.json["links"] == [
        {"rel": "self", "href": "http://falconframework.org/v2.1/abc/things/1"},
        {"rel": "bookmark", "href": "http://falconframework.org/abc/things/1"},
    ]
    assert answer.json["next"]["href"] == "http://falconframework.org/v2.1/abc/old?limit=2&marker=7"


def test_the_next_page_is_of_the_same_list(client: Any) -> None:
    """Every value of a parameter, in its order; the marker last where there was none."""
    query = "sort_key=b&sort_key=a&sort_dir=asc&limit=2"
    answer = client.simulate_get(f"/v2.1/old?{query}", headers={"OpenStack-API-Version": "compute 2.36"})
    wanted = "limit=2&sort_dir=asc&sort_key=b&sort_key=a&marker=7"
    assert answer.json["next"]["href"].partition("?")[2] == wanted


def test_links_follow_the_configured_prefix() -> None:
    app = make(link_prefix="https://cloud.example/compute/")
    answer = falcon.testing.TestClient(app, headers={"X-Auth-Token": "joe:abc"}).simulate_post(
        "/v2.1/things", json={"thing": {"name": "a"}}
    )
    assert answer.headers["location"] == "https://cloud.example/compute/v2.1/things/1"


def test_a_proxy_is_believed_only_where_configured() -> None:
    headers = {"X-Auth-Token": "joe:abc", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "cloud.example"}
    for proxied, expected in ((False, "http://falconframework.org"), (True, "https://cloud.example")):
        answer = falcon.testing.TestClient(make(proxied=proxied), headers=headers).simulate_post(
            "/v2.1/things", json={"thing": {"name": "a"}}
        )
        assert answer.headers["location"] == expected + "/v2.1/things/1"


def test_parameters_keep_the_names_of_their_route(client: Any) -> None:
    assert client.simulate_get("/v2.1/things/8/parts/9").json == {"ids": ["8", "9"]}


def test_routes_exist_in_their_versions_only(client: Any) -> None:
    assert client.simulate_get("/v2.1/old").json == {"old": True}
    create_later = Route(method="GET", path="/later", versions=since(50))
    app = make(bindings=[Binding(create_later, lambda call: {})])
    answer = falcon.testing.TestClient(app, headers={"X-Auth-Token": "joe:abc"}).simulate_get("/v2.1/later")
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "name"),
    [
        ("GET", "/v2.1/nothing", None, 404, "itemNotFound"),
        ("GET", "/v2.1/things/missing", None, 404, "itemNotFound"),
        ("GET", "/v2.1/things/broken", None, 500, "computeFault"),
        ("GET", "/v2.1/things/guarded", None, 403, "forbidden"),
        ("GET", "/v2.1/planned", None, 501, "notImplemented"),
        ("GET", "/v2.1/gone", None, 410, "computeFault"),
        ("DELETE", "/v2.1/things/1", None, 405, "badMethod"),
        ("POST", "/v2.1/things/1/action", {"bend": None}, 403, "forbidden"),
        ("POST", "/v2.1/things/1/action", {"fold": None}, 400, "badRequest"),
        ("POST", "/v2.1/things/1/action", {"paint": None, "fold": None}, 400, "badRequest"),
        ("POST", "/v2.1/things/1/action", [1], 400, "badRequest"),
        ("POST", "/v2.1/things", {"thing": {}}, 400, "badRequest"),
        ("POST", "/v2.1/things", {"thing": {"name": "a", "tag": "b"}}, 400, "badRequest"),
        ("POST", "/v2.1/things", None, 400, "badRequest"),
    ],
)
def test_faults(client: Any, method: str, path: str, body: Any, code: int, name: str) -> None:
    more = {} if body is None else {"json": body}
    answer = client.simulate_request(method, path, **more)
    assert answer.status_code == code
    assert list(answer.json) == [name]
    assert answer.json[name]["code"] == code
    assert "secret" not in answer.json[name]["message"]


def test_an_action_without_body_answers_202(client: Any) -> None:
    answer = client.simulate_post("/v2.1/things/1/action", json={"paint": None})
    assert (answer.status_code, answer.text) == (202, "")


def test_bodies_that_are_no_json_or_too_large(client: Any) -> None:
    def post(body: str, kind: str) -> int:
        return int(client.simulate_post("/v2.1/things", body=body, headers={"Content-Type": kind}).status_code)

    assert post("{", "application/json") == 400
    assert post("<a/>", "application/xml") == 415
    assert post(msgspec.json.encode({"thing": {"name": "a" * 2000}}).decode(), "application/json") == 413


def test_unknown_parameters_are_dropped_until_a_version_refuses_them(client: Any) -> None:
    old = client.simulate_get("/v2.1/things/1?color=a&color=b&odd=1", headers={"OpenStack-API-Version": "compute 2.19"})
    assert old.json["thing"]["description"] == "{'color': ['a', 'b']}"
    new = client.simulate_get("/v2.1/things/1?odd=1", headers={"OpenStack-API-Version": "compute 2.75"})
    assert new.status_code == 400


def test_a_token_is_needed() -> None:
    answer = falcon.testing.TestClient(make()).simulate_get("/v2.1/things/1")
    assert answer.status_code == 401
    assert answer.headers["x-openstack-request-id"]


def test_the_legacy_range_is_its_own() -> None:
    assert 0 in LEGACY_ONLY
    assert 1 not in LEGACY_ONLY


# ---------------------------------------------------------------- log lines and headers


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kilonova.http.access"]


def test_the_access_line_has_what_operators_tools_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kilonova.http.access")
    client = falcon.testing.TestClient(make(), headers={"X-Auth-Token": "joe:abc"})
    client.simulate_get("/v2.1/things/1", headers={"OpenStack-API-Version": "compute 2.19"}, query_string="color=red")
    client.simulate_get("/v2.1/things/a\nb\x1b\u2028é")
    first, second = lines(caplog)
    form = r'- "GET %s" status: %s len: \d+ microversion: %s time: \d+\.\d{6}'
    assert re.fullmatch(form % (r"/v2\.1/things/1\?color=red", 200, r"2\.19"), first)
    assert re.fullmatch(form % (r"/v2\.1/things/a%0Ab%1B%E2%80%A8%C3%A9", 404, "-"), second)


def test_a_line_carries_the_identity_of_its_own_request(caplog: pytest.LogCaptureFixture) -> None:
    """One thread serves a user, somebody without a token, and another user."""
    caplog.set_level("INFO")
    seen: list[Any] = []
    application = make(errors=lambda error: None)

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            context = present.current()
            seen.append((record.name, context and context.user_id, context and context.request_id))

    handler = Watch()
    logging.getLogger().addHandler(handler)
    try:
        client = falcon.testing.TestClient(application)
        for token in ({"X-Auth-Token": "joe:abc"}, {}, {"X-Auth-Token": "ann:abc"}):
            client.simulate_get("/v2.1/things/broken", headers=token)
            assert present.current() is None
    finally:
        logging.getLogger().removeHandler(handler)
    names = [(name, user) for name, user, _ in seen if name.startswith("kilonova")]
    app, access = "kilonova.wire.http.app", "kilonova.http.access"
    assert names == [(app, "joe"), (access, "joe"), (access, None), (app, "ann"), (access, "ann")]
    assert len({request_id for *_, request_id in seen}) == 3


def test_what_fails_outside_of_the_api_is_a_fault_too() -> None:
    def broken(environ: Any, start_response: Any) -> Any:
        raise RuntimeError("no Keystone")

    api = make()._api
    answer = falcon.testing.TestClient(Front(api, broken, lambda environ: None)).simulate_get("/v2.1/things/1")
    assert answer.status_code == 500
    assert answer.json["computeFault"]["code"] == 500
    assert "no Keystone" not in answer.text


@pytest.mark.parametrize("value", ["http://h/v2.1/things/é\r\nSet-Cookie: a=b", "a\x00\x1b\u2028\U0001f600"])
def test_a_header_is_printable_whatever_a_users_text_is(value: str) -> None:
    def answering(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Location", value), ("Content-Type", "text/plain"), ("Content-Length", "0")])
        return []

    front = Front(make()._api, answering, lambda environ: None)
    location = falcon.testing.TestClient(front).simulate_get("/").headers["location"]
    assert location.isascii()
    assert location.isprintable()


@pytest.mark.parametrize("digits", [5, 5000])
def test_a_version_of_any_length_is_one_that_is_not_served(client: Any, digits: int) -> None:
    for header in (
        {"OpenStack-API-Version": f"compute 2.{'9' * digits}"},
        {"X-OpenStack-Nova-API-Version": "9" * digits + ".1"},
    ):
        assert client.simulate_get("/v2.1/things/1", headers=header).status_code == 406


@pytest.mark.parametrize(("proxied", "seen"), [(True, "203.0.113.9"), (False, "192.0.2.7")])
def test_who_asked_a_trusted_proxy_is_what_the_proxy_says(
    caplog: pytest.LogCaptureFixture, proxied: bool, seen: str
) -> None:
    caplog.set_level("INFO", "kilonova.http.access")
    falcon.testing.TestClient(make(proxied=proxied)).simulate_get(
        "/v2.1/things/1",
        headers={"X-Forwarded-For": "10.0.0.1, 203.0.113.9"},
        remote_addr="192.0.2.7",
    )
    assert lines(caplog)[0].startswith(f'{seen} "GET')


def test_the_policy_is_asked_before_a_501(client: Any) -> None:
    def ask(token: str) -> Any:
        path, body = "/v2.1/things/1/action", {"bend": None}
        return client.simulate_post(path, json=body, headers={"X-Auth-Token": token})

    refused = ask("joe:abc")
    assert (refused.status_code, refused.json["forbidden"]["message"]) == (
        403,
        "Policy doesn't allow os_compute_api:os-evacuate to be performed.",
    )
    assert ask("admin:abc").status_code == 501


def test_standard_sentences(client: Any) -> None:
    gone = client.simulate_get("/v2.1/gone")
    sentence = "This resource is no longer available.  No forwarding address is given."
    assert (gone.status_code, list(gone.json.values())) == (410, [{"code": 410, "message": sentence}])
    bad = client.simulate_get("/v2.1/gone/too")
    assert bad.status_code == 400
    assert bad.json["badRequest"]["message"].startswith("The server could not comply with the request since\r\n")
    assert client.simulate_get("/v2.1/nowhere").json["itemNotFound"]["message"] == "The resource could not be found."


@pytest.mark.parametrize(("undone", "status"), [(True, 201), (False, 411)])
def test_d11_a_chunked_body_is_read_where_the_server_says_where_it_ends(client: Any, undone: bool, status: int) -> None:
    raw = msgspec.json.encode({"thing": {"name": "x"}})
    environ = {"wsgi.input": io.BytesIO(raw), "wsgi.input_terminated": undone, "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = client.simulate_post("/v2.1/things", headers={"Content-Type": "application/json"}, extras=environ)
    assert answer.status_code == status
    assert not undone or answer.json["got"]["thing"] == {"name": "x"}


def test_chunks_are_bounded_too(client: Any) -> None:
    environ = {"wsgi.input": io.BytesIO(b"a" * 2000), "wsgi.input_terminated": True}
    environ["HTTP_TRANSFER_ENCODING"] = "chunked"
    answer = client.simulate_post("/v2.1/things", headers={"Content-Type": "application/json"}, extras=environ)
    assert answer.status_code == 413
