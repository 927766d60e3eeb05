"""Servers listed, shown and changed: over all cells, in pages, by filters, with a cell that is away."""

from __future__ import annotations

import datetime
import json
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from tests.unit.api import seeds

from kilonova.api.servers import listing
from kilonova.base import ids
from kilonova.db import query
from kilonova.db.api import aggregates, build_requests, instance_groups, instance_mappings, request_specs
from kilonova.db.cell import instances
from kilonova.db.cells import Cells
from kilonova.db.failures import LostError

HOUR = datetime.timedelta(hours=1)


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [server["name"] for server in answer.json["servers"]]


@pytest.fixture
def five(world: Any) -> list[str]:
    """Servers a (oldest) to e (newest), by turns in both cells."""
    return [
        seeds.server(
            world,
            ("c1", "c2")[number % 2],
            display_name=name,
            hostname=name,
            created_at=seeds.NOW + number * HOUR,
            updated_at=seeds.NOW + number * HOUR,
        )
        for number, name in enumerate("abcde")
    ]


def test_a_pattern_that_is_none_is_refused_while_servers_are_only_asked_for(world: Any) -> None:
    asked = {"nova_object.data": {"display_name": "a", "vm_state": "building"}}
    values = {"instance_uuid": ids.new_uuid(), "project_id": seeds.PROJECT, "instance": json.dumps(asked)}
    world.cells.api.run(build_requests.build_request_create, values)
    assert names(world.get("/servers?name=a")) == ["a"]
    assert world.get("/servers?name=[").status_code == 400


def test_a_page_with_a_server_that_became_a_record_meanwhile_is_as_full_as_others(world: Any, five: list[str]) -> None:
    asked = {"nova_object.data": {"display_name": "e", "vm_state": "building"}}
    values = {"instance_uuid": five[4], "project_id": seeds.PROJECT, "instance": json.dumps(asked)}
    world.cells.api.run(build_requests.build_request_create, values)
    answer = world.get("/servers?limit=3")
    assert names(answer) == ["e", "d", "c"]
    assert f"marker={five[2]}" in answer.json["servers_links"][0]["href"]


def test_servers_of_all_cells_come_newest_first(world: Any, five: list[str]) -> None:
    assert names(world.get("/servers")) == ["e", "d", "c", "b", "a"]
    assert names(world.get("/servers/detail")) == ["e", "d", "c", "b", "a"]
    assert names(world.get("/servers?sort_key=display_name&sort_dir=asc")) == ["a", "b", "c", "d", "e"]


def test_pages_go_through_all_cells(world: Any, five: list[str]) -> None:
    seen: list[str] = []
    path = "/servers?limit=2"
    while path:
        answer = world.get(path)
        seen += names(answer)
        links = answer.json.get("servers_links", [])
        path = links[0]["href"].partition("/v2.1")[2] if links else ""
    assert seen == ["e", "d", "c", "b", "a"]
    assert world.get("/servers?marker=" + seeds.NOWHERE).status_code == 400
    assert names(world.get("/servers?limit=0")) == []


def test_filters(world: Any, five: list[str]) -> None:
    for asked, expected in (
        ("name=[bc]", ["c", "b"]),
        ("status=active", ["e", "d", "c", "b", "a"]),
        ("status=ERROR", []),
        ("changes-since=2026-01-02T06:30:00Z", ["e"]),
        ("flavor=nothing", []),
    ):
        assert names(world.get(f"/servers?{asked}")) == expected, asked
    assert names(world.get("/servers?changes-before=2026-01-02T03:30:00Z", version="2.66")) == ["a"]
    assert names(world.get("/servers?hostname=a", version="2.90")) == ["a"]
    # Only who passes the policy may filter by host; others get the list as if it were not there.
    assert len(names(world.get("/servers?host=h9"))) == 5
    assert names(world.get("/servers?host=h9", user="admin")) == []
    assert names(world.get("/servers?status=nonsense")) == []
    assert world.get("/servers?status=nonsense", version="2.38").status_code == 400
    assert world.get("/servers?sort_key=host").status_code == 403
    backwards = "changes-since=2026-01-03T00:00:00Z&changes-before=2026-01-02T00:00:00Z"
    assert world.get(f"/servers?{backwards}", version="2.66").status_code == 400


