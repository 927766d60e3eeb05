"""What users write, on MariaDB and PostgreSQL: keys that differ by case, text that no table holds, broken patterns."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import falcon.testing
import pytest
from tests.fakes import Cloud
from tests.real.database_fixtures import database_server, new_databases
from tests.unit.api import seeds
from tests.unit.api.conftest import PROJECT, World
from tests.unit.db.test_patterns import BROKEN, GOOD, SLOW, TEXTS

from kilonova import conf as configuration
from kilonova.api.app import make_app
from kilonova.contract.nouns.server_tags import MOST as MOST_TAGS
from kilonova.contract.nouns.servers import LIST, SORT_KEYS
from kilonova.db import patterns
from kilonova.db.api import cell_mappings
from kilonova.db.cell.tables import INSTANCES
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.wire.rpc.bus import Bus

__all__ = ["database_server"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SMILE = "\U0001f600"


@pytest.fixture(scope="module")
def world(database_server: str) -> Iterator[World]:
    """The API over databases of a server: cell0 and one cell."""
    with new_databases(database_server, ("api", "cell0", "c1")) as urls:
        for url, make in zip(urls, (sync.sync_api, sync.sync_main, sync.sync_main), strict=True):
            database = Database(url)
            make(database)
            database.dispose()
        conf = configuration.new()
        conf([], project="nova", default_config_files=[], default_config_dirs=[])
        conf.set_override("auth_strategy", "noauth2", group="api")
        conf.set_override("connection", urls[0], group="api_database")
        conf.set_override("connection", urls[2], group="database")
        bus_url = f"fake://{uuid.uuid4()}/"
        cells = Cells(conf)
        uuids = {"cell0": CELL0_UUID, "c1": str(uuid.uuid4())}
        with cells.api.write() as tx:
            for (name, cell_uuid), url in zip(uuids.items(), urls[1:], strict=True):
                values = {"uuid": cell_uuid, "name": name, "database_connection": url, "disabled": False}
                transport = "none:///" if name == "cell0" else bus_url
                cell_mappings.cell_mapping_create(tx, values | {"transport_url": transport})
        cloud = Cloud()
        cloud.keystone.projects.add(PROJECT)
        bus = Bus(conf, bus_url)
        yield World(conf, cells, bus, cloud, make_app(conf, cells, bus, cloud.clients), uuids)
        cells.dispose()


@pytest.fixture
def server(world: World) -> str:
    return seeds.server(world)


def dialect(world: World) -> str:
    return world.cells.api.dialect


# ---------------------------------------------------------------- patterns


@pytest.mark.parametrize("name", ["name", "created_at", "ip", "access_ip_v4"])
def test_r01_no_pattern_is_a_fault(world: World, server: str, name: str) -> None:
    for pattern in [*BROKEN, *SLOW, *GOOD, "", SMILE, "a\0"]:
        answer = world.get(f"/servers?{name}={quote(pattern)}", user="admin")
        assert answer.status_code in (200, 400), (pattern, answer.text)
        if pattern in GOOD and pattern:
            assert answer.status_code == 200, (pattern, answer.text)
        if pattern in SLOW:
            assert answer.status_code == 400, (pattern, answer.text)


FILTERS = sorted(set(LIST.query.shape(90).names(90)) - {"limit", "marker", "sort_key", "sort_dir"})


@pytest.mark.parametrize("prefix", ["/v2.1", "/v2"])
def test_r01_no_filter_is_a_fault_whatever_the_type_of_its_column(world: World, server: str, prefix: str) -> None:
    """The old endpoint takes any parameter, and so any column."""
    names = FILTERS if prefix == "/v2.1" else sorted({*FILTERS, *(str(column.name) for column in INSTANCES.columns)})
    client = falcon.testing.TestClient(world.app)
    for name in names:
        for value in ("abc", "1", "-1", "9" * 30, "", "a++", "true", "2026-01-01T00:00:00Z", "::1", "é"):
            headers = {"X-Auth-Token": f"admin:{PROJECT}", "OpenStack-API-Version": "compute 2.90"}
            answer = client.simulate_get(f"{prefix}/servers", params={name: value}, headers=headers)
            assert answer.status_code in (200, 400, 403), (name, value, answer.text)


def test_r01_a_pattern_means_the_same_here(world: World) -> None:
    project = uuid.uuid4().hex
    made = {seeds.server(world, display_name=text, project_id=project): text for text in TEXTS}
    flags = re.IGNORECASE if dialect(world) == "mysql" else 0
    for pattern in GOOD:
        # Letters of other alphabets are letters to some engines and none to others.
        if not pattern or ":alpha:" in pattern:
            continue
        python = re.compile(pattern.replace("[:alpha:]", "a-zA-Z"), flags)
        answer = world.get(f"/servers?name={quote(pattern)}", project=project)
        shown = sorted(made[one["id"]] for one in answer.json["servers"])
        assert shown == sorted(text for text in TEXTS if python.search(text)), pattern


def test_d1_a_statement_with_a_pattern_has_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bound: a pattern that the checks let pass and that the database cannot end."""
    project = uuid.uuid4().hex
    for _ in range(300):
        seeds.server(world, display_name="a" * 255, project_id=project)
    monkeypatch.setattr(patterns, "checked", lambda name, pattern: pattern)
    limits = {
        "postgresql": ("SET LOCAL statement_timeout = 1", None),
        "mariadb": ("SET SESSION max_statement_time = 0.001", "SET SESSION max_statement_time = DEFAULT"),
        "mysql": ("SET SESSION max_execution_time = 1", "SET SESSION max_execution_time = DEFAULT"),
    }
    monkeypatch.setattr(patterns, "_LIMITS", limits)
    slow = "(a?){30}(a*)*(a*)*b|(a{1,50}){1,5}c"
    began = time.monotonic()
    answer = world.get(f"/servers?name={quote(slow)}", project=project)
    assert (answer.status_code, time.monotonic() - began < 30) == (400, True), answer.text
    # The connection is as before.
    monkeypatch.undo()
    assert world.get("/servers?name=a", project=project).status_code == 200


