"""nova-manage placement sync_aggregates: providers join the aggregates of their hosts, and the exit codes."""

from __future__ import annotations

import pytest
from tests.unit.cmd.placed import LOST_DATABASE, Placed

from kilonova.db.api import aggregates, cell_mappings
from kilonova.db.cell import compute_nodes


def aggregate(placed: Placed, name: str, *hosts: str) -> str:
    """A host aggregate; its uuid."""
    made = placed.cloud.api.run(aggregates.aggregate_create, name)
    for host in hosts:
        placed.cloud.api.run(aggregates.aggregate_host_add, made["id"], host)
    return str(made["uuid"])


def sync(placed: Placed, *words: str) -> int:
    return placed.run("placement", "sync_aggregates", *words)


def test_hosts_join_what_they_are_in_and_keep_the_rest(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = placed.host("one"), placed.host("two", aggregates=["shared"])
    first, second = aggregate(placed, "a", "one", "two"), aggregate(placed, "b", "two")
    aggregate(placed, "empty")
    assert sync(placed, "--verbose") == 0
    assert placed.placement.providers[one].aggregates == {first}
    assert placed.placement.providers[two].aggregates == {"shared", first, second}
    assert f"provider {one}: {first} added" in capsys.readouterr().out
    placed.placement.calls.clear()
    assert sync(placed) == 0
    assert {method for method, _ in placed.placement.calls} == {"GET"}


def test_without_aggregates_nobody_is_asked(placed: Placed) -> None:
    placed.host("one")
    assert sync(placed) == 0
    assert not placed.placement.calls


def test_provider_that_changes_meanwhile(placed: Placed) -> None:
    one = placed.host("one")
    uuid = aggregate(placed, "a", "one")
    conflict = {"errors": [{"code": "placement.concurrent_update", "detail": "resource provider generation conflict"}]}
    placed.placement.fail("PUT", "/resource_providers/", status=409, body=conflict, times=2)
    assert sync(placed) == 0
    assert placed.placement.providers[one].aggregates == {uuid}


@pytest.mark.parametrize(("method", "code"), [("GET", 2), ("PUT", 3)])
def test_placement_that_refuses(placed: Placed, method: str, code: int) -> None:
    placed.host("one")
    aggregate(placed, "a", "one")
    placed.placement.fail(method, "/resource_providers/", status=503, times=99)
    assert sync(placed) == code


def test_hosts_that_cannot_be_found_do_not_stop_the_others(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    fine = placed.host("fine")
    uuid = aggregate(placed, "a", "fine", "unmapped")
    assert sync(placed) == 4
    assert placed.placement.providers[fine].aggregates == {uuid}
    assert "not mapped to a cell: `nova-manage cell_v2 discover_hosts`: unmapped." in capsys.readouterr().out


def test_host_without_a_node(placed: Placed) -> None:
    placed.host("one")
    aggregate(placed, "a", "one")
    found = placed.cloud.cell.query(compute_nodes.compute_node_get_by_host, "one", "one")
    assert found is not None
    placed.cloud.cell.run(compute_nodes.compute_node_delete, found["id"])
    assert sync(placed) == 5


def test_host_that_placement_does_not_know(placed: Placed) -> None:
    placed.host("one", provider=False)
    aggregate(placed, "a", "one", "unmapped")
    assert sync(placed) == 6


def test_host_with_two_nodes(placed: Placed) -> None:
    placed.host("one")
    numbers = dict.fromkeys(
        ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version"), 1
    )
    values = {**numbers, "host": "one", "hypervisor_hostname": "second", "hypervisor_type": "fake", "cpu_info": "{}"}
    placed.cloud.cell.run(compute_nodes.compute_node_create, values)
    aggregate(placed, "a", "one")
    assert sync(placed) == 1


def test_cell_that_is_down(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    placed.host("one")
    aggregate(placed, "a", "one")
    placed.lose_cell()
    assert sync(placed) == 0
    placed.cloud.api.run(cell_mappings.cell_mapping_update, placed.cell_uuid, {"database_connection": LOST_DATABASE})
    assert sync(placed) == 255
    assert "The cell of these hosts does not answer: one." in capsys.readouterr().out
