"""Hypervisors of all cells through the whole API."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.api import seeds
from tests.unit.api.test_operators import admin, break_cell, node, statements

from kilonova.db.cell.tables import COMPUTE_NODES, SERVICES

PATH = "/os-hypervisors"


def uuid(number: int) -> str:
    return f"{number:08d}-1111-4111-8111-111111111111"


@pytest.fixture
def nodes(world: Any) -> Any:
    """Hosts h1 and h2 in c1, h3 in c2; h2 is disabled, h3 is down."""
    seeds.service(world)
    seeds.service(world, "h2", disabled=True, disabled_reason="repair")
    seeds.service(world, "h3", cell="c2", forced_down=True)
    node(
        world, "h1", uuid(1), vcpus=4, memory_mb=1024, cpu_info='{"arch": "x86_64"}', host_ip="10.0.0.1", running_vms=2
    )
    node(world, "h2", uuid(2), vcpus=8)
    node(world, "h3", uuid(3), cell="c2", vcpus=2, memory_mb=512, stats='{"uptime": "up 2 days"}')
    return world


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["hypervisor_hostname"] for one in answer.json["hypervisors"]]


def test_listed_over_all_cells(nodes: Any) -> None:
    listed = admin(nodes, "GET", PATH, version="2.53").json["hypervisors"]
    assert listed == [
        {"id": uuid(1), "hypervisor_hostname": "h1", "state": "up", "status": "enabled"},
        {"id": uuid(2), "hypervisor_hostname": "h2", "state": "up", "status": "disabled"},
        {"id": uuid(3), "hypervisor_hostname": "h3", "state": "down", "status": "enabled"},
    ]
    old = admin(nodes, "GET", PATH, version="2.1").json["hypervisors"]
    assert [one["id"] for one in old] == [1, 2, 1]
    for path in (PATH, f"{PATH}/detail", f"{PATH}/statistics", f"{PATH}/{uuid(1)}", f"{PATH}/{uuid(1)}/uptime"):
        assert nodes.get(path, version="2.53").status_code == 403


def test_in_detail_by_version(nodes: Any) -> None:
    def first(version: str) -> dict[str, Any]:
        found: dict[str, Any] = admin(nodes, "GET", f"{PATH}/detail", version=version).json["hypervisors"][0]
        return found

    assert first("2.27")["cpu_info"] == '{"arch": "x86_64"}'
    assert first("2.28")["cpu_info"] == {"arch": "x86_64"}
    assert (first("2.52")["id"], first("2.52")["service"]["id"]) == (1, 1)
    whole = first("2.87")
    assert (whole["vcpus"], whole["memory_mb"], whole["running_vms"], whole["host_ip"]) == (4, 1024, 2, "10.0.0.1")
    assert whole["service"]["host"] == "h1"
    newest = first("2.96")
    gone = {"vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb"}
    gone |= {"free_disk_gb", "current_workload", "running_vms", "disk_available_least", "cpu_info"}
    assert whole.keys() - newest.keys() == gone
    assert newest.keys() - whole.keys() == {"uptime"}
    listed = admin(nodes, "GET", f"{PATH}/detail").json["hypervisors"]
    assert [one["uptime"] for one in listed] == [None, None, "up 2 days"]


@pytest.mark.parametrize("version", ["2.33", "2.53", "2.96"])
@pytest.mark.parametrize("path", [PATH, f"{PATH}/detail"])
def test_b043_pages(nodes: Any, version: str, path: str) -> None:
    # Number 1 is in both cells, where a number is the marker: each page goes on from the cell found first.
    nodes_of_c1 = 2
    found, query = [], "?limit=1"
    for _ in range(nodes_of_c1 + 2):
        page = admin(nodes, "GET", path + query, version=version)
        found += names(page)
        if "hypervisors_links" not in page.json:
            break
        href = page.json["hypervisors_links"][0]["href"]
        assert path in href
        query = "?" + href.partition("?")[2]
    assert found[:2] == ["h1", "h2"]
    assert found[2] == "h3"
    if version != "2.33":
        assert len(found) == 3
    assert names(admin(nodes, "GET", f"{path}?limit=2", version=version)) == ["h1", "h2"]
    assert names(admin(nodes, "GET", f"{path}?limit=0", version=version)) == []
    assert admin(nodes, "GET", f"{path}?marker=77", version="2.33").status_code == 400
    assert admin(nodes, "GET", f"{path}?marker={seeds.NOWHERE}", version="2.53").status_code == 400
    assert admin(nodes, "GET", f"{path}?marker=x", version=version).status_code == 400


def test_paging_begins_in_2_33(nodes: Any) -> None:
    assert len(names(admin(nodes, "GET", f"{PATH}?limit=1", version="2.32"))) == 3


def test_b043_a_thousand_hosts_and_one(world: Any) -> None:
    row = {"memory_mb": 1, "vcpus": 1, "local_gb": 1, "vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0}
    row |= {"hypervisor_type": "fake", "hypervisor_version": 1, "cpu_info": "", "deleted": 0, "mapped": 1}
    service = {"binary": "nova-compute", "topic": "compute", "version": 74, "report_count": 1, "deleted": 0}
    service |= {"last_seen_up": seeds.NOW, "disabled": False, "forced_down": False}
    many = range(1001)
    with world.cell("c1").database.write() as tx:
        tx.execute(
            sa.insert(COMPUTE_NODES),
            [row | {"uuid": uuid(n), "host": f"h{n}", "hypervisor_hostname": f"h{n}"} for n in many],
        )
        tx.execute(sa.insert(SERVICES), [service | {"host": f"h{n}", "uuid": f"{n:032x}"} for n in many])
    admin(world, "GET", f"{PATH}/detail")
    page, count = statements(world, f"{PATH}/detail", user="admin", version="2.96")
    assert len(names(page)) == 1000
    assert count <= 8
    rest = admin(world, "GET", f"{PATH}/detail?" + page.json["hypervisors_links"][0]["href"].partition("?")[2])
    assert (names(rest), "hypervisors_links" in rest.json) == (["h1000"], False)


def test_with_servers(nodes: Any) -> None:
    here = [seeds.server(nodes, host="h1") for _ in range(2)]
    seeds.server(nodes, host="h1", deleted=99)

    def servers(version: str, path: str = "") -> list[Any]:
        listed = admin(nodes, "GET", f"{PATH}{path}?with_servers=1", version=version).json["hypervisors"]
        return [one.get("servers") for one in listed]

    shown = [{"uuid": s, "name": f"instance-{n:08x}"} for n, s in enumerate(here, 1)]
    assert servers("2.53") == [shown, None, None]
    assert servers("2.75", "/detail") == [shown, [], []]
    one = admin(nodes, "GET", f"{PATH}/{uuid(1)}?with_servers=true").json["hypervisor"]
    assert one["servers"] == shown
    assert "servers" not in admin(nodes, "GET", f"{PATH}/{uuid(1)}").json["hypervisor"]
    old = admin(nodes, "GET", f"{PATH}/h/servers", version="2.52").json["hypervisors"]
    assert [(one["hypervisor_hostname"], one.get("servers")) for one in old] == [
        ("h1", shown),
        ("h2", None),
        ("h3", None),
    ]


def test_found_by_a_part_of_their_name(nodes: Any) -> None:
    assert names(admin(nodes, "GET", f"{PATH}?hypervisor_hostname_pattern=3")) == ["h3"]
    assert admin(nodes, "GET", f"{PATH}?hypervisor_hostname_pattern=x").status_code == 404
    assert admin(nodes, "GET", f"{PATH}?hypervisor_hostname_pattern=h&limit=1").status_code == 400
    assert admin(nodes, "GET", f"{PATH}?hypervisor_hostname_pattern=%25").status_code == 400
    assert names(admin(nodes, "GET", f"{PATH}/h1/search", version="2.52")) == ["h1"]
    assert admin(nodes, "GET", f"{PATH}/x/search", version="2.52").status_code == 404
    assert admin(nodes, "GET", f"{PATH}/h1/search", version="2.53").status_code == 404


def test_one(nodes: Any) -> None:
    shown = admin(nodes, "GET", f"{PATH}/{uuid(2)}", version="2.53").json["hypervisor"]
    assert (shown["hypervisor_hostname"], shown["status"], shown["service"]["disabled_reason"]) == (
        "h2",
        "disabled",
        "repair",
    )
    assert admin(nodes, "GET", f"{PATH}/2", version="2.52").json["hypervisor"]["hypervisor_hostname"] == "h2"
    for wrong, version, code in (
        (seeds.NOWHERE, "2.53", 404),
        ("1", "2.53", 400),
        ("9", "2.52", 404),
        ("x", "2.1", 404),
    ):
        assert admin(nodes, "GET", f"{PATH}/{wrong}", version=version).status_code == code


def test_a_node_whose_service_is_gone(nodes: Any) -> None:
    with nodes.cell("c1").database.write() as tx:
        tx.execute(sa.update(SERVICES).where(SERVICES.c.host == "h1").values(deleted=SERVICES.c.id))
    assert names(admin(nodes, "GET", PATH)) == ["h2", "h3"]
    assert admin(nodes, "GET", f"{PATH}/{uuid(1)}").status_code == 404
    # It takes its place in a page all the same, so that paging goes on behind it.
    page = admin(nodes, "GET", f"{PATH}?limit=1").json
    assert page["hypervisors"] == []
    assert f"marker={uuid(1)}" in page["hypervisors_links"][0]["href"]


def test_uptime(nodes: Any, host: Any) -> None:
    host.answers["get_host_uptime"] = "up 1 day"
    asked = admin(nodes, "GET", f"{PATH}/{uuid(1)}/uptime", version="2.87").json["hypervisor"]
    expected = {"id": uuid(1), "hypervisor_hostname": "h1", "state": "up", "status": "enabled", "uptime": "up 1 day"}
    assert asked == expected
    assert admin(nodes, "GET", f"{PATH}/{uuid(3)}/uptime", version="2.87").status_code == 400
    assert admin(nodes, "GET", f"{PATH}/{uuid(1)}/uptime", version="2.88").status_code == 404
    assert admin(nodes, "GET", f"{PATH}/{uuid(1)}").json["hypervisor"]["uptime"] == "up 1 day"
    assert admin(nodes, "GET", f"{PATH}/{uuid(3)}").json["hypervisor"]["uptime"] == "up 2 days"


def test_uptime_of_a_hypervisor_that_has_none(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kilonova.wire.rpc.clients import ComputeClient

    def none(*args: Any, **more: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(ComputeClient, "get_host_uptime", none, raising=False)
    assert admin(nodes, "GET", f"{PATH}/{uuid(1)}/uptime", version="2.87").status_code == 501
    assert admin(nodes, "GET", f"{PATH}/{uuid(1)}").json["hypervisor"]["uptime"] is None


def test_statistics_are_of_the_enabled_until_2_87(nodes: Any) -> None:
    sums = admin(nodes, "GET", f"{PATH}/statistics", version="2.87").json["hypervisor_statistics"]
    assert (sums["count"], sums["vcpus"], sums["memory_mb"], sums["running_vms"]) == (2, 6, 1536, 2)
    assert admin(nodes, "GET", f"{PATH}/statistics", version="2.88").status_code == 404


def test_b040_while_a_cell_is_down(nodes: Any) -> None:
    break_cell(nodes, "c2")
    assert names(admin(nodes, "GET", f"{PATH}/detail")) == ["h1", "h2"]
    assert admin(nodes, "GET", f"{PATH}/statistics", version="2.87").json["hypervisor_statistics"]["count"] == 1


def test_what_may_be_in_a_lost_cell_is_not_said_to_be_missing(nodes: Any) -> None:
    break_cell(nodes, "c2")
    for path, version in (
        (f"{PATH}/{uuid(3)}", "2.96"),
        (f"{PATH}/h3/search", "2.52"),
        (f"{PATH}?hypervisor_hostname_pattern=h3", "2.96"),
        (f"{PATH}?marker={uuid(3)}", "2.96"),
    ):
        assert admin(nodes, "GET", path, version=version).status_code == 500
    assert admin(nodes, "GET", f"{PATH}/{uuid(1)}").status_code == 200
    assert admin(nodes, "GET", f"{PATH}?marker=").status_code == 400