# ---------------------------------------------------------------- names as keys


def test_r22_metadata_keys_that_differ_by_case(world: World, server: str) -> None:
    path = f"/servers/{server}/metadata"
    given = {"foo": "1", "Foo": "2", "FOO": "3", "z": "4", "a ": "5", "a": "6"}
    assert world.request("PUT", path, {"metadata": given}).json["metadata"] == given
    assert world.request("DELETE", f"{path}/foo").status_code == 204
    assert world.request("DELETE", f"{path}/fOO").status_code == 404
    assert world.request("PUT", f"{path}/Z", {"meta": {"Z": "7"}}).status_code == 200
    assert world.request("PUT", f"{path}/a", {"meta": {"a": "8"}}).status_code == 200
    kept = {"Foo": "2", "FOO": "3", "z": "4", "Z": "7", "a ": "5", "a": "8"}
    assert world.get(path).json["metadata"] == kept
    assert world.request("PUT", path, {"metadata": {"FOO": "9"}}).json["metadata"] == {"FOO": "9"}
    assert world.get(path).json["metadata"] == {"FOO": "9"}


def test_r22_tags(world: World, server: str) -> None:
    path = f"/servers/{server}/tags"
    assert world.request("PUT", path, {"tags": ["tag", "TAG"]}, version="2.26").status_code == 400
    assert world.request("PUT", path, {"tags": ["tag", "täg2"]}, version="2.26").status_code == 200
    assert world.request("PUT", f"{path}/TAG", version="2.26").status_code == 400
    assert world.request("PUT", f"{path}/tag", version="2.26").status_code == 204
    assert world.request("GET", f"{path}/TAG", version="2.26").status_code == 404
    assert world.request("DELETE", f"{path}/TAG", version="2.26").status_code == 404
    assert sorted(world.get(path, version="2.26").json["tags"]) == ["tag", "täg2"]
    shown = [len(world.get(f"/servers?tags={tag},täg2", version="2.26").json["servers"]) for tag in ("tag", "TAG")]
    assert shown == [1, 0]
    # Another spelling may take its place.
    assert world.request("PUT", path, {"tags": ["TAG"]}, version="2.26").json["tags"] == ["TAG"]