def test_tags_filter(world: Any) -> None:
    seeds.server(world, display_name="a", tags=["x", "y"])
    seeds.server(world, display_name="b", tags=["y"])
    for asked, expected in (
        ("tags=x,y", ["a"]),
        ("tags-any=x,z", ["a"]),
        ("not-tags=x,y", ["b"]),
        ("not-tags-any=x", ["b"]),
    ):
        assert names(world.get(f"/servers?{asked}", version="2.26")) == expected, asked


def test_addresses_filter(world: Any) -> None:
    seeds.server(world, display_name="a", network_info=seeds.VIF % "private")
    seeds.server(world, display_name="b")
    assert names(world.get("/servers?ip=10.0.0.5")) == ["a"]
    assert names(world.get("/servers?ip=10.0.0.9")) == []


def test_other_projects_are_not_seen(world: Any) -> None:
    mine = seeds.server(world, display_name="mine")
    theirs = seeds.server(world, display_name="theirs", project_id=seeds.OTHER)
    assert names(world.get("/servers")) == ["mine"]
    assert world.get(f"/servers/{theirs}").status_code == 404
    assert world.get("/servers?all_tenants=1").status_code == 403
    assert sorted(names(world.get("/servers?all_tenants=1", user="admin"))) == ["mine", "theirs"]
    assert names(world.get(f"/servers?all_tenants=1&tenant_id={seeds.OTHER}", user="admin")) == ["theirs"]
    assert world.get(f"/servers/{mine}").status_code == 200
    assert world.get(f"/servers/{theirs}", user="admin").status_code == 200


def test_deleted_servers_are_for_administrators(world: Any) -> None:
    uuid = seeds.server(world, display_name="gone", updated_at=seeds.NOW)
    with world.cell("c1").database.write() as tx:
        instances.instance_destroy(tx, uuid)
    assert names(world.get("/servers")) == []
    assert world.get(f"/servers/{uuid}").status_code == 404
    assert names(world.get("/servers?deleted=true", user="admin")) == ["gone"]
    shown = world.get("/servers/detail?deleted=true", user="admin", version="2.16").json["servers"][0]
    assert (shown["status"], shown["host_status"]) == ("DELETED", "")
    assert names(world.get("/servers?changes-since=2026-01-01T00:00:00Z")) == ["gone"]


def test_an_administrator_sees_where_a_server_is(world: Any) -> None:
    uuid = seeds.server(world, network_info=seeds.VIF % "private", system_metadata={"image_hw_disk_bus": "virtio"})
    seeds.service(world)
    with world.cells.api.write() as tx:
        aggregate = aggregates.aggregate_create(tx, "agg", {"availability_zone": "z"})
        aggregates.aggregate_host_add(tx, aggregate["id"], "h1")
        group = instance_groups.instance_group_create(
            tx, {"name": "g", "project_id": seeds.PROJECT, "user_id": "joe"}, "affinity"
        )
        instance_groups.instance_group_members_add(tx, group["id"], [uuid])
        spec = {"availability_zone": "z", "scheduler_hints": {"group": [group["uuid"]]}}
        request_specs.request_spec_create(tx, {"instance_uuid": uuid, "spec": json.dumps({"nova_object.data": spec})})
    shown = world.get(f"/servers/{uuid}", version="2.100", user="admin").json["server"]
    assert shown["OS-EXT-SRV-ATTR:host"] == "h1"
    assert shown["OS-EXT-AZ:availability_zone"] == "z"
    assert shown["host_status"] == "UP"
    assert shown["server_groups"] == [group["uuid"]]
    assert shown["pinned_availability_zone"] == "z"
    assert shown["scheduler_hints"] == {"group": [group["uuid"]]}
    assert [ip["addr"] for ip in shown["addresses"]["private"]] == ["10.0.0.5", "172.24.4.9"]
    plain = world.get(f"/servers/{uuid}", version="2.100").json["server"]
    assert not {"OS-EXT-SRV-ATTR:host", "host_status"} & set(plain)
    assert plain["OS-EXT-SRV-ATTR:hostname"] == "one"
    listed = world.get("/servers/detail", version="2.100", user="admin").json["servers"][0]
    assert listed == {key: value for key, value in shown.items() if key != "server_groups"}


