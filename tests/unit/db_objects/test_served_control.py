"""What the API and operators change through objects: flavors, aggregates, groups, keys, mappings, limits."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.db_objects.remote import Host

from kilonova.base import ids
from kilonova.conductor.objects import table
from kilonova.contract import context, exceptions, objects
from kilonova.db.api import instance_mappings, quotas
from kilonova.db.engine import Database


def test_everything_declared_is_served() -> None:
    for kind, served in (("METHODS", table.METHODS), ("CLASS_METHODS", table.CLASS_METHODS)):
        declared = {name: set(getattr(objects.load(name), kind)) for name in objects.names()}
        assert {name: set(methods) for name, methods in served.items()} == {n: m for n, m in declared.items() if m}


# ---------------------------------------------------------------- aggregates


@pytest.fixture
def racks(host: Host) -> Any:
    made = objects.Aggregate(name="racks", metadata={"ssd": "yes", "rack": "1"})
    host.act(made, "create")
    return made


def test_an_aggregate_is_made_changed_and_removed(host: Host, racks: Any) -> None:
    assert (bool(racks.id), racks.hosts, racks.metadata) == (True, [], {"ssd": "yes", "rack": "1"})
    assert racks.obj_what_changed() == set()
    host.act(racks, "add_host", "h1")
    host.act(racks, "update_metadata", {"rack": None, "ssd": "no", "new": "1"})
    assert (racks.hosts, racks.metadata) == (["h1"], {"ssd": "no", "new": "1"})
    racks.name, racks.metadata = "rows", {"only": "this"}
    host.act(racks, "save")
    found = host.call("Aggregate", "get_by_uuid", racks.uuid)
    assert (found.name, found.hosts, found.metadata) == ("rows", ["h1"], {"only": "this"})
    assert racks.updated_at is not None
    host.act(racks, "delete_host", "h1")
    assert racks.hosts == []
    host.act(racks, "destroy")
    with pytest.raises(exceptions.AggregateNotFound):
        host.call("Aggregate", "get_by_id", racks.id)


def test_what_an_aggregate_refuses(host: Host, racks: Any) -> None:
    with pytest.raises(exceptions.ObjectActionError):
        host.act(racks, "create")
    with pytest.raises(exceptions.AggregateNameExists):
        host.act(objects.Aggregate(name="racks"), "create")
    with pytest.raises(exceptions.ObjectActionError):
        host.act(objects.Aggregate(name="other", hosts=["h1"]), "create")
    host.act(objects.Aggregate(name="other"), "create")
    racks.name = "other"
    with pytest.raises(exceptions.AggregateNameExists):
        host.act(racks, "save")
    racks.obj_reset_changes()
    host.act(racks, "add_host", "h1")
    with pytest.raises(exceptions.AggregateHostExists):
        host.act(racks, "add_host", "h1")
    with pytest.raises(exceptions.AggregateHostNotFound):
        host.act(racks, "delete_host", "h2")
    nothing = objects.Aggregate(id=99, metadata={}, hosts=[])
    nothing.obj_reset_changes()
    calls: list[tuple[Any, ...]] = [("save",), ("destroy",), ("add_host", "h"), ("delete_host", "h")]
    for method, *args in [*calls, ("update_metadata", {"a": "1"})]:
        with pytest.raises(exceptions.AggregateNotFound):
            host.act(nothing, method, *args)


# ---------------------------------------------------------------- flavors


def small(**more: Any) -> Any:
    values = {
        "name": "small",
        "flavorid": "s1",
        "memory_mb": 64,
        "vcpus": 1,
        "root_gb": 1,
        "ephemeral_gb": 0,
        "swap": 0,
    }
    return objects.Flavor(**{**values, "rxtx_factor": 1.0, "disabled": False, "is_public": False, **more})


@pytest.fixture
def flavor(host: Host) -> Any:
    made = small(extra_specs={"hw:a": "1", "hw:b": "2"}, projects=["p1"])
    host.act(made, "create")
    return made


def test_a_flavor_is_made_changed_and_removed(host: Host, flavor: Any) -> None:
    assert (bool(flavor.id), flavor.extra_specs, flavor.projects) == (True, {"hw:a": "1", "hw:b": "2"}, ["p1"])
    assert (flavor.vcpu_weight, flavor.deleted, flavor.obj_what_changed()) == (0, False, set())
    host.act(flavor, "add_access", "p2")
    assert flavor.projects == ["p1", "p2"]
    host.act(flavor, "remove_access", "p1")
    assert flavor.projects == ["p2"]
    host.act(flavor, "save_projects", ["p3", "p4"], ["p2"])
    host.act(flavor, "save_extra_specs", {"hw:a": "9", "hw:c": "3"}, ["hw:b"])
    found = host.call("Flavor", "get_by_flavor_id", "s1")
    assert found.extra_specs == {"hw:a": "9", "hw:c": "3"}
    host.act(flavor, "_load_projects")
    assert flavor.projects == found.projects == ["p3", "p4"]
    by_public_id = objects.Flavor(flavorid="s1")
    host.act(by_public_id, "destroy")
    assert (by_public_id.id, by_public_id.name) == (flavor.id, "small")
    with pytest.raises(exceptions.FlavorNotFound):
        host.call("Flavor", "get_by_id", flavor.id)


def test_a_flavor_without_extra_specs_has_none_set(host: Host) -> None:
    made = small()
    host.act(made, "create")
    assert (made.obj_attr_is_set("extra_specs"), made.projects) == (False, [])
    assert host.call("Flavor", "get_by_name", "small").extra_specs == {}


def test_what_a_flavor_refuses(host: Host, flavor: Any) -> None:
    with pytest.raises(exceptions.ObjectActionError):
        host.act(flavor, "create")
    with pytest.raises(exceptions.FlavorIdExists):
        host.act(small(name="other"), "create")
    with pytest.raises(exceptions.FlavorExists):
        host.act(small(flavorid="s2"), "create")
    for method in ("add_access", "save_projects"):
        with pytest.raises(exceptions.FlavorAccessExists):
            host.act(flavor, method, "p1" if method == "add_access" else ["p1"])
    for method in ("remove_access", "save_projects"):
        with pytest.raises(exceptions.FlavorAccessNotFound):
            host.act(flavor, method, *(("p9",) if method == "remove_access" else ([], ["p9"])))
    with pytest.raises(exceptions.FlavorExtraSpecsNotFound):
        host.act(flavor, "save_extra_specs", {"hw:new": "1"}, ["hw:none"])
    assert "hw:new" not in host.call("Flavor", "get_by_flavor_id", "s1").extra_specs
    flavor.projects = ["p7"]
    with pytest.raises(exceptions.ObjectActionError):
        host.act(flavor, "add_access", "p8")
    for method in ("destroy", "_load_projects"):
        with pytest.raises(exceptions.FlavorNotFound):
            host.act(objects.Flavor(flavorid="none"), method)


def test_a_flavor_is_hidden_from_projects_without_access(host: Host, flavor: Any) -> None:
    host.act(small(name="all", flavorid="s0", is_public=True), "create")
    host.ctxt = context.RequestContext("u", "p1")
    assert host.call("Flavor", "get_by_id", flavor.id).name == "small"
    assert [each.name for each in host.call("FlavorList", "get_all", limit=2)] == ["all", "small"]
    host.ctxt = context.RequestContext("u", "p2")
    assert [each.name for each in host.call("FlavorList", "get_all", limit=2)] == ["all"]
    with pytest.raises(exceptions.FlavorNotFound):
        host.call("Flavor", "get_by_id", flavor.id)
    with pytest.raises(exceptions.FlavorNotFoundByName):
        host.call("Flavor", "get_by_name", "small")


# ---------------------------------------------------------------- key pairs, groups


def test_key_pairs_come_and_go(host: Host) -> None:
    for name in ("a", "b", "c"):
        made = objects.KeyPair(user_id="u", name=name, type="ssh", fingerprint="f", public_key="ssh-rsa x")
        host.act(made, "create")
        assert (bool(made.id), made.deleted, made.obj_what_changed()) == (True, False, set())
    with pytest.raises(exceptions.ObjectActionError):
        host.act(made, "create")
    with pytest.raises(exceptions.KeyPairExists):
        host.act(objects.KeyPair(user_id="u", name="a", type="ssh"), "create")
    assert [one.name for one in host.call("KeyPairList", "get_by_user", "u", limit=1, marker="a")] == ["b"]
    with pytest.raises(exceptions.MarkerNotFound):
        host.call("KeyPairList", "get_by_user", "u", marker="none")
    with pytest.raises(exceptions.KeypairNotFound):
        host.call("KeyPair", "get_by_name", "u", "a", localonly=True)
    host.act(made, "destroy")
    host.call("KeyPair", "destroy_by_name", "u", "a")
    assert host.call("KeyPairList", "get_count_by_user", "u") == 1
    with pytest.raises(exceptions.KeypairNotFound):
        host.act(made, "destroy")
    with pytest.raises(exceptions.KeypairNotFound):
        host.call("KeyPair", "destroy_by_name", "u", "a")


@pytest.fixture
def apart(host: Host) -> Any:
    made = objects.InstanceGroup(
        name="apart",
        project_id="p",
        user_id="u",
        policy="anti-affinity",
        _rules={"max_server_per_host": "3"},
        members=[ids.new_uuid()],
    )
    host.act(made, "create")
    return made


def test_a_group_is_made_changed_and_removed(host: Host, apart: Any) -> None:
    assert (apart.policies, apart._rules, len(apart.members)) == (["anti-affinity"], {"max_server_per_host": "3"}, 1)
    assert (apart.obj_what_changed(), apart.obj_attr_is_set("hosts")) == (set(), False)
    apart.name, apart.members = "far apart", [*apart.members, ids.new_uuid()]
    host.act(apart, "save")
    assert (len(apart.members), apart.updated_at is not None) == (2, True)
    found = host.call("InstanceGroup", "get_by_uuid", apart.uuid)
    assert (found.name, found.policy) == ("far apart", "anti-affinity")
    before = apart.updated_at
    host.act(apart, "save")
    assert apart.updated_at == before
    host.act(apart, "destroy")
    for method in ("destroy", "refresh"):
        with pytest.raises(exceptions.InstanceGroupNotFound):
            host.act(apart, method)


def test_a_group_of_former_policies(host: Host) -> None:
    made = objects.InstanceGroup(name="old", project_id="p", user_id="u", policies=["affinity"])
    host.act(made, "create")
    assert (made.policy, made._rules, made.members) == ("affinity", {}, [])


def test_what_a_group_refuses(host: Host, apart: Any) -> None:
    with pytest.raises(exceptions.ObjectActionError):
        host.act(apart, "create")
    with pytest.raises(exceptions.InstanceGroupIdExists):
        host.act(objects.InstanceGroup(uuid=apart.uuid, name="x", project_id="p", user_id="u"), "create")
    for name, value in (("hosts", ["h1"]), ("policy", "affinity")):
        changed = apart.obj_clone()
        setattr(changed, name, value)
        with pytest.raises(exceptions.InstanceGroupSaveException):
            host.act(changed, "save")


def test_a_group_is_its_projects(host: Host, apart: Any) -> None:
    host.ctxt = context.RequestContext("u", "another")
    apart.name = "mine now"
    for method in ("save", "destroy"):
        with pytest.raises(exceptions.InstanceGroupNotFound):
            host.act(apart, method)
    assert len(host.call("InstanceGroupList", "get_all")) == 0
    host.ctxt = context.RequestContext("u", "p")
    assert host.call("InstanceGroup", "get_by_name", "apart").uuid == apart.uuid


# ---------------------------------------------------------------- mappings


def cell(host: Host, name: str) -> Any:
    made = objects.CellMapping(
        uuid=ids.new_uuid(), name=name, transport_url="rabbit://x", database_connection="sqlite://", disabled=False
    )
    host.act(made, "create")
    return made


def test_cells_and_hosts_are_mapped(host: Host) -> None:
    one, two = cell(host, "one"), cell(host, "two")
    assert (bool(one.id), one.obj_what_changed()) == (True, set())
    with pytest.raises(exceptions.ObjectActionError):
        host.act(objects.CellMapping(uuid=one.uuid, name="x", transport_url="x", database_connection="x"), "create")
    mapped = objects.HostMapping(host="h1", cell_mapping=one)
    host.act(mapped, "create")
    assert (bool(mapped.id), mapped.cell_mapping.name) == (True, "one")
    with pytest.raises(exceptions.HostMappingExists):
        host.act(objects.HostMapping(host="h1", cell_mapping=two), "create")
    with pytest.raises(exceptions.ObjectActionError):
        host.act(one, "destroy")
    mapped.cell_mapping = two
    host.act(mapped, "save")
    assert host.call("HostMapping", "get_by_host", "h1").cell_mapping.uuid == two.uuid
    one.name, one.disabled = "first", True
    host.act(one, "save")
    assert [each.name for each in host.call("CellMappingList", "get_by_disabled", True)] == ["first"]
    host.act(mapped, "destroy")
    host.act(one, "destroy")
    for gone, error in ((mapped, exceptions.HostMappingNotFound), (one, exceptions.CellMappingNotFound)):
        for method in ("save", "destroy"):
            with pytest.raises(error):
                host.act(gone, method)


# ---------------------------------------------------------------- build requests


def asked(host: Host, name: str, **more: Any) -> Any:
    values = {"project_id": "p", "user_id": "u", "vm_state": "building", "image_ref": "i1", "metadata": {}}
    server = objects.Instance(uuid=ids.new_uuid(), display_name=name, **{**values, **more})
    tags = objects.TagList(objects=[objects.Tag(resource_id=server.uuid, tag=tag) for tag in more.get("labels", ())])
    request = objects.BuildRequest(
        instance_uuid=server.uuid, project_id=server.project_id, instance=server, tags=tags,
        block_device_mappings=objects.BlockDeviceMappingList(objects=[]),
    )  # fmt: skip
    host.act(request, "create")
    return request


@pytest.fixture
def requests(host: Host) -> None:
    asked(host, "web-1", metadata={"a": "1", "b": "2"})
    asked(host, "web-2", image_ref="i2")
    asked(host, "db-1", project_id="q", user_id="v")


def names(host: Host, filters: Any, **more: Any) -> list[str]:
    found = host.call("BuildRequestList", "get_by_filters", filters, **more)
    return [request.instance.display_name for request in found]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["db-1", "web-2", "web-1"]),
        ({"project_id": "p"}, ["web-2", "web-1"]),
        ({"project_id": ["p", "q"], "image_ref": "i2"}, ["web-2"]),
        ({"uuid": []}, []),
        ({"display_name": "^web"}, ["web-2", "web-1"]),
        ({"display_name": "1$", "user_id": "v"}, ["db-1"]),
        ({"metadata": {"a": "1"}}, ["web-1"]),
        ({"metadata": [{"a": "1"}, {"b": "3"}]}, []),
        ({"host": "h1"}, []),
        ({"changes-since": "2020-01-01", "deleted": False}, ["db-1", "web-2", "web-1"]),
        ({"deleted": True}, []),
        ({"cleaned": True}, []),
        ({"tags": ["t"]}, []),
        ({"not-tags": ["t"], "project_id": "q"}, ["db-1"]),
    ],
)
def test_build_requests_by_filters(host: Host, requests: None, filters: Any, expected: list[str]) -> None:
    assert names(host, filters) == expected


def test_pages_of_build_requests(host: Host, requests: None) -> None:
    by_name = {"sort_keys": ["display_name"], "sort_dirs": ["asc"]}
    assert names(host, {}, **by_name) == ["db-1", "web-1", "web-2"]
    found = host.call("BuildRequestList", "get_by_filters", {}, **by_name)
    assert names(host, {}, marker=found[0].instance_uuid, limit=1, **by_name) == ["web-1"]
    assert names(host, {}, limit=2, sort_keys=["project_id", "display_name"], sort_dirs=["desc", "asc"]) == [
        "db-1",
        "web-1",
    ]
    assert names(host, {}, limit=0) == []
    for more in ({"marker": ids.new_uuid()}, {"marker": ids.new_uuid(), "limit": 0}):
        with pytest.raises(exceptions.MarkerNotFound):
            names(host, {}, **more)
    for wrong in ({"sort_dirs": ["asc"]}, {"sort_keys": ["id"], "sort_dirs": ["up"]}):
        with pytest.raises(exceptions.InvalidInput):
            names(host, {}, **wrong)
    with pytest.raises(exceptions.InvalidInput):
        names(host, {"display_name": "("})


def test_build_requests_of_a_project(host: Host, requests: None) -> None:
    host.ctxt = context.RequestContext("v", "q")
    assert names(host, {}) == ["db-1"]


# ---------------------------------------------------------------- limits


@pytest.fixture
def user(host: Host) -> Host:
    host.ctxt = context.RequestContext("u", "p")
    return host


def check(host: Host, **kwargs: Any) -> None:
    host.call("Quotas", "limit_check_project_and_user", **kwargs)


def test_limits_are_set(user: Host, api_db: Database) -> None:
    for kind in ("Quotas", "QuotasNoOp"):
        project = f"p-{kind}"
        user.call(kind, "create_limit", project, "cores", 5)
        user.call(kind, "create_limit", project, "cores", 3, user_id="u")
        for user_id in (None, "u"):
            with pytest.raises(exceptions.QuotaExists):
                user.call(kind, "create_limit", project, "cores", 5, user_id=user_id)
        user.call(kind, "update_limit", project, "cores", 6)
        user.call(kind, "update_limit", project, "cores", 4, user_id="u")
        assert api_db.query(quotas.quota_get, project) == {"cores": 6}
        assert api_db.query(quotas.quota_get_for_user, project, "u") == {"cores": 4}
        with pytest.raises(exceptions.ProjectQuotaNotFound):
            user.call(kind, "update_limit", project, "ram", 6)
        with pytest.raises(exceptions.ProjectUserQuotaNotFound):
            user.call(kind, "update_limit", project, "ram", 6, user_id="u")


def test_values_are_checked(user: Host) -> None:
    user.call("Quotas", "create_limit", "p", "metadata_items", 5)
    user.call("Quotas", "create_limit", "p", "injected_files", 1, user_id="u")
    user.call("Quotas", "limit_check", metadata_items=5, injected_files=1)
    for over in ({"metadata_items": 6}, {"injected_files": 2}):
        with pytest.raises(exceptions.OverQuota):
            user.call("QuotasNoOp", "limit_check", **over)
    user.call("Quotas", "limit_check", user_id="v", injected_files=2)
    user.call("Quotas", "limit_check", project_id="q", metadata_items=6)
    with pytest.raises(exceptions.InvalidQuotaValue):
        user.call("Quotas", "limit_check", metadata_items=-1)
    with pytest.raises(exceptions.InvalidQuotaMethodUsage):
        user.call("Quotas", "limit_check", pets=1)


def test_values_of_projects_and_users_are_checked(user: Host) -> None:
    user.call("Quotas", "create_limit", "p", "cores", 5)
    user.call("Quotas", "create_limit", "p", "cores", 3, user_id="u")
    check(user, project_values={"cores": 5}, user_values={"cores": 3})
    for of_project, of_user in ((6, 1), (5, 4)):
        with pytest.raises(exceptions.OverQuota):
            check(user, project_values={"cores": of_project}, user_values={"cores": of_user})
    for once in ({"project_values": {"cores": 4}}, {"user_values": {"cores": 4}}):
        with pytest.raises(exceptions.OverQuota):
            check(user, **once)
    check(user, project_values={"cores": 5}, user_id="v")
    with pytest.raises(exceptions.Invalid):
        check(user)


def test_use_is_counted(user: Host) -> None:
    server = objects.Instance(
        uuid=ids.new_uuid(), project_id="p", user_id="u", vcpus=2, memory_mb=512, vm_state="active"
    )
    user.act(server, "create")
    assert user.call("Quotas", "count", "cores", "p") == 2
    counted = user.call("Quotas", "count_as_dict", "instances", "p", user_id="v")
    assert counted == {
        "project": {"instances": 1, "cores": 2, "ram": 512},
        "user": {"instances": 0, "cores": 0, "ram": 0},
    }
    assert user.call("QuotasNoOp", "count", "key_pairs", "u") == 0
    assert user.call("Quotas", "count", "server_groups", "p") == 0
    for unknown in ("metadata_items", "pets"):
        with pytest.raises(exceptions.QuotaResourceUnknown):
            user.call("Quotas", "count", unknown, "p")


def test_members_of_a_group_are_counted(user: Host, api_db: Database) -> None:
    members = [ids.new_uuid() for _ in range(3)]
    for uuid, whose, gone in zip(members, ("u", "u", "v"), (False, True, False), strict=True):
        values = {"instance_uuid": uuid, "project_id": "p", "user_id": whose, "queued_for_delete": gone}
        api_db.run(instance_mappings.instance_mapping_create, values)
    group = objects.InstanceGroup(members=members)
    assert user.call("Quotas", "count", "server_group_members", group, "u") == 1


def test_more_is_checked_against_what_is_counted(user: Host) -> None:
    user.act(objects.KeyPair(user_id="u", name="a", type="ssh"), "create")
    user.call("Quotas", "create_limit", "p", "key_pairs", 2)
    user.call("Quotas", "check_deltas", {"key_pairs": 1}, "u")
    with pytest.raises(exceptions.OverQuota):
        user.call("Quotas", "check_deltas", {"key_pairs": 2}, "u")
    user.call("Quotas", "check_deltas", {"key_pairs": 2}, "u", check_project_id="q")
    user.call("Quotas", "create_limit", "p", "cores", 1, user_id="u")
    user.call("Quotas", "check_deltas", {"cores": 1, "ram": 1}, "p", user_id="u")
    with pytest.raises(exceptions.OverQuota):
        user.call("Quotas", "check_deltas", {"cores": 2, "ram": 1}, "p", user_id="u")


def test_nothing_is_reserved(user: Host) -> None:
    limits = objects.Quotas()
    user.act(limits, "reserve", project_id="p", user_id="u", cores=1)
    assert (limits.reservations, limits.project_id, limits.user_id) == (None, "p", "u")
    user.act(limits, "commit")
    user.act(limits, "rollback")
    assert limits.obj_what_changed() == set()


def test_servers_of_security_groups_are_neutrons(user: Host) -> None:
    for method, argument in (("get_by_security_group_id", 1), ("get_by_grantee_security_group_ids", [1])):
        with pytest.raises(NotImplementedError):
            user.call("InstanceList", method, argument)
