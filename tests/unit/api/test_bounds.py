"""What a member may ask of the API has an end: text, numbers, times, nesting, counts. Never a 500 and never a wait."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import falcon.testing
import pytest
from tests.unit.api import seeds
from tests.unit.api.conftest import PROJECT

from kilonova.contract.nouns.servers import SORT_KEYS

SMILE = "\U0001f600"
UNFIT = (SMILE, "a\0b")
HUGE = "9" * 23
MANY = ",".join(f"t{n}" for n in range(2000))
NOBODY = "99999999-9999-4999-8999-999999999999"


def raw(world: Any, method: str, path: str, data: bytes) -> int:
    headers = {"X-Auth-Token": f"joe:{PROJECT}", "Content-Type": "application/json"}
    client = falcon.testing.TestClient(world.app)
    return client.simulate_request(method, f"/v2.1{path}", headers=headers, body=data).status_code


NAMED = [
    ("GET", "/servers/{}"),
    ("DELETE", "/servers/{}"),
    ("GET", "/servers/{}/metadata"),
    ("GET", "/servers/{server}/metadata/{}"),
    ("DELETE", "/servers/{server}/metadata/{}"),
    ("GET", "/servers/{server}/tags/{}"),
    ("DELETE", "/servers/{server}/tags/{}"),
    ("GET", "/servers/{server}/os-instance-actions/{}"),
    ("GET", "/servers/{server}/ips/{}"),
    ("GET", "/flavors/{}"),
    ("DELETE", "/flavors/{}"),
    ("GET", "/flavors/{}/os-extra_specs"),
    ("GET", "/flavors/small/os-extra_specs/{}"),
    ("DELETE", "/flavors/small/os-extra_specs/{}"),
    ("GET", "/os-keypairs/{}"),
    ("DELETE", "/os-keypairs/{}"),
    ("GET", "/os-server-groups/{}"),
    ("DELETE", "/os-server-groups/{}"),
    ("GET", "/os-aggregates/{}"),
    ("DELETE", "/os-services/{}"),
    ("GET", "/os-hypervisors/{}"),
    ("GET", "/os-quota-sets/{}"),
    ("GET", "/os-quota-class-sets/{}"),
    ("GET", "/os-simple-tenant-usage/{}"),
    ("GET", "/extensions/{}"),
]


@pytest.mark.parametrize("text", UNFIT, ids=["smile", "nul"])
@pytest.mark.parametrize(("method", "path"), NAMED)
def test_r23b_there_is_nothing_of_a_name_that_no_database_holds(world: Any, method: str, path: str, text: str) -> None:
    world.flavor()
    server = seeds.server(world)
    asked = path.replace("{server}", server).replace("{}", quote(text))
    assert world.request(method, asked, user="admin", version="2.26").status_code == 404


VALUES = [
    ("POST", "/servers/{server}/metadata", {"metadata": {"a": "{}"}}),
    ("POST", "/servers/{server}/metadata", {"metadata": {"{}": "a"}}),
    ("PUT", "/servers/{server}/metadata", {"metadata": {"a": "{}"}}),
    ("PUT", "/servers/{server}/metadata/a", {"meta": {"a": "{}"}}),
    ("PUT", "/servers/{server}/metadata/{}", {"meta": {"{}": "a"}}),
    ("PUT", "/servers/{server}/tags/{}", None),
    ("PUT", "/servers/{server}/tags", {"tags": ["{}"]}),
    ("PUT", "/servers/{server}", {"server": {"name": "{}"}}),
    ("PUT", "/servers/{server}", {"server": {"description": "{}"}}),
    ("POST", "/servers/{server}/action", {"lock": {"locked_reason": "{}"}}),
    ("POST", "/flavors/small/os-extra_specs", {"extra_specs": {"a": "{}"}}),
    ("POST", "/flavors/small/os-extra_specs", {"extra_specs": {"{}": "a"}}),
    ("PUT", "/flavors/small/os-extra_specs/a", {"a": "{}"}),
    ("POST", "/flavors/small/action", {"addTenantAccess": {"tenant": "{}"}}),
    ("POST", "/flavors", {"flavor": {"name": "{}", "ram": 1, "vcpus": 1, "disk": 1}}),
    ("POST", "/os-keypairs", {"keypair": {"name": "{}"}}),
    ("POST", "/os-keypairs", {"keypair": {"name": "k", "type": "ssh", "public_key": "ssh-rsa AAAA {}"}}),
    ("POST", "/os-server-groups", {"server_group": {"name": "{}", "policies": ["affinity"]}}),
    ("POST", "/os-aggregates", {"aggregate": {"name": "{}"}}),
    ("POST", "/os-aggregates/1/action", {"set_metadata": {"metadata": {"a": "{}"}}}),
    ("POST", "/os-aggregates/1/action", {"add_host": {"host": "{}"}}),
    ("PUT", "/os-services/disable-log-reason", {"host": "h", "binary": "b", "disabled_reason": "{}"}),
    ("PUT", "/os-quota-class-sets/{}", {"quota_class_set": {"cores": 1}}),
    ("POST", "/servers", {"server": {"name": "a", "flavorRef": "1", "imageRef": "", "metadata": {"a": "{}"}}}),
    ("POST", "/servers", {"server": {"name": "a", "flavorRef": "1"}, "os:scheduler_hints": {"x": ["{}"]}}),
]


def _filled(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace("{}", text)
    if isinstance(value, dict):
        return {_filled(key, text): _filled(each, text) for key, each in value.items()}
    return [_filled(each, text) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("text", UNFIT, ids=["smile", "nul"])
@pytest.mark.parametrize(("method", "path", "body"), VALUES)
def test_r23_text_that_a_database_cannot_hold_is_refused(
    world: Any, method: str, path: str, body: Any, text: str
) -> None:
    world.flavor()
    server = seeds.server(world)
    asked = path.replace("{server}", server).replace("{}", quote(text))
    version = "2.30" if "locked_reason" not in str(body) else "2.73"
    assert world.request(method, asked, _filled(body, text), user="admin", version=version).status_code == 400


@pytest.mark.parametrize("text", UNFIT, ids=["smile", "nul"])
@pytest.mark.parametrize(
    "query",
    [
        *(f"/servers?{name}=" for name in ("name", "marker", "status", "image", "flavor", "ip", "user_id", "host")),
        *(
            f"/servers?{name}="
            for name in ("tags", "not-tags", "metadata", "availability_zone", "key_name", "sort_key")
        ),
        *(f"/flavors?{name}=" for name in ("marker", "sort_key", "minRam", "is_public")),
        *(f"/os-keypairs?{name}=" for name in ("marker", "user_id")),
        *(f"/os-hypervisors?{name}=" for name in ("marker",)),
        *(f"/os-server-groups?{name}=" for name in ("offset", "limit")),
        *(f"/os-services?{name}=" for name in ("host", "binary")),
        f"/os-quota-sets/{PROJECT}?user_id=",
        f"/os-simple-tenant-usage/{PROJECT}?marker=",
    ],
)
def test_r23b_parameters(world: Any, query: str, text: str) -> None:
    answer = world.get(query + quote(text), user="admin", version="2.40")
    assert answer.status_code == 400, answer.json


def test_r23_a_password_may_be_any_text(world: Any, conductor: Any) -> None:
    # It goes to the guest and into no table.
    body = {"server": {"name": "a", "flavorRef": "none", "imageRef": NOBODY, "adminPass": SMILE}}
    message = world.post("/servers", body).json["badRequest"]["message"]
    assert "adminPass" not in message


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"/os-aggregates/{HUGE}", 404),
        (f"/os-aggregates/{'9' * 5000}", 404),
        (f"/os-services/{HUGE}", 404),
        (f"/os-hypervisors/{HUGE}", 404),
        (f"/os-hypervisors/{'9' * 5000}", 404),
        (f"/os-server-groups?offset={'9' * 20}", 400),
        (f"/os-server-groups?offset={'9' * 5000}", 400),
        (f"/os-server-groups?limit={HUGE}", 400),
        (f"/servers?limit={'9' * 5000}", 400),
        (f"/servers?limit={'9' * 20}", 200),
        (f"/flavors?limit={'9' * 20}", 200),
        (f"/flavors?minRam={HUGE}", 400),
        (f"/flavors?minDisk={'9' * 5000}", 400),
        ("/servers?changes-since=0001-01-01T00:00:00%2B14:00", 400),
        ("/servers?changes-since=9999-12-31T23:59:59-14:00", 400),
        ("/os-simple-tenant-usage?start=0001-01-01T00:00:00&end=9999-12-31T23:59:59", 200),
    ],
)
def test_o2_numbers_and_times_at_their_ends(world: Any, path: str, code: int) -> None:
    method = "DELETE" if "os-services" in path else "GET"
    assert world.request(method, path, user="admin").status_code == code


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/os-server-groups", {"server_group": {"name": "a", "policy": "anti-affinity", "rules": {"max": 1}}}),
        (
            "/os-server-groups",
            {"server_group": {"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": "9" * 5000}}},
        ),
        ("/servers", {"server": {"name": "a", "flavorRef": 10**30, "imageRef": NOBODY, "networks": "none"}}),
        ("/servers", {"server": {"name": "a", "flavorRef": "1", "imageRef": NOBODY, "min_count": "9" * 5000}}),
        ("/servers", {"server": {"name": "a", "flavorRef": "1", "imageRef": NOBODY, "networks": "none"}, "x": 1}),
    ],
)
def test_d12_numbers_in_bodies(world: Any, path: str, body: Any) -> None:
    assert world.post(path, body, version="2.64").status_code == 400


def test_d12_a_project_without_quotas_gets_no_million_servers(world: Any) -> None:
    world.flavor()
    server = {"name": "a", "flavorRef": "small", "imageRef": NOBODY, "min_count": 10**9, "networks": "none"}
    began = time.monotonic()
    assert world.post("/servers", {"server": server}, version="2.40").status_code == 400
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("depth", [65, 900, 10000])
def test_d12_json_nested_deep(world: Any, depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        inner = b"1" if opening != b"[" else b""
        assert raw(world, "POST", "/servers", opening * depth + inner + closing * depth) == 400
        hints = b'{"server":{"name":"a","flavorRef":"1"},"os:scheduler_hints":{"query":{"a":%s}}}'
        assert raw(world, "POST", "/servers", hints % (opening * depth + inner + closing * depth)) == 400


@pytest.mark.parametrize("member", ["networks", "block_device_mapping_v2", "security_groups"])
def test_d8_parts_of_a_server_have_an_end(world: Any, member: str) -> None:
    part = {
        "networks": {"uuid": NOBODY},
        "block_device_mapping_v2": {"uuid": NOBODY, "source_type": "volume", "destination_type": "volume"},
        "security_groups": {"name": "x"},
    }[member]
    server = {"name": "a", "flavorRef": "1", "imageRef": NOBODY, "networks": [], member: [part] * 65}
    answer = world.post("/servers", {"server": server}, version="2.40")
    assert answer.status_code == 400
    assert member in answer.json["badRequest"]["message"]


@pytest.mark.parametrize(
    "query",
    [
        *(
            f"{name}=" + ",".join(f"t{n}" for n in range(2000))
            for name in ("tags", "tags-any", "not-tags", "not-tags-any")
        ),
        "&".join(f"sort_key={name}" for name in ["created_at", "display_name"] * 270) + f"&marker={NOBODY}",
        "&".join(f"status={n}" for n in range(65)),
    ],
)
def test_d8_what_a_list_may_ask_has_an_end(world: Any, query: str) -> None:
    began = time.monotonic()
    assert world.get(f"/servers?{query}", version="2.30").status_code == 400
    assert time.monotonic() - began < 2


def test_d8_as_many_tags_as_a_server_has_and_every_sort_key_are_served(world: Any) -> None:
    marker = seeds.server(world)
    seeds.server(world, "c2")
    tags = ",".join(f"t{n}" for n in range(50))
    began = time.monotonic()
    assert len(world.get(f"/servers?not-tags={tags}", version="2.30").json["servers"]) == 2
    keys = "&".join(f"sort_key={key}" for key in sorted(SORT_KEYS - {"host", "node"}))
    assert world.get(f"/servers?{keys}&marker={marker}", version="2.30").status_code == 200
    assert time.monotonic() - began < 5
