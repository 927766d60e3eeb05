"""What projects used in a period, through the whole API."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from tests.unit.api import seeds
from tests.unit.api.test_operators import admin, break_cell

from kilonova.base import clock

PATH = "/os-simple-tenant-usage"
DAY = "?start=2026-01-02T00:00:00&end=2026-01-03T00:00:00"


def at(hour: float) -> datetime.datetime:
    """So many hours into the day."""
    return datetime.datetime(2026, 1, 2) + datetime.timedelta(hours=hour)


@pytest.fixture
def used(world: Any) -> Any:
    """Of PROJECT a server for the last 6 hours of the day and one for 2 hours in it, of OTHER one for all of it."""
    size = {"memory_mb": 1024, "vcpus": 2, "root_gb": 10, "ephemeral_gb": 5}
    ids = [f"{n:08d}-0000-4000-8000-000000000000" for n in range(5)]
    seeds.server(world, uuid=ids[0], launched_at=at(18), **size)
    seeds.server(
        world, "c2", uuid=ids[1], launched_at=at(3), terminated_at=at(5), deleted=1, vm_state="deleted", **size
    )
    seeds.server(world, uuid=ids[2], launched_at=at(-5), terminated_at=at(30), project_id=seeds.OTHER, **size)
    seeds.server(world, uuid=ids[3], launched_at=at(25), **size)
    seeds.server(world, uuid=ids[4], launched_at=None, vm_state="error", **size)
    world.ids = ids
    return world


def test_the_second_record_of_a_server_that_moves_between_cells_is_not_counted(used: Any) -> None:
    before = used.get(f"{PATH}/{seeds.PROJECT}{DAY}").json["tenant_usage"]["total_hours"]
    seeds.server(used, "c2", launched_at=at(18), hidden=True, memory_mb=1024, vcpus=2)
    assert used.get(f"{PATH}/{seeds.PROJECT}{DAY}").json["tenant_usage"]["total_hours"] == before


def test_of_one_project(used: Any) -> None:
    answer = used.get(f"{PATH}/{seeds.PROJECT}{DAY}")
    assert answer.status_code == 200, answer.text
    usage = answer.json["tenant_usage"]
    amounts = {name: value for name, value in usage.items() if name.startswith("total")}
    assert amounts == {
        "total_hours": 8,
        "total_memory_mb_usage": 8 * 1024,
        "total_vcpus_usage": 16,
        "total_local_gb_usage": 8 * 15,
    }
    assert (usage["start"], usage["stop"]) == ("2026-01-02T00:00:00.000000", "2026-01-03T00:00:00.000000")
    running, ended = usage["server_usages"]
    assert (running["instance_id"], running["hours"], running["ended_at"]) == (used.ids[0], 6, None)
    assert (running["state"], running["flavor"], running["local_gb"]) == ("active", "small", 15)
    assert running["uptime"] == pytest.approx((clock.naive_now() - at(18)).total_seconds(), abs=30)
    assert (ended["state"], ended["hours"], ended["uptime"]) == ("terminated", 2, 7200)
    assert ended["ended_at"] == "2026-01-02T05:00:00.000000"


def test_of_all_projects(used: Any) -> None:
    assert used.get(PATH + DAY).status_code == 403
    listed = admin(used, "GET", PATH + DAY).json["tenant_usages"]
    assert {u["tenant_id"]: u["total_hours"] for u in listed} == {seeds.PROJECT: 8, seeds.OTHER: 24}
    assert not any("server_usages" in u for u in listed)
    detailed = admin(used, "GET", f"{PATH}{DAY}&detailed=1").json["tenant_usages"]
    assert sorted(len(u["server_usages"]) for u in detailed) == [1, 2]


def test_of_another_project_is_not_shown(used: Any) -> None:
    assert used.get(f"{PATH}/{seeds.OTHER}{DAY}").status_code == 403
    assert admin(used, "GET", f"{PATH}/{seeds.OTHER}{DAY}").json["tenant_usage"]["total_hours"] == 24


def test_pages_of_servers(used: Any) -> None:
    found: list[str] = []
    path = f"{PATH}{DAY}&detailed=1&limit=1"
    while True:
        page = admin(used, "GET", path, version="2.40").json
        found += [s["instance_id"] for u in page["tenant_usages"] for s in u["server_usages"]]
        if "tenant_usages_links" not in page:
            break
        path = f"{PATH}?" + page["tenant_usages_links"][0]["href"].partition("?")[2]
    assert found == [used.ids[0], used.ids[2], used.ids[1]]
    own = used.get(f"{PATH}/{seeds.PROJECT}{DAY}&limit=1", version="2.40").json
    assert f"marker={used.ids[0]}" in own["tenant_usage_links"][0]["href"]
    rest = used.get(f"{PATH}/{seeds.PROJECT}{DAY}&limit=1&marker={used.ids[0]}", version="2.40").json
    assert [s["instance_id"] for s in rest["tenant_usage"]["server_usages"]] == [used.ids[1]]
    assert "tenant_usage_links" not in used.get(f"{PATH}/{seeds.PROJECT}{DAY}&limit=1", version="2.39").json
    assert used.get(f"{PATH}/{seeds.PROJECT}{DAY}&marker={seeds.NOWHERE}", version="2.40").status_code == 400


@pytest.mark.parametrize(
    "period", ["start=x", "end=2026-13-01T00:00:00", "start=2026-01-03T00:00:00&end=2026-01-02T00:00:00"]
)
def test_periods_that_are_none(used: Any, period: str) -> None:
    assert used.get(f"{PATH}/{seeds.PROJECT}?{period}").status_code == 400


def test_nothing_was_used(used: Any) -> None:
    before = "?start=2025-01-01T00:00:00&end=2025-01-02T00:00:00"
    assert used.get(f"{PATH}/{seeds.PROJECT}{before}").json == {"tenant_usage": {}}
    future = "?start=2126-01-01T00:00:00&end=2126-01-02T00:00:00"
    assert used.get(f"{PATH}/{seeds.PROJECT}{future}").json["tenant_usage"].get("total_hours", 0) == 0
    assert used.get(f"{PATH}/{seeds.PROJECT}").status_code == 200


def test_a_part_is_not_taken_for_the_whole(used: Any) -> None:
    """Who bills by it would bill too little."""
    break_cell(used, "c2")
    for path in (PATH, f"{PATH}/{seeds.PROJECT}"):
        assert admin(used, "GET", f"{path}{DAY}").status_code == 500
        assert admin(used, "GET", f"{path}{DAY}&marker={used.ids[1]}").status_code == 500
