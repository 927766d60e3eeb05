"""Quota classes, and quotas of projects that Keystone knows or does not."""

from __future__ import annotations

from typing import Any

import falcon.testing
import pytest
from tests.unit.api.conftest import PROJECT

CLASS = "/os-quota-class-sets/default"


def put(world: Any, path: str, body: Any, **more: Any) -> Any:
    return world.request("PUT", path, body, user="admin", **more)


def test_the_default_class_holds_for_projects_without_limits_of_their_own(world: Any) -> None:
    shown = world.get(CLASS, user="admin", version="2.57").json["quota_class_set"]
    assert (shown["id"], shown["cores"], shown["ram"]) == ("default", 20, 51200)
    changed = put(world, CLASS, {"quota_class_set": {"cores": 33, "ram": "-1"}}, version="2.57").json["quota_class_set"]
    assert (changed["cores"], changed["ram"], changed["instances"], "id" in changed) == (33, -1, 10, False)
    assert put(world, f"/os-quota-sets/{PROJECT}", {"quota_set": {"ram": 7}}).status_code == 200
    of_project = world.get(f"/os-quota-sets/{PROJECT}").json["quota_set"]
    assert (of_project["cores"], of_project["ram"]) == (33, 7)
    assert world.get(f"/os-quota-sets/{PROJECT}/defaults").json["quota_set"]["ram"] == -1


def test_keypairs_count_against_no_quota(world: Any) -> None:
    assert world.post("/os-keypairs", {"keypair": {"name": "k"}}).status_code == 200
    shown = world.get(f"/os-quota-sets/{PROJECT}/detail?user_id=joe").json["quota_set"]["key_pairs"]
    assert (shown["in_use"], shown["limit"]) == (0, 100)


def test_another_class_is_kept_and_holds_for_nobody(world: Any) -> None:
    put(world, "/os-quota-class-sets/gold", {"quota_class_set": {"cores": 99}})
    assert world.get("/os-quota-class-sets/gold", user="admin").json["quota_class_set"]["cores"] == 99
    assert world.get(f"/os-quota-sets/{PROJECT}").json["quota_set"]["cores"] == 20
    assert world.get(CLASS, user="admin").json["quota_class_set"]["cores"] == 20


def test_a_class_by_version(world: Any) -> None:
    shown = {
        v: set(world.get(CLASS, user="admin", version=v).json["quota_class_set"])
        for v in ("2.1", "2.49", "2.50", "2.56", "2.57", "2.104")
    }
    networks = {"fixed_ips", "floating_ips", "security_group_rules", "security_groups"}
    files = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
    assert shown["2.1"] == shown["2.49"]
    assert shown["2.49"] - shown["2.50"] == networks
    assert shown["2.50"] - shown["2.49"] == {"server_groups", "server_group_members"}
    assert shown["2.56"] - shown["2.57"] == files
    assert shown["2.57"] == shown["2.104"]


@pytest.mark.parametrize(
    ("version", "body"),
    [
        ("2.50", {"quota_class_set": {"fixed_ips": 1}}),
        ("2.57", {"quota_class_set": {"injected_files": 1}}),
        ("2.1", {"quota_class_set": {"cores": -2}}),
        ("2.1", {"quota_class_set": {"force": True}}),
        ("2.1", {"quota_set": {}}),
    ],
)
def test_limits_of_a_class_that_are_none(world: Any, version: str, body: Any) -> None:
    assert put(world, CLASS, body, version=version).status_code == 400


@pytest.mark.parametrize("path", ["/os-quota-class-sets/default", f"/os-quota-sets/{PROJECT}"])
@pytest.mark.parametrize("given", [{"a": None}, {"": ""}, {"a": "b"}])
def test_on_the_legacy_endpoint_what_is_no_limit_is_passed_over(world: Any, path: str, given: dict[str, Any]) -> None:
    member = "quota_class_set" if "class" in path else "quota_set"
    client = falcon.testing.TestClient(world.app)
    headers = {"X-Auth-Token": f"admin:{PROJECT}"}
    answer = client.simulate_put(f"/v2{path}", json={member: given}, headers=headers)
    assert answer.status_code == 200
    assert "a" not in answer.json[member]


def test_a_class_is_the_administrators_and_has_a_name_of_some_length(world: Any) -> None:
    assert world.get(CLASS).status_code == 403
    assert world.request("PUT", CLASS, {"quota_class_set": {"cores": 1}}).status_code == 403
    assert put(world, f"/os-quota-class-sets/{'x' * 256}", {"quota_class_set": {"cores": 1}}).status_code == 400
    assert world.get(f"{CLASS}?a=b", user="admin", version="2.101").status_code == 200
    assert world.get(f"{CLASS}?a=b", user="admin", version="2.102").status_code == 400


def test_limits_of_networks_are_kept_for_old_clients(world: Any) -> None:
    path = f"/os-quota-sets/{PROJECT}"
    assert put(world, path, {"quota_set": {"fixed_ips": 5}}).json["quota_set"]["fixed_ips"] == 5
    assert world.get(path).json["quota_set"]["fixed_ips"] == 5
    assert put(world, CLASS, {"quota_class_set": {"security_groups": 6}}).json["quota_class_set"]["fixed_ips"] == -1
    assert world.get(path).json["quota_set"]["security_groups"] == 6


@pytest.mark.parametrize("part", ["", "/detail"])
def test_quotas_of_a_project_that_is_none(world: Any, part: str) -> None:
    answer = world.get(f"/os-quota-sets/nobody{part}", user="admin")
    assert answer.status_code == 400
    assert "nobody" in answer.json["badRequest"]["message"]


def test_limits_are_not_set_for_a_project_that_is_none(world: Any) -> None:
    path = "/os-quota-sets/nobody"
    assert put(world, path, {"quota_set": {"cores": 1}}).status_code == 400
    # Neither of these asks, so that what was left behind can be looked at and removed.
    assert world.get(f"{path}/defaults", user="admin").status_code == 200
    assert world.request("DELETE", path, user="admin").status_code == 202


@pytest.mark.parametrize("status", [401, 403, 500])
def test_keystone_that_does_not_say_is_no_refusal(world: Any, status: int) -> None:
    world.cloud.keystone.fail("GET", "/v3/projects/nobody", status=status, times=100)
    assert put(world, "/os-quota-sets/nobody", {"quota_set": {"cores": 1}}).status_code == 200


def test_limits_of_users_share_out_those_of_their_project(world: Any) -> None:
    path = f"/os-quota-sets/{PROJECT}"

    def set_to(cores: int, user: str = "", **more: Any) -> int:
        asked = put(world, f"{path}?user_id={user}" if user else path, {"quota_set": {"cores": cores, **more}})
        return int(asked.status_code)

    assert [set_to(20), set_to(12, "joe"), set_to(9, "ann"), set_to(8, "ann")] == [200, 200, 400, 200]
    assert [set_to(13, "joe"), set_to(-1, "joe"), set_to(11, "joe")] == [400, 400, 200]
    assert [set_to(18), set_to(18, force=True), set_to(19), set_to(-1), set_to(5)] == [400, 200, 200, 200, 200]
