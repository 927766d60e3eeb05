"""Instances: pages, filters, compare-and-swap, deletion."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.contract import context
from kilonova.db import query
from kilonova.db.cell import instance_actions, instances
from kilonova.db.cell.tables import (
    INSTANCE_ACTIONS,
    INSTANCE_EXTRA,
    INSTANCE_FAULTS,
    INSTANCE_ID_MAPPINGS,
    INSTANCE_INFO_CACHES,
    INSTANCE_METADATA,
    MIGRATIONS,
    TAGS,
)
from kilonova.db.engine import Database
from kilonova.db.objects import action, migration
from kilonova.db.objects import instances as served
from kilonova.db.outcomes import (
    DuplicateError,
    InvalidFilterError,
    InvalidSortKeyError,
    MarkerNotFoundError,
    Missing,
    Stale,
    Updated,
)

DAY = datetime.datetime(2026, 1, 1)
ALL_PARTS = (
    "metadata",
    "system_metadata",
    "tags",
    "fault",
    "info_cache",
    "security_groups",
    "pci_devices",
    "services",
    "block_device_mappings",
    "flavor",
    "numa_topology",
)


def make(db: Database, uuid: str, minute: int = 0, **values: Any) -> dict[str, Any]:
    new = {
        "uuid": uuid,
        "project_id": "p",
        "user_id": "u",
        "display_name": f"server-{uuid}",
        "hostname": f"server-{uuid}",
        "vm_state": "active",
        "created_at": DAY + datetime.timedelta(minutes=minute),
        "vcpus": 2,
        "memory_mb": 512,
        **values,
    }
    return db.run(instances.instance_create, new)


def listed(db: Database, filters: dict[str, Any] | None = None, **page: Any) -> list[str]:
    return [row["uuid"] for row in db.query(instances.instance_list, filters, **page)]


@pytest.fixture
def five(cell_db: Database) -> Database:
    for n in range(5):
        make(cell_db, f"i{n}", n, tags=["a", f"t{n}"], metadata={"n": str(n)}, system_metadata={"image_base": "x"})
    return cell_db


class Count:
    def __init__(self, db: Database) -> None:
        self.statements: list[str] = []
        sa.event.listen(db.engine, "before_cursor_execute", self._seen)

    def _seen(self, _conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            self.statements.append(statement)


def test_created_instance_is_read_back_with_its_parts(cell_db: Database) -> None:
    make(
        cell_db,
        "i",
        metadata={"k": "v"},
        system_metadata={"s": "t"},
        tags=["b", "a", "a"],
        extra={"flavor": "{}"},
        network_info='[{"id": "port"}]',
    )
    row = cell_db.query(instances.instance_get, "i", ALL_PARTS)
    assert row is not None
    assert row["metadata"] == {"k": "v"}
    assert row["system_metadata"] == {"s": "t"}
    assert row["tags"] == ["a", "b"]
    assert row["extra"] == {"flavor": "{}", "numa_topology": None}
    assert json.loads(row["info_cache"]["network_info"]) == [{"id": "port"}]
    assert row["fault"] is None
    assert row["deleted"] == 0
    assert row["updated_at"] is None


def test_second_instance_of_the_same_uuid_is_refused(cell_db: Database) -> None:
    make(cell_db, "i")
    with pytest.raises(DuplicateError):
        make(cell_db, "i")


def test_pages_follow_the_marker_without_gap_or_overlap(five: Database) -> None:
    assert listed(five) == ["i4", "i3", "i2", "i1", "i0"]
    assert listed(five, limit=2) == ["i4", "i3"]
    assert listed(five, limit=2, marker="i3") == ["i2", "i1"]
    assert listed(five, limit=0) == []
    with pytest.raises(MarkerNotFoundError):
        listed(five, marker="unknown")


def test_pages_with_null_sort_keys_are_complete(five: Database) -> None:
    five.run(instances.instance_update, "i1", {"host": "h1"})
    five.run(instances.instance_update, "i3", {"host": "h0"})
    for direction in ("asc", "desc"):
        sort = [("host", direction)]
        whole = listed(five, sort=sort)
        paged: list[str] = []
        while len(paged) < 5:
            page = listed(five, sort=sort, limit=2, marker=paged[-1] if paged else None)
            assert page
            paged += page
        assert paged == whole
        assert sorted(whole) == ["i0", "i1", "i2", "i3", "i4"]


def test_marker_of_another_cell_is_given_by_its_values(five: Database) -> None:
    marker = {"created_at": DAY + datetime.timedelta(minutes=2, seconds=30), "id": 99}
    assert listed(five, marker=marker) == ["i2", "i1", "i0"]


def test_unknown_sort_key_is_refused(five: Database) -> None:
    with pytest.raises(InvalidSortKeyError):
        listed(five, sort=[("nonsense", "asc")])


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"project_id": "other"}, []),
        ({"project_id": "p"}, ["i0", "i1", "i2", "i3", "i4"]),
        ({"uuid": ["i1", "i2", "unknown"]}, ["i1", "i2"]),
        ({"uuid": []}, []),
        ({"display_name": "server-i[12]"}, ["i1", "i2"]),
        ({"display_name": "^i"}, []),
        ({"vm_state": ["error", "active"], "host": "h1"}, ["i1"]),
        ({"host": None}, ["i0", "i2", "i3", "i4"]),
        ({"tags": ["a", "t2"]}, ["i2"]),
        ({"tags-any": ["t2", "t3"]}, ["i2", "i3"]),
        ({"not-tags": ["a", "t2"]}, ["i0", "i1", "i3", "i4"]),
        ({"not-tags-any": ["t2", "t3"]}, ["i0", "i1", "i4"]),
        ({"metadata": {"n": "3"}}, ["i3"]),
        ({"metadata": [{"n": "3"}, {"n": "4"}]}, []),
        ({"system_metadata": {"image_base": "x"}, "uuid": "i0"}, ["i0"]),
        ({"locked": True}, ["i4"]),
        ({"power_state": 4}, ["i2"]),
        ({"reservation_id": "r-1"}, ["i0"]),
        ({"ip": "10\\.0\\.0\\.5$"}, ["i0"]),
        ({"ip": "10.0.0"}, ["i0", "i1"]),
        ({"ip6": "fd00"}, ["i1"]),
        ({"hidden": True}, []),
    ],
)
def test_filters(five: Database, filters: dict[str, Any], found: list[str]) -> None:
    five.run(instances.instance_update, "i0", {"reservation_id": "r-1"})
    five.run(instances.instance_update, "i1", {"host": "h1"})
    five.run(instances.instance_update, "i2", {"power_state": 4})
    five.run(instances.instance_update, "i4", {"locked": True})
    five.run(instances.instance_info_cache_update, "i0", network_info("10.0.0.5"))
    five.run(instances.instance_info_cache_update, "i1", network_info("10.0.0.55", "fd00::1"))
    assert sorted(listed(five, filters)) == found


def network_info(*addresses: str) -> str:
    subnets = [{"version": 6 if ":" in a else 4, "ips": [{"address": a}]} for a in addresses]
    return json.dumps([{"network": {"subnets": subnets}}])


@pytest.mark.parametrize("filters", [{"display_name": "("}, {"nonsense": "x"}, {"ip": "["}])
def test_impossible_filters_are_refused(five: Database, filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidFilterError):
        listed(five, filters)


def test_what_an_address_matches_is_asked_for_a_page_at_a_time(five: Database) -> None:
    """However many servers it matches, the statement names no more of them than the page has."""
    for number in range(4):
        five.run(instances.instance_info_cache_update, f"i{number}", network_info(f"10.0.0.{number}"))
    wanted = listed(five, {"ip": "10.0.0"})
    assert len(wanted) > 1
    asked: list[Any] = []
    sa.event.listen(five.engine, "before_cursor_execute", lambda _c, _u, _s, parameters, *_: asked.append(parameters))
    found = five.query(instances.instance_list, {"ip": "10.0.0"}, limit=1)
    assert [one["uuid"] for one in found] == wanted[:1]
    assert not any(uuid in parameters for parameters in asked for uuid in wanted[1:])
    after = five.query(instances.instance_list, {"ip": "10.0.0"}, limit=1, marker=wanted[0])
    assert [one["uuid"] for one in after] == wanted[1:2]


def test_o1_a_row_that_was_never_changed_has_a_time(cell_db: Database) -> None:
    check_times(cell_db, "i")


def check_times(cell_db: Database, uuid: str) -> None:
    """In each list, whoever asks."""
    day = datetime.datetime(2024, 1, 1)
    before, after = day - datetime.timedelta(hours=1), day + datetime.timedelta(hours=1)
    cell_db.run(instances.instance_create, {"uuid": uuid, "project_id": "p", "created_at": day})
    move = {"instance_uuid": uuid, "status": "error", "created_at": day, "migration_type": "resize", "hidden": False}
    cell_db.run(query.insert, MIGRATIONS, move | {"uuid": "m"})
    cell_db.run(query.insert, INSTANCE_ACTIONS, {"instance_uuid": uuid, "request_id": "r", "created_at": day})
    ctxt = context.admin()
    asked: list[Callable[[dict[str, Any]], Any]] = [
        lambda filters: cell_db.query(instances.instance_list, filters),
        lambda filters: cell_db.query(migration.get_by_filters, ctxt, filters).objects,
        lambda filters: cell_db.query(action.get_by_instance_uuid, ctxt, uuid, None, None, filters).objects,
        lambda filters: cell_db.query(
            instance_actions.action_list, uuid, **{name.replace("-", "_"): when for name, when in filters.items()}
        ),
    ]
    for ask in asked:
        found = [len(ask({name: when})) for name in ("changes-since", "changes-before") for when in (before, after)]
        assert found == [1, 0, 0, 1]
    assert len(cell_db.query(served.get_by_filters, ctxt, {"changes-since": before}).objects) == 1
    # Nothing but its end may ever happen to it.
    cell_db.run(instances.instance_destroy, uuid)
    assert len(cell_db.query(instances.instance_list, {"changes-since": after})) == 1


def test_changes_since_and_before(five: Database) -> None:
    five.run(instances.instance_update, "i1", {"updated_at": DAY + datetime.timedelta(days=1)})
    five.run(instances.instance_update, "i2", {"updated_at": DAY + datetime.timedelta(days=3)})
    aware = (DAY + datetime.timedelta(days=2)).replace(tzinfo=datetime.UTC)
    assert listed(five, {"changes-since": aware}) == ["i2"]
    # The others were never changed: they count from when they were made.
    assert listed(five, {"changes-before": aware}) == ["i4", "i3", "i1", "i0"]


def test_deletion_filters(five: Database) -> None:
    five.run(instances.instance_destroy, "i0")
    five.run(instances.instance_update, "i1", {"vm_state": "soft-delete"})
    assert sorted(listed(five, {"deleted": False})) == ["i2", "i3", "i4"]
    assert sorted(listed(five, {"deleted": False, "soft_deleted": True})) == ["i1", "i2", "i3", "i4"]
    assert sorted(listed(five, {"deleted": True})) == ["i0", "i1"]
    assert sorted(listed(five, {"deleted": True, "soft_deleted": False})) == ["i0"]
    assert len(listed(five)) == 5


def test_page_costs_the_same_statements_whatever_its_length(five: Database) -> None:
    counts = []
    for limit in (1, 5):
        count = Count(five)
        five.query(instances.instance_list, {"deleted": False}, limit=limit, parts=ALL_PARTS)
        counts.append(len(count.statements))
    assert counts[0] == counts[1] == 11


def test_update_happens_only_from_an_expected_state(five: Database) -> None:
    expect = {"task_state": [None, "scheduling"], "vm_state": "active"}
    assert five.run(instances.instance_update, "i0", {"task_state": "powering-off"}, expect) == Updated()
    stale = five.run(instances.instance_update, "i0", {"task_state": "rebooting"}, expect)
    assert stale == Stale({"task_state": "powering-off", "vm_state": "active"})
    assert five.run(instances.instance_update, "unknown", {"task_state": None}, expect) == Missing()
    row = five.query(instances.instance_get, "i0")
    assert row is not None
    assert row["task_state"] == "powering-off"
    assert row["updated_at"] is not None


def test_deleted_instance_is_updated_only_on_demand(five: Database) -> None:
    five.run(instances.instance_destroy, "i0")
    assert five.run(instances.instance_update, "i0", {"cleaned": 1}) == Missing()
    assert five.run(instances.instance_update, "i0", {"cleaned": 1}, deleted_too=True) == Updated()
    assert listed(five, {"cleaned": True}) == ["i0"]


def test_destroy_marks_the_instance_and_what_hangs_on_it(five: Database) -> None:
    with five.write() as tx:
        tx.execute(INSTANCE_FAULTS.insert().values(instance_uuid="i0", code=500, message="m"))
        tx.execute(INSTANCE_ACTIONS.insert().values(instance_uuid="i0", action="create", request_id="r"))
    assert five.run(instances.instance_destroy, "i0", {"host": "elsewhere"}) == Stale({"host": None})
    assert five.run(instances.instance_destroy, "i0", {"host": None}) == Updated()
    assert five.run(instances.instance_destroy, "i0") == Missing()
    assert five.query(instances.instance_get, "i0") is None
    row = five.query(instances.instance_get, "i0", ("tags", "system_metadata"), deleted_too=True)
    assert row is not None
    assert row["deleted"] == row["id"]
    assert row["deleted_at"] is not None
    assert row["updated_at"] is None
    assert row["system_metadata"] == {"image_base": "x"}
    with five.read() as tx:
        for table in (INSTANCE_FAULTS, INSTANCE_INFO_CACHES, INSTANCE_EXTRA, INSTANCE_METADATA):
            found = tx.execute(sa.select(table.c.id, table.c.deleted).where(table.c.instance_uuid == "i0")).all()
            assert found
            assert all(key == deleted for key, deleted in found), table.name
        mapping = tx.execute(sa.select(INSTANCE_ID_MAPPINGS).where(INSTANCE_ID_MAPPINGS.c.uuid == "i0")).one()
        assert mapping.deleted == mapping.id
        assert not tx.execute(sa.select(TAGS).where(TAGS.c.resource_id == "i0")).all()
        action = tx.execute(sa.select(INSTANCE_ACTIONS).where(INSTANCE_ACTIONS.c.instance_uuid == "i0")).one()
        assert action.deleted == 0


def test_purge_leaves_nothing(five: Database) -> None:
    five.run(instances.instance_destroy, "i0")
    assert five.run(instances.instance_purge, "i0")
    assert not five.run(instances.instance_purge, "i0")
    assert five.query(instances.instance_get, "i0", deleted_too=True) is None


def test_usage_counts_the_living(five: Database) -> None:
    make(five, "j", user_id="other")
    five.run(instances.instance_destroy, "i0")
    usage = five.query(instances.instance_usage, "p", "other")
    assert usage["project"] == {"instances": 5, "cores": 10, "ram": 2560}
    assert usage["user"] == {"instances": 1, "cores": 2, "ram": 512}


def test_uuids_by_host(five: Database) -> None:
    five.run(instances.instance_update, "i1", {"host": "h1"})
    assert five.query(instances.instance_uuids_by_host, ["h1", "h2"]) == {"h1": ["i1"], "h2": []}


def test_newest_fault_counts(five: Database) -> None:
    with five.write() as tx:
        for message in ("old", "new"):
            tx.execute(INSTANCE_FAULTS.insert().values(instance_uuid="i0", code=500, message=message))
    row = five.query(instances.instance_get, "i0", ("fault",))
    assert row is not None
    assert row["fault"]["message"] == "new"


def test_names_are_compared_without_case(five: Database) -> None:
    assert five.query(instances.instance_name_taken, "SERVER-i0", "p")
    assert not five.query(instances.instance_name_taken, "server-i0", "other")