def admin(world: World, method: str, path: str, body: Any = None, version: str = "2.1") -> Any:
    return world.request(method, path, body, user="admin", version=version)


def test_r22_flavors_and_their_extra_specs(world: World) -> None:
    world.flavor("r22")
    path = "/flavors/r22/os-extra_specs"
    assert admin(world, "POST", path, {"extra_specs": {"a:b": "1", "A:b": "2"}}).status_code == 400
    assert admin(world, "POST", path, {"extra_specs": {"a:b": "1"}}).status_code == 200
    assert admin(world, "PUT", f"{path}/A:b", {"A:b": "2"}).status_code == 400
    assert admin(world, "GET", f"{path}/A:b").status_code == 404
    assert admin(world, "DELETE", f"{path}/A:b").status_code == 404
    assert admin(world, "GET", path).json["extra_specs"] == {"a:b": "1"}
    assert admin(world, "PUT", f"{path}/a:b", {"a:b": "3"}).status_code == 200
    assert admin(world, "GET", "/flavors/R22").status_code == 404
    assert admin(world, "DELETE", "/flavors/R22").status_code == 404
    for name, flavor_id in (("R22", "x"), ("x", "R22"), ("r22 ", "y")):
        flavor = {"name": name, "id": flavor_id, "ram": 1, "vcpus": 1, "disk": 1}
        assert admin(world, "POST", "/flavors", {"flavor": flavor}).status_code in (400, 409)


def test_r22_aggregates(world: World) -> None:
    number = admin(world, "POST", "/os-aggregates", {"aggregate": {"name": "r22"}}).json["aggregate"]["id"]
    assert admin(world, "POST", "/os-aggregates", {"aggregate": {"name": "R22"}}).status_code == 409
    path = f"/os-aggregates/{number}"

    def put(**metadata: Any) -> int:
        return admin(world, "POST", f"{path}/action", {"set_metadata": {"metadata": metadata}}).status_code

    assert [put(a="1", A="2"), put(a="1"), put(A="2"), put(A=None), put(a="3")] == [400, 200, 400, 200, 200]
    assert admin(world, "GET", path).json["aggregate"]["metadata"] == {"a": "3"}
    assert admin(world, "PUT", path, {"aggregate": {"name": "R22"}}).status_code == 200
    assert [put(a=None), put(A="2")] == [200, 200]


def test_r22_key_pairs(world: World) -> None:
    key = {"keypair": {"name": "r22"}}
    assert world.post("/os-keypairs", key).status_code == 200
    assert world.post("/os-keypairs", {"keypair": {"name": "R22"}}).status_code == 409
    assert world.request("GET", "/os-keypairs/R22").status_code == 404
    assert world.request("DELETE", "/os-keypairs/R22").status_code == 404
    assert world.get("/os-keypairs?marker=R22", version="2.35").status_code == 400
    assert world.request("DELETE", "/os-keypairs/r22").status_code == 202


def test_r22_quotas(world: World) -> None:
    assert admin(world, "PUT", "/os-quota-class-sets/DEFAULT", {"quota_class_set": {"cores": 1}}).status_code == 200
    assert admin(world, "GET", "/os-quota-class-sets/default").json["quota_class_set"]["cores"] != 1
    assert admin(world, "GET", "/os-quota-class-sets/DEFAULT").json["quota_class_set"]["cores"] == 1


