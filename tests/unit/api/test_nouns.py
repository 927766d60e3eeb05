"""Flavors by administrators, aggregates and server groups through the whole API."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.db.api import host_mappings
from kilonova.db.cell import compute_nodes, instances
from kilonova.db.cells import CELL0_UUID

PROJECT = "6f70656e737461636b20342065766572"
NODE = "11111111-1111-4111-8111-111111111111"
FLAVOR = {"name": "m", "id": "7", "ram": "64", "vcpus": 1, "disk": 0}


def admin(world: Any, method: str, path: str, body: Any = None, version: str = "2.96") -> Any:
    return world.request(method, path, body, version=version, user="admin")


def test_a_flavor_is_made_described_and_removed(world: Any) -> None:
    assert world.post("/flavors", {"flavor": FLAVOR}).status_code == 403
    made = admin(world, "POST", "/flavors", {"flavor": FLAVOR | {"description": "tiny"}})
    assert made.status_code == 200, made.text
    flavor = made.json["flavor"]
    assert (flavor["id"], flavor["ram"], flavor["swap"], flavor["extra_specs"]) == ("7", 64, 0, {})
    again = admin(world, "POST", "/flavors", {"flavor": FLAVOR | {"id": "8"}})
    assert again.status_code == 409
    assert "m" in again.json["conflictingRequest"]["message"]
    changed = admin(world, "PUT", "/flavors/7", {"flavor": {"description": None}})
    assert changed.json["flavor"]["description"] is None
    assert admin(world, "DELETE", "/flavors/7").status_code == 202
    assert admin(world, "DELETE", "/flavors/7").status_code == 404
    assert admin(world, "PUT", "/flavors/7", {"flavor": {"description": None}}).status_code == 404


def test_extra_specs(world: Any) -> None:
    admin(world, "POST", "/flavors", {"flavor": FLAVOR})
    path = "/flavors/7/os-extra_specs"
    assert admin(world, "POST", path, {"extra_specs": {"a:b": 1}}).json == {"extra_specs": {"a:b": 1}}
    assert admin(world, "PUT", f"{path}/a:b", {"a:b": "2"}).json == {"a:b": "2"}
    assert admin(world, "PUT", f"{path}/a:b", {"c": "2"}).status_code == 400
    assert world.get(path).json == {"extra_specs": {"a:b": "2"}}
    assert world.get(f"{path}/a:b").json == {"a:b": "2"}
    assert admin(world, "DELETE", f"{path}/a:b").status_code == 200
    assert world.get(f"{path}/a:b").status_code == 404
    assert world.post(path, {"extra_specs": {"x": "y"}}).status_code == 403


def test_access_to_a_flavor(world: Any) -> None:
    admin(world, "POST", "/flavors", {"flavor": FLAVOR | {"os-flavor-access:is_public": False}})
    assert world.get("/flavors/7/os-extra_specs").status_code == 404
    add = {"addTenantAccess": {"tenant": PROJECT}}
    unknown = {"addTenantAccess": {"tenant": "nobody"}}
    assert admin(world, "POST", "/flavors/7/action", unknown).status_code == 400
    given = admin(world, "POST", "/flavors/7/action", add)
    assert given.json == {"flavor_access": [{"flavor_id": "7", "tenant_id": PROJECT}]}
    assert admin(world, "POST", "/flavors/7/action", add).status_code == 409
    assert [f["id"] for f in world.get("/flavors").json["flavors"]] == ["7"]
    taken = admin(world, "POST", "/flavors/7/action", {"removeTenantAccess": {"tenant": PROJECT}})
    assert taken.json == {"flavor_access": []}
    assert world.get("/flavors").json == {"flavors": []}


@pytest.fixture
def host(world: Any) -> str:
    """Host h1 in cell c1, known to Placement."""
    with world.cells.api.write() as tx:
        host_mappings.host_mapping_create(tx, "h1", world.cell("c1").id)
    node = {"uuid": NODE, "host": "h1", "hypervisor_hostname": "h1"}
    numbers = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version")
    rest = dict.fromkeys(numbers, 0) | {"hypervisor_type": "fake", "cpu_info": ""}
    with world.cell("c1").database.write() as tx:
        compute_nodes.compute_node_create(tx, node | rest)
    world.cloud.placement.host("h1", provider=NODE)
    return "h1"


def test_an_aggregate_gives_its_hosts_a_zone(world: Any, host: str) -> None:
    made = admin(world, "POST", "/os-aggregates", {"aggregate": {"name": "a", "availability_zone": "z"}}).json
    assert "hosts" not in made["aggregate"]
    path = f"/os-aggregates/{made['aggregate']['id']}"
    joined = admin(world, "POST", f"{path}/action", {"add_host": {"host": host}})
    assert joined.json["aggregate"]["hosts"] == ["h1"]
    known, _ = world.cloud.clients.placement.aggregates_get(None, NODE)
    assert known == {made["aggregate"]["uuid"]}
    assert admin(world, "POST", f"{path}/action", {"add_host": {"host": host}}).status_code == 409
    assert admin(world, "POST", f"{path}/action", {"add_host": {"host": "h9"}}).status_code == 404
    assert admin(world, "DELETE", path).status_code == 400
    assert admin(world, "PUT", path, {"aggregate": {"name": "a"}}).json["aggregate"]["updated_at"] is None
    changed = admin(world, "POST", f"{path}/action", {"set_metadata": {"metadata": {"ssd": "true"}}})
    assert changed.json["aggregate"]["updated_at"] is not None
    assert changed.json["aggregate"]["metadata"] == {"availability_zone": "z", "ssd": "true"}
    renamed = admin(world, "PUT", path, {"aggregate": {"name": "b", "availability_zone": "y"}})
    assert (renamed.json["aggregate"]["name"], renamed.json["aggregate"]["availability_zone"]) == ("b", "y")
    left = admin(world, "POST", f"{path}/action", {"remove_host": {"host": host}})
    assert left.json["aggregate"]["hosts"] == []
    assert world.cloud.clients.placement.aggregates_get(None, NODE)[0] == set()
    assert admin(world, "DELETE", path).status_code == 200
    assert admin(world, "GET", path).status_code == 404
    assert world.get("/os-aggregates").status_code == 403


def test_a_host_with_servers_keeps_its_zone(world: Any, host: str) -> None:
    with world.cell("c1").database.write() as tx:
        instances.instance_create(tx, {"host": host, "project_id": PROJECT, "user_id": "joe", "vm_state": "active"})
    made = admin(world, "POST", "/os-aggregates", {"aggregate": {"name": "a", "availability_zone": "z"}}).json
    path = f"/os-aggregates/{made['aggregate']['id']}/action"
    assert admin(world, "POST", path, {"add_host": {"host": host}}).status_code == 409
    plain = admin(world, "POST", "/os-aggregates", {"aggregate": {"name": "b"}}).json["aggregate"]
    assert admin(world, "POST", f"/os-aggregates/{plain['id']}/action", {"add_host": {"host": host}}).status_code == 200
    zoned = admin(world, "PUT", f"/os-aggregates/{plain['id']}", {"aggregate": {"availability_zone": "z"}})
    assert zoned.status_code == 400
    assert CELL0_UUID


def test_server_groups(world: Any) -> None:
    body = {"server_group": {"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": "2"}}}
    group = world.post("/os-server-groups", body, version="2.64").json["server_group"]
    assert (group["policy"], group["rules"], group["members"]) == ("anti-affinity", {"max_server_per_host": 2}, [])
    assert "policies" not in group
    old = world.get(f"/os-server-groups/{group['id']}", version="2.12").json["server_group"]
    assert old == {"id": group["id"], "name": "g", "policies": ["anti-affinity"], "metadata": {}, "members": []}
    wrong = {"server_group": {"name": "h", "policy": "affinity", "rules": {"max_server_per_host": 2}}}
    assert world.post("/os-server-groups", wrong, version="2.64").status_code == 400
    other = {"project": "a" * 32}
    assert world.get(f"/os-server-groups/{group['id']}", **other).status_code == 404
    assert world.get("/os-server-groups", **other).json == {"server_groups": []}
    listed = world.get("/os-server-groups?all_projects", user="admin", **other).json["server_groups"]
    assert [g["id"] for g in listed] == [group["id"]]
    world.conf.set_override("server_groups", 1, group="quota")
    assert world.post("/os-server-groups", body, version="2.64").status_code == 403
    assert world.request("DELETE", f"/os-server-groups/{group['id']}").status_code == 204
    assert world.get(f"/os-server-groups/{group['id']}").status_code == 404
