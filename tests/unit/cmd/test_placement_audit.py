"""nova-manage placement audit: who may hold what, what is deleted, and what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.placement import Provider, inventory
from tests.unit.cmd.cloud import Cloud
from tests.unit.cmd.placed import NOWHERE, WHOLE, Placed

from kilonova.cmd.manage import audit
from kilonova.db import query
from kilonova.db.api.tables import BUILD_REQUESTS
from kilonova.db.cell import compute_nodes, instances
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

MIGRATION = "55555555-5555-4555-8555-555555555555"


def test_nothing_is_orphaned(placed: Placed) -> None:
    node = placed.host("h")
    server = placed.server("h")
    placed.hold(server, {node: dict(WHOLE)})
    assert placed.audit("--verbose") == 0
    assert placed.audit("--delete") == 0
    assert placed.placement.held(server) == {node: WHOLE}


def test_deleted_server(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    node = placed.host("h")
    server = placed.server("h")
    placed.hold(server, {node: dict(WHOLE)})
    placed.cloud.cell.run(instances.instance_destroy, server)
    assert placed.audit("--verbose") == 3
    assert f"held by {server}, a server that is deleted" in capsys.readouterr().out
    assert placed.placement.held(server)
    assert placed.audit("--delete") == 4
    assert not placed.placement.held(server)
    assert placed.audit() == 0


def test_unknown_consumer(placed: Placed) -> None:
    node = placed.host("h")
    placed.hold(NOWHERE, {node: {"VCPU": 1}})
    assert placed.audit("--delete") == 4
    assert not placed.placement.consumers


def test_only_the_wrong_provider_is_taken_away(placed: Placed) -> None:
    old, new = placed.host("old"), placed.host("new")
    server = placed.server("new")
    placed.hold(server, {old: dict(WHOLE), new: dict(WHOLE)})
    assert placed.audit("--delete", "--resource_provider", old) == 4
    assert placed.placement.held(server) == {new: WHOLE}


def test_providers_below_the_node(placed: Placed) -> None:
    node, other = placed.host("h"), placed.host("other")
    nic = "66666666-6666-4666-8666-666666666666"
    amounts = {"NET_BW_EGR_KILOBIT_PER_SEC": inventory(9)}
    placed.placement.providers[nic] = Provider(nic, "nic", node, node, 1, amounts)
    right, wrong = placed.server("h"), placed.server("other")
    placed.hold(right, {node: dict(WHOLE), nic: {"NET_BW_EGR_KILOBIT_PER_SEC": 1}})
    placed.hold(wrong, {other: dict(WHOLE), nic: {"NET_BW_EGR_KILOBIT_PER_SEC": 1}})
    assert placed.audit("--delete") == 4
    assert set(placed.placement.held(right)) == {node, nic}
    assert set(placed.placement.held(wrong)) == {other}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"task_state": "scheduling", "vm_state": "building"}, 0),
        ({"task_state": None, "vm_state": "shelved_offloaded"}, 3),
        ({"task_state": None, "vm_state": "error"}, 3),
    ],
    ids=str,
)
def test_server_on_no_host(placed: Placed, values: dict[str, Any], code: int) -> None:
    node = placed.host("h")
    placed.hold(placed.server(None, **values), {node: dict(WHOLE)})
    assert placed.audit() == code


def test_server_that_runs_and_has_a_record_in_another_cell(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Database(f"sqlite:///{cloud.folder}/cell0.db")
    sync.sync_main(other)
    assert cloud.run("cell_v2", "map_cell0", "--database_connection", other.name) == 0
    placed = Placed(cloud, monkeypatch)
    node = placed.host("h")
    server = placed.server("h")
    placed.hold(server, {node: dict(WHOLE)})
    other.run(instances.instance_create, {"uuid": server, "project_id": "p", "vm_state": "error"})
    other.dispose()
    assert placed.audit() == 0


def test_server_that_is_only_asked_for(placed: Placed) -> None:
    node = placed.host("h")
    placed.mapping(NOWHERE, None)
    values = {"instance_uuid": NOWHERE, "project_id": "p", "instance": "{}"}
    placed.cloud.api.run(query.insert, BUILD_REQUESTS, values)
    placed.hold(NOWHERE, {node: dict(WHOLE)})
    assert placed.audit() == 0


@pytest.mark.parametrize(("status", "code"), [("finished", 0), ("migrating", 0), ("confirmed", 3), ("error", 3)])
def test_migrations_hold_the_other_side_while_they_go_on(placed: Placed, status: str, code: int) -> None:
    old, new = placed.host("old"), placed.host("new")
    server = placed.server("new")
    placed.migration(server, status, MIGRATION)
    placed.hold(MIGRATION, {old: dict(WHOLE)})
    placed.hold(server, {new: dict(WHOLE)})
    assert placed.audit() == code


@pytest.mark.parametrize(("status", "code"), [("running", 0), ("done", 3)])
def test_server_that_moves_may_be_on_both(placed: Placed, status: str, code: int) -> None:
    """An evacuation leaves what it held on the lost host, until that comes back or an operator takes it."""
    old, new = placed.host("old"), placed.host("new")
    server = placed.server("new")
    placed.migration(server, status, MIGRATION, "evacuation")
    placed.hold(server, {old: dict(WHOLE), new: dict(WHOLE)})
    assert placed.audit() == code


def test_node_that_was_removed_still_explains_its_servers(placed: Placed) -> None:
    node = placed.host("h")
    server = placed.server("h")
    placed.hold(server, {node: dict(WHOLE)})
    found = placed.cloud.cell.query(compute_nodes.compute_node_get_by_uuid, node)
    assert found is not None
    placed.cloud.cell.run(compute_nodes.compute_node_delete, found["id"])
    assert placed.audit() == 0


def test_what_others_hold_is_not_looked_at(placed: Placed) -> None:
    node = placed.host("h")
    placed.hold(NOWHERE, {node: {"CUSTOM_BAREMETAL": 1}})
    assert placed.audit("--delete") == 0
    assert placed.placement.held(NOWHERE)


def test_provider_that_does_not_exist(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    assert placed.audit("--resource_provider", NOWHERE) == 127
    assert NOWHERE in capsys.readouterr().out


def test_cell_that_is_down_saves_what_it_may_know(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    node = placed.host("h")
    here = placed.server("h")
    placed.cloud.cell.run(instances.instance_destroy, here)
    placed.lose_cell()
    there = "77777777-7777-4777-8777-777777777777"
    placed.mapping(there, placed.cell_id("lost"))
    for consumer in (here, there, NOWHERE):
        placed.hold(consumer, {node: {"VCPU": 1}})
    assert placed.audit("--delete") == 1
    assert set(placed.placement.consumers) == {there, NOWHERE}
    assert f"Consumer {there} may be" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["/resource_providers$", "/resource_providers/[^/]+/allocations"])
def test_placement_that_is_down(placed: Placed, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    placed.host("h")
    placed.placement.fail("GET", path, status=503, times=99)
    assert placed.audit() == 1
    assert "Placement does not answer" in capsys.readouterr().err


def test_consumer_that_changes_meanwhile(placed: Placed) -> None:
    node = placed.host("h")
    placed.hold(NOWHERE, {node: {"VCPU": 1}})
    conflict = {"errors": [{"code": "placement.concurrent_update", "detail": "consumer generation conflict"}]}
    placed.placement.fail("PUT", "/allocations/", status=409, body=conflict, times=2)
    assert placed.audit("--delete") == 4
    placed.hold(NOWHERE, {node: {"VCPU": 1}})
    placed.placement.fail("PUT", "/allocations/", status=409, body=conflict, times=99)
    assert placed.audit("--delete") == 1
    assert placed.placement.held(NOWHERE)


def test_orphan_that_is_explained_before_it_is_deleted(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    node = placed.host("h")
    placed.hold(NOWHERE, {node: {"VCPU": 1}})
    look = audit.Auditor._remove

    def built_meanwhile(self: Any, orphan: Any) -> bool:
        placed.server("h", uuid=NOWHERE)
        return look(self, orphan)

    monkeypatch.setattr(audit.Auditor, "_remove", built_meanwhile)
    assert placed.audit("--delete") == 0
    assert placed.placement.held(NOWHERE)


def test_json(placed: Placed, capsys: pytest.CaptureFixture[str]) -> None:
    node = placed.host("h")
    placed.hold(NOWHERE, {node: {"VCPU": 1}})
    capsys.readouterr()
    assert placed.audit("--json") == 3
    shown = json.loads(capsys.readouterr().out)
    why = "which nobody here knows"
    wanted = {"consumer": NOWHERE, "provider": node, "resources": {"VCPU": 1}, "why": why, "deleted": False}
    assert shown == [wanted]
