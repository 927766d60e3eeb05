"""Requests that once were tried as one persona, at one version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.api import seeds
from tests.unit.api.conftest import PROJECT

from kilonova.clients.neutron.networking import Neutron
from kilonova.contract.fields import Compiled
from kilonova.contract.nouns import servers as contract

_PORT = '[{"id": "p", "address": "fa:16:3e:00:00:01", "network": {"label": "a", "subnets": []}}]'
EDGES = [f"2.{n}" for n in (1, 2, 3, 9, 15, 16, 18, 19, 26, 47, 63, 71, 73, 74, 75, 90, 96, 98, 100, 104)]


@pytest.mark.parametrize("user", ["joe", "admin"])
@pytest.mark.parametrize("version", EDGES)
def test_p1_an_updated_server_is_shown_to_every_persona_in_every_version(world: Any, user: str, version: str) -> None:
    seeds.service(world)
    uuid = seeds.server(world, launch_index=0)
    answer = world.request("PUT", f"/servers/{uuid}", {"server": {"name": "new"}}, user=user, version=version)
    assert answer.status_code == 200, answer.json
    Compiled(contract.UPDATED).validator(int(version[2:]), relaxed=False).check(answer.json["server"])
    shown = world.get(f"/servers/{uuid}", user=user, version=version).json["server"]
    assert {name: shown[name] for name in answer.json["server"] if name in shown and name != "updated"} == {
        name: value for name, value in answer.json["server"].items() if name in shown and name != "updated"
    }


def test_p1_of_an_update_neutron_is_asked_only_where_groups_are_shown(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = seeds.server(world, network_info=_PORT)
    asked: list[Any] = []

    def groups(neutron: Any, context: Any, ports: list[str]) -> dict[str, Any]:
        asked.append(ports)
        return {}

    monkeypatch.setattr(Neutron, "security_groups_for", groups)
    for version, times in (("2.74", 0), ("2.75", 1)):
        world.request("PUT", f"/servers/{uuid}", {"server": {"name": "new"}}, version=version)
        assert len(asked) == times


def test_p2_access_to_a_public_flavor(world: Any) -> None:
    world.flavor("open")
    world.cloud.keystone.projects.add(seeds.OTHER)
    body = {"addTenantAccess": {"tenant": seeds.OTHER}}
    codes = [
        world.request("POST", "/flavors/open/action", body, user="admin", version=v).status_code
        for v in ("2.7", "2.1", "2.6")
    ]
    # The third finds that the second gave it.
    assert codes == [409, 200, 409]


@pytest.mark.parametrize(("value", "code"), [("", 400), ("maybe", 400), ("1", 200), ("false", 200)])
def test_locked_has_to_be_said(world: Any, value: str, code: int) -> None:
    assert world.get(f"/servers?locked={value}", version="2.73").status_code == code
    assert world.get("/servers?all_tenants=", user="admin").status_code == 200


@pytest.mark.parametrize("user", ["joe", "admin"])
def test_extensions(world: Any, user: str) -> None:
    listed = world.get("/extensions", user=user)
    assert listed.status_code == 200
    aliases = [one["alias"] for one in listed.json["extensions"]]
    assert (len(aliases), aliases) == (99, sorted(aliases))
    assert "OS-EXT-VIF-NET" not in aliases
    shown = world.get("/extensions/os-keypairs", user=user).json["extension"]
    assert shown in listed.json["extensions"]
    assert world.get("/extensions/nothing", user=user).status_code == 404
    assert world.get("/extensions?a=b", user=user, version="2.102").status_code == 400


def test_security_groups_are_shown_to_who_may_see_them(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = seeds.server(world, network_info=_PORT)

    def groups(neutron: Any, context: Any, ports: list[str]) -> dict[str, list[dict[str, str]]]:
        return {"p": [{"id": "1", "name": "secret"}] if context.is_admin else []}

    monkeypatch.setattr(Neutron, "security_groups_for", groups)
    shown = [
        world.get(f"/servers/{uuid}", user=user, project=PROJECT).json["server"].get("security_groups")
        for user in ("admin", "joe", "admin")
    ]
    assert shown == [[{"name": "secret"}], None, [{"name": "secret"}]]
