"""The API database's nouns."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.db.api import (
    aggregates,
    build_requests,
    cell_mappings,
    flavors,
    host_mappings,
    instance_groups,
    instance_mappings,
    key_pairs,
    quotas,
    request_specs,
)
from kilonova.db.engine import Database
from kilonova.db.outcomes import DuplicateError, InvalidSortKeyError, MarkerNotFoundError

CELL = {"uuid": "c1", "name": "one", "transport_url": "none:///", "database_connection": "sqlite:////x"}
SMALL = {"memory_mb": 64, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0}


def flavor(db: Database, flavorid: str, *, specs: Any = None, projects: Any = (), **values: Any) -> dict[str, Any]:
    new = {"flavorid": flavorid, "name": f"name-{flavorid}", **SMALL, **values}
    return db.run(flavors.flavor_create, new, specs, projects)


def ids_of(db: Database, **how: Any) -> list[str]:
    return [row["flavorid"] for row in db.query(flavors.flavor_list, **how)]


class TestFlavors:
    def test_made_with_specs(self, api_db: Database) -> None:
        made = flavor(api_db, "f", specs={"hw:cpu_policy": "shared"})
        assert made["is_public"] is True
        found = api_db.query(flavors.flavor_get, "f")
        assert found is not None
        assert found["extra_specs"] == {"hw:cpu_policy": "shared"}
        assert api_db.query(flavors.flavor_get, "unknown") is None

    def test_names_and_ids_are_unique(self, api_db: Database) -> None:
        flavor(api_db, "f")
        for clash in ({"flavorid": "f", "name": "other"}, {"flavorid": "g", "name": "name-f"}):
            with pytest.raises(DuplicateError):
                api_db.run(flavors.flavor_create, {**SMALL, **clash})

    def test_access_decides_who_sees_it(self, api_db: Database) -> None:
        flavor(api_db, "public")
        private = flavor(api_db, "private", is_public=False, projects=["p"])
        assert ids_of(api_db, is_public=True) == ["public"]
        assert ids_of(api_db, is_public=True, project_id="p") == ["private", "public"]
        assert ids_of(api_db, is_public=False) == ["private"]
        assert ids_of(api_db) == ["private", "public"]
        assert api_db.query(flavors.flavor_get, "private", project_id="q") is None
        assert api_db.query(flavors.flavor_access_list, private["id"]) == ["p"]
        api_db.run(flavors.flavor_access_add, private["id"], ["q"])
        assert api_db.query(flavors.flavor_get, "private", project_id="q") is not None
        with pytest.raises(DuplicateError):
            api_db.run(flavors.flavor_access_add, private["id"], ["q"])
        assert api_db.run(flavors.flavor_access_remove, private["id"], "q")
        assert not api_db.run(flavors.flavor_access_remove, private["id"], "q")

    @pytest.mark.parametrize("direction", ["asc", "desc"])
    def test_equal_ones_follow_the_direction(self, api_db: Database, direction: str) -> None:
        made = [flavor(api_db, each)["flavorid"] for each in "bac"]
        assert ids_of(api_db, sort=[("memory_mb", direction)]) == (made if direction == "asc" else made[::-1])

    def test_filters_sorting_and_pages(self, api_db: Database) -> None:
        for n in range(5):
            flavor(api_db, f"f{n}", memory_mb=64 * n, root_gb=n, disabled=n == 4)
        assert ids_of(api_db, min_memory_mb=128) == ["f2", "f3", "f4"]
        assert ids_of(api_db, min_root_gb=3, disabled=False) == ["f3"]
        assert ids_of(api_db, sort=[("memory_mb", "desc")], limit=2) == ["f4", "f3"]
        assert ids_of(api_db, sort=[("memory_mb", "desc")], limit=2, marker="f3") == ["f2", "f1"]
        with pytest.raises(MarkerNotFoundError):
            ids_of(api_db, marker="unknown")
        with pytest.raises(InvalidSortKeyError):
            ids_of(api_db, sort=[("nonsense", "asc")])

    def test_specs_are_written_one_by_one(self, api_db: Database) -> None:
        number = flavor(api_db, "f", specs={"a": "1", "b": "2"})["id"]
        api_db.run(flavors.flavor_specs_set, number, {"b": "3", "c": "4"})
        assert api_db.run(flavors.flavor_spec_delete, number, "a")
        assert not api_db.run(flavors.flavor_spec_delete, number, "a")
        found = api_db.query(flavors.flavor_get, "f")
        assert found is not None
        assert found["extra_specs"] == {"b": "3", "c": "4"}

    def test_deleted_with_all_that_is_its_own(self, api_db: Database) -> None:
        flavor(api_db, "f", specs={"a": "1"}, projects=["p"])
        assert api_db.run(flavors.flavor_update, "f", {"description": "d"})
        assert api_db.run(flavors.flavor_delete, "f")
        assert not api_db.run(flavors.flavor_delete, "f")
        assert not api_db.run(flavors.flavor_update, "f", {"description": "d"})
        flavor(api_db, "f")


class TestMappings:
    @pytest.fixture
    def cell(self, api_db: Database) -> int:
        return int(api_db.run(cell_mappings.cell_mapping_create, CELL)["id"])

    def test_instances_move_into_cells(self, api_db: Database, cell: int) -> None:
        new = [{"instance_uuid": uuid, "project_id": "p", "user_id": "u"} for uuid in ("a", "b")]
        api_db.run(instance_mappings.instance_mapping_create_many, new)
        found = api_db.query(instance_mappings.instance_mapping_get, "a")
        assert found is not None
        assert (found["cell_uuid"], found["queued_for_delete"]) == (None, False)
        assert api_db.run(instance_mappings.instance_mapping_set_cell, "a", "c1")
        assert not api_db.run(instance_mappings.instance_mapping_set_cell, "unknown", "c1")
        mappings = api_db.query(instance_mappings.instance_mapping_list, ["a", "b", "unknown"])
        assert {m["instance_uuid"]: m["cell_uuid"] for m in mappings} == {"a": "c1", "b": None}
        assert [m["instance_uuid"] for m in api_db.query(instance_mappings.instance_mapping_list_by_cell, None)] == [
            "b"
        ]
        with pytest.raises(DuplicateError):
            api_db.run(instance_mappings.instance_mapping_create, new[0])

    def test_those_queued_for_delete_do_not_count(self, api_db: Database, cell: int) -> None:
        for uuid, user in (("a", "u"), ("b", "u"), ("c", "v")):
            values = {"instance_uuid": uuid, "project_id": "p", "user_id": user, "cell_id": cell}
            api_db.run(instance_mappings.instance_mapping_create, values)
        api_db.run(instance_mappings.instance_mapping_update, "a", {"queued_for_delete": True})
        # Rows of before the column was filled.
        api_db.run(instance_mappings.instance_mapping_update, "b", {"queued_for_delete": None})
        assert api_db.query(instance_mappings.instance_mapping_count, "p", "u") == {"project": 2, "user": 1}
        alive = api_db.query(instance_mappings.instance_mapping_list_by_project, "p", queued_for_delete=False)
        assert {m["instance_uuid"] for m in alive} == {"b", "c"}
        down = api_db.query(instance_mappings.instance_mapping_list_in_down_cells, ["c1"], project_id="p", limit=1)
        assert [m["instance_uuid"] for m in down] == ["b"]

    def test_hosts(self, api_db: Database, cell: int) -> None:
        api_db.run(host_mappings.host_mapping_create, "h1", cell)
        with pytest.raises(DuplicateError):
            api_db.run(host_mappings.host_mapping_create, "h1", cell)
        found = api_db.query(host_mappings.host_mapping_get, "h1")
        assert found is not None
        assert (found["cell_uuid"], found["cell_name"]) == ("c1", "one")
        assert api_db.query(cell_mappings.cell_mapping_usage, cell) == (1, 0)
        assert api_db.query(host_mappings.host_mapping_list, hosts=["h2"]) == []
        assert api_db.run(host_mappings.host_mapping_delete, "h1")
        assert api_db.query(host_mappings.host_mapping_get, "h1") is None

    def test_cell_in_use_cannot_go(self, api_db: Database, cell: int) -> None:
        api_db.run(host_mappings.host_mapping_create, "h1", cell)
        with pytest.raises(sa.exc.IntegrityError):
            api_db.run(cell_mappings.cell_mapping_delete, "c1")
        assert api_db.run(host_mappings.host_mapping_delete_by_cell, cell) == 1
        assert api_db.run(cell_mappings.cell_mapping_delete, "c1")


class TestRequests:
    def test_of_two_who_delete_a_build_request_one_did(self, api_db: Database) -> None:
        new = [{"instance_uuid": uuid, "project_id": "p", "instance": "{}"} for uuid in ("a", "b")]
        api_db.run(build_requests.build_request_create_many, new)
        assert {r["instance_uuid"] for r in api_db.query(build_requests.build_request_list, project_id="p")} == {
            "a",
            "b",
        }
        assert api_db.query(build_requests.build_request_list, project_id="q") == []
        assert api_db.run(build_requests.build_request_update, "a", {"tags": "[]"})
        assert api_db.query(build_requests.build_request_get, "a")["tags"] == "[]"  # type: ignore[index]
        assert api_db.run(build_requests.build_request_delete, "a")
        assert not api_db.run(build_requests.build_request_delete, "a")
        assert not api_db.run(build_requests.build_request_update, "a", {"tags": "[]"})

    def test_what_is_only_asked_for_is_in_no_cell(self, api_db: Database) -> None:
        new = [{"instance_uuid": uuid, "project_id": "p", "instance": f'"{uuid}"'} for uuid in ("a", "b", "c")]
        api_db.run(build_requests.build_request_create_many, new)
        mapped = [{"instance_uuid": uuid, "project_id": "p", "user_id": "u"} for uuid in ("a", "b")]
        api_db.run(instance_mappings.instance_mapping_create_many, mapped)
        cell = {"uuid": "x", "name": "x", "transport_url": "fake://", "database_connection": "sqlite://"}
        made = api_db.run(cell_mappings.cell_mapping_create, cell)
        api_db.run(instance_mappings.instance_mapping_set_cell, "b", made["uuid"])
        assert sorted(api_db.query(build_requests.build_request_unplaced, "p")) == ["a", "c"]
        assert api_db.query(build_requests.build_request_unplaced, "q") == []
        assert api_db.query(build_requests.build_request_instances, ["a", "gone"]) == {"a": '"a"'}

    def test_request_specs(self, api_db: Database) -> None:
        api_db.run(request_specs.request_spec_create_many, [{"instance_uuid": u, "spec": "{}"} for u in ("a", "b")])
        api_db.run(request_specs.request_spec_update, "a", {"spec": '{"x": 1}'})
        specs = {row["instance_uuid"]: row["spec"] for row in api_db.query(request_specs.request_spec_list, ["a", "b"])}
        assert specs == {"a": '{"x": 1}', "b": "{}"}
        assert api_db.run(request_specs.request_spec_delete_many, ["a", "b", "c"]) == 2
        assert api_db.query(request_specs.request_spec_get, "a") is None


class TestKeyPairs:
    def test_pages_by_name(self, api_db: Database) -> None:
        for name in ("c", "a", "b"):
            values = {"user_id": "u", "name": name, "public_key": "k", "fingerprint": "f", "type": "ssh"}
            api_db.run(key_pairs.key_pair_create, values)
        assert [k["name"] for k in api_db.query(key_pairs.key_pair_list, "u", limit=2)] == ["a", "b"]
        assert [k["name"] for k in api_db.query(key_pairs.key_pair_list, "u", marker="b")] == ["c"]
        with pytest.raises(MarkerNotFoundError):
            api_db.query(key_pairs.key_pair_list, "u", marker="unknown")
        assert api_db.query(key_pairs.key_pair_count, "u") == 3
        assert api_db.query(key_pairs.key_pair_get, "v", "a") is None
        with pytest.raises(DuplicateError):
            api_db.run(key_pairs.key_pair_create, {"user_id": "u", "name": "a", "type": "ssh"})
        assert api_db.run(key_pairs.key_pair_delete, "u", "a")
        assert not api_db.run(key_pairs.key_pair_delete, "u", "a")


class TestAggregates:
    def test_hosts_and_metadata(self, api_db: Database) -> None:
        made = api_db.run(aggregates.aggregate_create, "one", {"availability_zone": "z1", "ssd": "true"})
        number = made["id"]
        api_db.run(aggregates.aggregate_host_add, number, "h1")
        with pytest.raises(DuplicateError):
            api_db.run(aggregates.aggregate_host_add, number, "h1")
        api_db.run(aggregates.aggregate_metadata_update, number, {"ssd": None, "new": "x"})
        found = api_db.query(aggregates.aggregate_get, number)
        assert found is not None
        assert (found["hosts"], found["metadata"]) == (["h1"], {"availability_zone": "z1", "new": "x"})
        assert api_db.query(aggregates.availability_zones_by_host) == {"h1": "z1"}
        assert api_db.query(aggregates.availability_zones_by_host, ["h2"]) == {}
        assert [a["id"] for a in api_db.query(aggregates.aggregate_list, host="h1")] == [number]
        assert api_db.query(aggregates.aggregate_list, key="ssd") == []
        assert api_db.run(aggregates.aggregate_host_delete, number, "h1")
        assert not api_db.run(aggregates.aggregate_host_delete, number, "h1")
        assert api_db.run(aggregates.aggregate_delete, number)
        assert api_db.query(aggregates.aggregate_get, number) is None

    def test_names_are_unique(self, api_db: Database) -> None:
        api_db.run(aggregates.aggregate_create, "one")
        two = api_db.run(aggregates.aggregate_create, "two")
        with pytest.raises(DuplicateError):
            api_db.run(aggregates.aggregate_create, "one")
        with pytest.raises(DuplicateError):
            api_db.run(aggregates.aggregate_update, two["id"], {"name": "one"})
        assert api_db.run(aggregates.aggregate_update, two["id"], {"name": "three"})


class TestGroups:
    def test_members_and_policy(self, api_db: Database) -> None:
        values = {"project_id": "p", "user_id": "u", "name": "g"}
        made = api_db.run(instance_groups.instance_group_create, values, "anti-affinity", {"max_server_per_host": 2})
        api_db.run(instance_groups.instance_group_members_add, made["id"], ["a", "b", "a"])
        api_db.run(instance_groups.instance_group_members_add, made["id"], ["b", "c"])
        found = api_db.query(instance_groups.instance_group_get, made["uuid"])
        assert found is not None
        assert found["members"] == ["a", "b", "c"]
        assert (found["policy"], found["rules"]) == ("anti-affinity", {"max_server_per_host": 2})
        assert api_db.query(instance_groups.instance_group_uuids_by_member, ["a", "x"]) == {"a": [made["uuid"]]}
        assert api_db.run(instance_groups.instance_group_members_remove, ["a", "x"]) == 1
        assert api_db.query(instance_groups.instance_group_count, "p", "v") == {"project": 1, "user": 0}
        assert api_db.query(instance_groups.instance_group_list, "q") == []
        assert len(api_db.query(instance_groups.instance_group_list, limit=1)) == 1
        assert api_db.query(instance_groups.instance_group_list, "p", offset=1, limit=5) == []
        assert api_db.run(instance_groups.instance_group_delete, made["uuid"])
        assert not api_db.run(instance_groups.instance_group_delete, made["uuid"])


class TestQuotas:
    def test_limits_of_project_user_and_class(self, api_db: Database) -> None:
        for limit in (5, 7):
            api_db.run(quotas.quota_set, "p", "cores", limit)
        api_db.run(quotas.quota_set, "p", "cores", 3, "u")
        api_db.run(quotas.quota_class_set, "default", "ram", -1)
        assert api_db.query(quotas.quota_get, "p") == {"cores": 7}
        assert api_db.query(quotas.quota_get_for_user, "p", "u") == {"cores": 3}
        assert api_db.query(quotas.quota_list_by_user, "p") == {"u": {"cores": 3}}
        assert api_db.query(quotas.quota_class_get) == {"ram": -1}
        api_db.run(quotas.quota_delete, "p", "u")
        assert api_db.query(quotas.quota_get_for_user, "p", "u") == {}
        assert api_db.query(quotas.quota_get, "p") == {"cores": 7}
        api_db.run(quotas.quota_delete, "p")
        assert api_db.query(quotas.quota_get, "p") == {}


def test_times_are_kept_as_naive_utc(api_db: Database) -> None:
    when = datetime.datetime(2026, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    made = api_db.run(cell_mappings.cell_mapping_create, {**CELL, "created_at": when})
    assert made["created_at"] == datetime.datetime(2026, 1, 1)
