"""What a request merely refers to belongs to its caller, or is as if it did not exist."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.api import seeds
from tests.unit.api.conftest import PROJECT

from kilonova.base import ids


@pytest.mark.parametrize("path", ["/servers", "/servers/detail"])
@pytest.mark.parametrize("deleted", [False, True])
def test_d3_the_marker_of_another_project_is_not_found(world: Any, path: str, deleted: bool) -> None:
    seeds.server(world)
    gone = {"deleted": 1, "vm_state": "deleted"} if deleted else {}
    foreign = seeds.server(world, project_id=seeds.OTHER, display_name="secret", **gone)

    def ask(marker: str) -> tuple[int, str]:
        answer = world.get(f"{path}?marker={marker}&sort_key=display_name")
        return answer.status_code, answer.text.replace(marker, "")

    missing = ask(ids.new_uuid())
    assert missing[0] == 400
    assert ask(foreign) == missing
    # Who lists every project's servers may begin anywhere.
    assert world.get(f"{path}?all_tenants=1&marker={foreign}", user="admin").status_code == 200


def test_d3_the_own_marker_leads_on(world: Any) -> None:
    first, second = sorted(seeds.server(world) for _ in range(2))
    shown = world.get(f"/servers?marker={first}&sort_key=uuid&sort_dir=asc").json["servers"]
    assert [one["id"] for one in shown] == [second]


def test_d3_the_marker_of_a_flavor_without_access_is_not_found(world: Any) -> None:
    world.flavor("open")
    world.flavor("private", is_public=False, memory_mb=7)
    missing = world.get("/flavors?marker=none&sort_key=memory_mb")
    hidden = world.get("/flavors?marker=private&sort_key=memory_mb")
    assert (hidden.status_code, hidden.text.replace("private", "")) == (400, missing.text.replace("none", ""))
    assert world.get("/flavors?marker=private", user="admin").status_code == 200


def test_d3_the_marker_of_usage_is_the_projects(world: Any) -> None:
    own, foreign = seeds.server(world), seeds.server(world, project_id=seeds.OTHER)
    codes = [
        world.get(f"/os-simple-tenant-usage/{PROJECT}?marker={marker}", version="2.40").status_code
        for marker in (own, foreign, ids.new_uuid())
    ]
    assert codes == [200, 400, 400]


def test_d3_a_group_of_another_project_is_no_group(world: Any) -> None:
    world.flavor()
    body = {"server_group": {"name": "g", "policies": ["affinity"]}}
    foreign = world.post("/os-server-groups", body, project=seeds.OTHER).json["server_group"]["id"]
    image = world.cloud.glance.add() if hasattr(world.cloud.glance, "add") else ids.new_uuid()

    def ask(group: str) -> tuple[int, str]:
        server = {"name": "a", "flavorRef": "small", "imageRef": image, "networks": "none"}
        answer = world.post("/servers", {"server": server, "os:scheduler_hints": {"group": group}}, version="2.40")
        return answer.status_code, answer.text.replace(group, "")

    assert ask(foreign) == ask(ids.new_uuid())
    for method in ("GET", "DELETE"):
        assert world.request(method, f"/os-server-groups/{foreign}").status_code == 404