def test_a_deleted_server_hides_no_state_of_its_host(world: Any) -> None:
    kept, gone = (seeds.server(world, updated_at=seeds.NOW) for _ in range(2))
    seeds.service(world)
    with world.cell("c1").database.write() as tx:
        instances.instance_destroy(tx, gone)
    listed = world.get("/servers/detail?changes-since=2020-01-01T00:00:00Z", version="2.16", user="admin")
    assert {s["id"]: s["host_status"] for s in listed.json["servers"]} == {kept: "UP", gone: ""}


def test_a_sort_key_that_is_passed_over_leaves_the_newest_first(world: Any) -> None:
    made = [seeds.server(world, created_at=datetime.datetime(2026, 1, 1)) for _ in range(4)]
    listed = world.get("/servers?sort_key=locked&sort_dir=asc").json["servers"]
    assert [each["id"] for each in listed] == made[::-1]


def test_the_hint_of_a_group_is_shown_while_there_is_the_group(world: Any) -> None:
    with world.cells.api.write() as tx:
        owner = {"project_id": seeds.PROJECT, "user_id": "joe"}
        kept, ended = (instance_groups.instance_group_create(tx, {"name": n, **owner}, "affinity") for n in "ab")
    hints = {seeds.server(world): group["uuid"] for group in (kept, ended)}
    with world.cells.api.write() as tx:
        for server, group in hints.items():
            spec = {"scheduler_hints": {"group": [group], "other": ["x"]}}
            data = json.dumps({"nova_object.data": spec})
            request_specs.request_spec_create(tx, {"instance_uuid": server, "spec": data})
        instance_groups.instance_group_delete(tx, ended["uuid"])
    shown = {s: world.get(f"/servers/{s}", version="2.100").json["server"]["scheduler_hints"] for s in hints}
    assert list(shown.values()) == [{"group": [kept["uuid"]], "other": ["x"]}, {"other": ["x"]}]


def test_a_security_group_is_shown_once_for_each_port(world: Any) -> None:
    group = world.cloud.neutron.security_group("web", project=seeds.PROJECT)
    network = world.cloud.neutron.network(project=seeds.PROJECT)
    ports = [world.cloud.neutron.port(network, project=seeds.PROJECT) for _ in range(2)]
    for port in ports:
        world.cloud.neutron.ports[port]["security_groups"] = [group]
    vifs = [{"id": port, "address": "fa:16:3e:00:00:01", "network": {"label": "n", "subnets": []}} for port in ports]
    uuid = seeds.server(world, network_info=json.dumps(vifs))
    assert world.get(f"/servers/{uuid}").json["server"]["security_groups"] == [{"name": "web"}] * 2


def test_security_groups_are_asked_for_once_in_a_while(world: Any) -> None:
    port = world.cloud.neutron.port(world.cloud.neutron.network(project=seeds.PROJECT), project=seeds.PROJECT)
    group = world.cloud.neutron.security_group("web", project=seeds.PROJECT)
    world.cloud.neutron.ports[port]["security_groups"] = [group]
    vif = [{"id": port, "address": "fa:16:3e:00:00:01", "network": {"label": "n", "subnets": []}}]
    uuid = seeds.server(world, network_info=json.dumps(vif))
    assert world.get(f"/servers/{uuid}").json["server"]["security_groups"] == [{"name": "web"}]
    world.cloud.neutron.unreachable("GET", "/v2.0/.*", times=100)
    assert world.get(f"/servers/{uuid}").json["server"]["security_groups"] == [{"name": "web"}]