# ---------------------------------------------------------------- text


@pytest.mark.parametrize("text", [SMILE, "a\0b"], ids=["smile", "nul"])
def test_r23b_text_that_tables_do_not_hold(world: World, server: str, text: str) -> None:
    written = quote(text)
    for path in (f"/servers/{written}", f"/servers/{server}/metadata/{written}", f"/flavors/{written}"):
        assert admin(world, "GET", path).status_code == 404, path
    for path in (f"/servers?marker={written}", f"/servers?name={written}", f"/os-keypairs?marker={written}"):
        assert admin(world, "GET", path, version="2.35").status_code == 400, path
    for body in ({"a": text}, {text: "a"}):
        assert world.post(f"/servers/{server}/metadata", {"metadata": body}).status_code == 400
    lock = {"lock": {"locked_reason": text}}
    assert world.post(f"/servers/{server}/action", lock, version="2.73").status_code == 400


def test_r23_a_server_with_such_text_is_refused_at_the_door(world: World) -> None:
    world.flavor("r23")
    odd = world.cloud.glance.image(name="odd", min_disk=0, min_ram=0, note=SMILE)
    image = world.cloud.glance.image(name="plain", min_disk=0, min_ram=0)
    for more in (
        {"metadata": {"a": SMILE}},
        {"metadata": {"a": "a\0"}},
        {"tags": [SMILE]},
        {"tags": ["tag", "TAG"]},
        {"description": SMILE},
        {"imageRef": odd},
    ):
        server = {"name": "a", "flavorRef": "r23", "imageRef": image, "networks": "none"} | more
        answer = world.post("/servers", {"server": server}, version="2.52")
        assert answer.status_code == 400, more
    assert world.get("/servers?name=^a$").json["servers"] == []


# ---------------------------------------------------------------- how much a list may ask


def test_d8_what_a_list_may_ask_has_an_end_and_is_answered_soon(world: World) -> None:
    project = uuid.uuid4().hex
    made = [seeds.server(world, display_name=f"s{n}", project_id=project) for n in range(300)]

    def asked(query: str) -> tuple[int, float]:
        began = time.monotonic()
        answer = world.get(f"/servers?{query}", project=project, version="2.30")
        return answer.status_code, time.monotonic() - began

    many, most = (",".join(f"t{n}" for n in range(count)) for count in (2000, MOST_TAGS))
    keys = "&".join(f"sort_key={key}" for key in sorted(SORT_KEYS - {"host", "node"}))
    wide = "&".join(["sort_key=created_at&sort_key=display_name"] * 270)
    for query, code in (
        (f"tags={many}", 400),
        (f"not-tags={many}", 400),
        (f"tags={most}&not-tags={most}&tags-any={most}&not-tags-any={most}", 200),
        (f"{wide}&marker={made[0]}", 400),
        (f"{keys}&marker={made[0]}", 200),
    ):
        status, seconds = asked(query)
        assert (status, seconds < 5) == (code, True), (query[:40], seconds)


def test_o2_numbers_and_times_at_their_ends(world: World) -> None:
    huge = "9" * 23
    for path, code in (
        (f"/os-aggregates/{huge}", 404),
        (f"/os-hypervisors/{huge}", 404),
        (f"/os-server-groups?offset={'9' * 20}", 400),
        (f"/os-server-groups?offset={2**63 - 1}", 200),
        (f"/flavors?minRam={2**63 - 1}", 200),
        (f"/flavors?minRam={2**63}", 400),
        (f"/os-aggregates/{2**63 - 1}", 404),
        (f"/os-hypervisors/{2**31}", 404),
        ("/servers?changes-since=0001-01-01T00:00:00%2B14:00", 400),
        ("/servers?changes-since=0001-01-01T00:00:00Z", 200),
        ("/servers?changes-since=9999-12-31T23:59:59Z", 200),
    ):
        assert admin(world, "GET", path).status_code == code, path