def test_the_number_of_statements_does_not_grow_with_the_page(world: Any) -> None:
    def statements() -> int:
        counted: list[str] = []

        def count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if statement.startswith("SELECT"):
                counted.append(statement)

        engines = [world.cells.api.engine, *(cell.database.engine for cell in world.cells.all())]
        for engine in engines:
            sa.event.listen(engine, "before_cursor_execute", count)
        try:
            assert world.get("/servers/detail", version="2.100", user="admin").status_code == 200
        finally:
            for engine in engines:
                sa.event.remove(engine, "before_cursor_execute", count)
        return len(counted)

    seeds.server(world, network_info=seeds.VIF % "private")
    few = statements()
    for _ in range(20):
        seeds.server(world, network_info=seeds.VIF % "private")
    assert statements() == few


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_cells_are_asked_for_parts_of_a_page(world: Any, monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    """Whatever cells the page's servers are in: first all in c1, then in turns, then all in c2."""
    monkeypatch.setattr(listing, "_batch", lambda *_: 2)
    cells = ["c1"] * 7 + ["c2", "c1", "cell0"] * 2 + ["c2"] * 7
    for number, cell in enumerate(cells):
        seeds.server(world, cell, display_name=f"s{number:02}")
    every = [f"s{number:02}" for number in range(len(cells))]
    every = every if direction == "asc" else every[::-1]
    query = f"/servers?sort_key=display_name&sort_dir={direction}"
    assert names(world.get(query)) == every
    for limit in (1, 3, 7, 8, 13):
        page = world.get(f"{query}&limit={limit}")
        assert names(page) == every[:limit]
        last = page.json["servers"][-1]["id"]
        assert names(world.get(f"{query}&limit={limit}&marker={last}")) == every[limit : 2 * limit]


def test_only_the_cells_of_a_project_are_asked(world: Any) -> None:
    seeds.server(world, "c1", display_name="mine")
    seeds.server(world, "c2", display_name="theirs", project_id="another")
    seen: list[str] = []
    for name in ("c1", "c2"):
        engine = world.cell(name).database.engine
        sa.event.listen(engine, "before_cursor_execute", lambda *_, cell=name: seen.append(cell))
    assert names(world.get("/servers")) == ["mine"]
    assert set(seen) == {"c1", "c2"}
    world.conf.set_override("instance_list_per_project_cells", True, group="api")
    seen.clear()
    assert names(world.get("/servers")) == ["mine"]
    assert set(seen) == {"c1"}
    seen.clear()
    assert len(world.get("/servers?all_tenants=1", user="admin").json["servers"]) == 2
    assert set(seen) == {"c1", "c2"}


@pytest.fixture
def half(world: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A server in each cell, of which c2 does not answer."""
    found = {name: seeds.server(world, name, display_name=name) for name in ("c1", "c2")}
    lost = world.cell("c2").database

    def broken(*_: Any, **__: Any) -> Any:
        raise LostError("SELECT", None, OSError("away"))

    monkeypatch.setattr(lost, "read", broken)
    return found


def test_a_lost_cell_gives_partial_records(world: Any, half: dict[str, str]) -> None:
    assert names(world.get("/servers")) == ["c1"]
    listed = world.get("/servers", version="2.69").json["servers"]
    assert [(s["id"], s.get("status")) for s in listed] == [(half["c2"], "UNKNOWN"), (half["c1"], None)]
    detail = world.get("/servers/detail", version="2.69").json["servers"]
    assert set(detail[0]) == {"id", "status", "tenant_id", "created", "links"}
    assert names(world.get("/servers?limit=5", version="2.69")) == ["c1"]
    assert world.get(f"/servers/{half['c2']}").status_code == 500


def test_a_server_that_went_before_its_cell_was_lost_is_gone(world: Any, half: dict[str, str]) -> None:
    spec = json.dumps({"nova_object.data": {"flavor": json.loads(seeds.FLAVOR)["cur"]}})
    with world.cells.api.write() as tx:
        request_specs.request_spec_create(tx, {"instance_uuid": half["c2"], "spec": spec})
    assert world.get(f"/servers/{half['c2']}", version="2.69").status_code == 200
    with world.cells.api.write() as tx:
        instance_mappings.instance_mapping_update(tx, half["c2"], {"queued_for_delete": True})
    assert world.get(f"/servers/{half['c2']}", version="2.69").status_code == 404
    assert [s["id"] for s in world.get("/servers", version="2.69").json["servers"]] == [half["c1"]]


def test_a_cell_that_is_lost_within_a_list_fails_it(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds.server(world)
    lost = LostError("SELECT", {}, Exception("gone"))
    monkeypatch.setattr(listing, "instance_parts", Mock(attach=Mock(side_effect=lost)))
    assert world.get("/servers/detail").status_code == 500


def test_an_empty_marker_is_none_and_the_last_of_two_limits_counts(world: Any) -> None:
    for number in range(3):
        seeds.server(world, display_name=str(number))
    assert len(world.get("/servers?marker=").json["servers"]) == 3
    page = world.get("/servers?limit=1&limit=2").json
    assert (len(page["servers"]), "?limit=2&" in page["servers_links"][0]["href"]) == (2, True)


def test_a_lost_cell_fails_the_list_where_configured(world: Any, half: dict[str, str]) -> None:
    world.conf.set_override("list_records_by_skipping_down_cells", False, group="api")
    assert world.get("/servers").status_code == 500
    assert world.get("/servers?limit=5", version="2.69").status_code == 500
    # Whoever is shown partial records misses nothing.
    assert len(world.get("/servers", version="2.69").json["servers"]) == 2


def test_a_server_is_changed(world: Any) -> None:
    uuid = seeds.server(world)
    change = {"server": {"name": "new", "description": "d", "accessIPv4": "1.2.3.4", "hostname": "new-host"}}
    changed = world.request("PUT", f"/servers/{uuid}", change, version="2.90")
    assert changed.status_code == 200, changed.text
    server = changed.json["server"]
    assert (server["name"], server["description"], server["accessIPv4"]) == ("new", "d", "1.2.3.4")
    record = seeds.record(world, uuid)
    assert (record["display_name"], record["hostname"]) == ("new", "new-host")
    old = world.request("PUT", f"/servers/{uuid}", {"server": {"name": "b"}}).json["server"]
    assert "OS-EXT-STS:vm_state" not in old
    assert world.request("PUT", f"/servers/{seeds.NOWHERE}", change, version="2.90").status_code == 404


def test_a_server_is_pinned_to_the_zone_it_is_in(world: Any) -> None:
    uuid = seeds.server(world)
    with world.cells.api.write() as tx:
        spec = {"nova_object.name": "RequestSpec", "nova_object.data": {"availability_zone": None}}
        request_specs.request_spec_create(tx, {"instance_uuid": uuid, "spec": json.dumps(spec)})

    def pin(zone: str | None) -> Any:
        body = {"server": {"pinned_availability_zone": zone}}
        return world.request("PUT", f"/servers/{uuid}", body, version="2.104")

    assert pin("mars").status_code == 409
    assert pin("nova").json["server"]["pinned_availability_zone"] == "nova"
    assert pin("mars").status_code == 409
    assert pin(None).json["server"]["pinned_availability_zone"] is None


def test_cells_are_known_by_their_mappings(world: Any) -> None:
    assert isinstance(world.cells, Cells)
    assert [cell.name for cell in world.cells.all()] == ["cell0", "c1", "c2"]


def test_a_read_whose_connection_was_lost_is_repeated(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = seeds.server(world)
    real, lost = query.row, []

    def once(*arguments: Any) -> Any:
        if not lost:
            lost.append(True)
            raise LostError("SELECT", None, OSError("restarted"), connection_invalidated=True)
        return real(*arguments)

    monkeypatch.setattr(query, "row", once)
    assert world.get(f"/servers/{server}").status_code == 200
    assert lost


@pytest.mark.parametrize("cell", ["cell0", "c1"])
def test_o1_what_was_never_changed_counts_from_its_making(world: Any, cell: str) -> None:
    """A server that found no host is put into cell0 at once as it stays."""
    seeds.server(world, cell, display_name="never", vm_state="error", host=None, created_at=seeds.NOW)
    before, after = (seeds.NOW + datetime.timedelta(hours=hours) for hours in (-1, 1))
    since = world.get(f"/servers?changes-since={before:%Y-%m-%dT%H:%M:%SZ}", version="2.66")
    assert names(since) == ["never"]
    assert names(world.get(f"/servers?changes-since={after:%Y-%m-%dT%H:%M:%SZ}", version="2.66")) == []
    assert names(world.get(f"/servers?changes-before={after:%Y-%m-%dT%H:%M:%SZ}", version="2.66")) == ["never"]
    assert names(world.get(f"/servers?changes-before={before:%Y-%m-%dT%H:%M:%SZ}", version="2.66")) == []
