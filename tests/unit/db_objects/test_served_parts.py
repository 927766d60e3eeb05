"""Console permissions, shares, task logs, volume usage, counts and parts, asked for over the bus as hosts do."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from tests.unit.db_objects.remote import Host

from kilonova.base import clock, ids
from kilonova.conductor.objects import table
from kilonova.contract import exceptions, objects
from kilonova.contract.objects.signatures import arguments


@pytest.fixture
def server(host: Host) -> Any:
    made = objects.Instance(
        uuid=ids.new_uuid(),
        project_id="p",
        user_id="u",
        host="h1",
        node="n1",
        compute_id=1,
        vcpus=2,
        memory_mb=512,
        image_ref=ids.new_uuid(),
        metadata={"a": "1", "b": "2"},
        launched_at=clock.now(),
    )
    host.act(made, "create")
    return made


def test_table_serves_only_declared_methods() -> None:
    for kind, served in (("METHODS", table.METHODS), ("CLASS_METHODS", table.CLASS_METHODS)):
        for name, methods in served.items():
            assert set(methods) <= set(getattr(objects.load(name), kind)), name


def test_served_functions_take_the_declared_arguments() -> None:
    import inspect

    for kind, served in (("METHODS", table.METHODS), ("CLASS_METHODS", table.CLASS_METHODS)):
        skip = 3 if kind == "METHODS" else 2
        for name, methods in served.items():
            for method, entry in methods.items():
                declared = arguments(getattr(objects.load(name), kind)[method])
                taken = list(inspect.signature(entry.fn).parameters.values())[skip:]
                assert [p.name for p in taken] == [a.name for a in declared], f"{name}.{method}"


def test_console_permissions_hold_for_their_time(host: Host, server: Any) -> None:
    auth = objects.ConsoleAuthToken(
        console_type="novnc", host="h1", port=5900, instance_uuid=server.uuid, access_url_base="http://x/vnc"
    )
    token = host.act(auth, "authorize", 600)
    assert (auth.token, bool(auth.id)) == (token, True)
    assert host.call("ConsoleAuthToken", "validate", token).instance_uuid == server.uuid
    with pytest.raises(exceptions.InvalidToken):
        host.call("ConsoleAuthToken", "validate", "guess")
    with pytest.raises(exceptions.ObjectActionError):
        host.act(auth, "authorize", 600)
    host.call("ConsoleAuthToken", "clean_console_auths_for_instance", server.uuid)
    with pytest.raises(exceptions.InvalidToken):
        host.call("ConsoleAuthToken", "validate", token)
    over = objects.ConsoleAuthToken(console_type="novnc", host="h1", port=1, instance_uuid=server.uuid)
    expired = host.act(over, "authorize", 0)
    with pytest.raises(exceptions.InvalidToken):
        host.call("ConsoleAuthToken", "validate", expired)
    stranger = objects.ConsoleAuthToken(console_type="novnc", host="h1", port=1, instance_uuid=ids.new_uuid())
    with pytest.raises(exceptions.InstanceNotFound):
        host.act(stranger, "authorize", 600)


def test_shares_come_and_go(host: Host, server: Any) -> None:
    share = objects.ShareMapping(
        uuid=ids.new_uuid(),
        instance_uuid=server.uuid,
        share_id=ids.new_uuid(),
        status="attaching",
        tag="t",
        export_location="nfs:/x",
        share_proto="NFS",
    )
    host.act(share, "save")
    share.status = "active"
    host.act(share, "save")
    for method, args in (
        ("get_by_instance_uuid", [server.uuid]),
        ("get_by_share_id", [share.share_id]),
        ("get_by_host_for_reconcile", ["h1"]),
    ):
        assert [s.status for s in host.call("ShareMappingList", method, *args)] == ["active"]
    assert len(host.call("ShareMappingList", "get_by_host_for_reconcile", "h2")) == 0
    host.act(share, "delete")
    with pytest.raises(exceptions.ShareNotFound):
        host.call("ShareMapping", "get_by_instance_uuid_and_share_id", server.uuid, share.share_id)


def test_a_time_span_is_worked_through_once(host: Host) -> None:
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    span = {"period_beginning": begin, "period_ending": begin + datetime.timedelta(days=31)}
    task = objects.TaskLog(task_name="usage", host="h1", task_items=3, message="go", **span)
    host.act(task, "begin_task")
    with pytest.raises(exceptions.TaskAlreadyRunning):
        host.act(objects.TaskLog(task_name="usage", host="h1", task_items=3, message="", **span), "begin_task")
    text = [when.strftime("%Y-%m-%dT%H:%M:%S.%f") for when in span.values()]
    assert host.call("TaskLog", "get", "usage", *text, "h1").state == "RUNNING"
    task.errors = 1
    host.act(task, "end_task")
    assert [t.state for t in host.call("TaskLogList", "get_all", "usage", *text)] == ["DONE"]
    assert host.call("TaskLog", "get", "usage", *text, "h2") is None
    other = objects.TaskLog(task_name="usage", host="h2", errors=0, message="", **span)
    with pytest.raises(exceptions.TaskNotRunning):
        host.act(other, "end_task")


def test_volume_counters_that_fall_go_to_the_totals(host: Host, server: Any) -> None:
    volume = ids.new_uuid()

    def count(number: int, **kwargs: Any) -> tuple[int, int]:
        usage = objects.VolumeUsage(
            volume_id=volume,
            instance_uuid=server.uuid,
            project_id="p",
            user_id="u",
            availability_zone=None,
            curr_reads=number,
            curr_read_bytes=number,
            curr_writes=number,
            curr_write_bytes=number,
        )
        host.act(usage, "save", **kwargs)
        return usage.curr_reads, usage.tot_reads

    assert count(5) == (5, 0)
    assert count(8) == (8, 0)
    assert count(2) == (2, 8)
    assert count(3, update_totals=True) == (0, 11)


def test_numbers_of_ids_stay(host: Host, server: Any) -> None:
    first = host.call("EC2Ids", "get_by_instance", server)
    assert first.instance_id.startswith("i-0000")
    assert first.ami_id.startswith("ami-0000")
    assert first.kernel_id is None
    again = host.call("EC2Ids", "get_by_instance", server)
    assert (again.instance_id, again.ami_id) == (first.instance_id, first.ami_id)
    mapping = host.call("EC2InstanceMapping", "get_by_uuid", server.uuid)
    assert host.call("EC2InstanceMapping", "get_by_id", mapping.id).uuid == server.uuid


def test_parts_of_a_server(host: Host, server: Any) -> None:
    host.act(server, "delete_metadata_key", "a")
    assert server.metadata == {"b": "2"}
    assert host.call("Instance", "get_by_uuid", server.uuid, ["metadata"]).metadata == {"b": "2"}
    cache = host.call("InstanceInfoCache", "get_by_instance_uuid", server.uuid)
    cache.network_info = [{"id": "x"}]
    host.act(cache, "save")
    other = host.call("InstanceInfoCache", "get_by_instance_uuid", server.uuid)
    assert other.network_info == [{"id": "x"}]
    host.act(other, "delete")
    cells = [objects.InstanceNUMACell(id=0, cpuset={0}, pcpuset=set(), memory=512)]
    host.act(objects.InstanceNUMATopology(instance_uuid=server.uuid, cells=cells), "create")
    found = host.call("InstanceNUMATopology", "get_by_instance_uuid", server.uuid)
    assert found.cells[0].cpuset == {0}
    host.act(server, "drop_migration_context")
    assert server.migration_context is None


def test_counts_and_windows(host: Host, server: Any) -> None:
    counts = host.call("InstanceList", "get_counts", "p", "u")
    assert counts == {kind: {"instances": 1, "cores": 2, "ram": 512} for kind in ("project", "user")}
    assert host.call("InstanceList", "get_counts", "other")["project"]["ram"] == 0
    window = host.call("InstanceList", "_get_active_by_window_joined", "2020-01-01T00:00:00Z", None, "p")
    assert [one.uuid for one in window] == [server.uuid]
    before = host.call("InstanceList", "_get_active_by_window_joined", "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
    assert len(before) == 0


def test_groups_know_the_hosts_of_their_members(host: Host, server: Any) -> None:
    group = objects.InstanceGroup(uuid=ids.new_uuid(), members=[server.uuid, ids.new_uuid()])
    assert host.act(group, "get_hosts") == ["h1"]
    assert host.act(group, "get_hosts", [server.uuid]) == []
    assert host.act(group, "count_members_by_user", "u") == 1
    assert len(host.call("InstanceGroupList", "get_all")) == 0


def test_lists_of_the_api_database(host: Host) -> None:
    assert len(host.call("FlavorList", "get_all")) == 0
    assert len(host.call("HostMappingList", "get_all")) == 0
    assert len(host.call("CellMappingList", "get_by_disabled", False)) == 0
    assert host.call("InstanceMappingList", "get_counts", "p")["project"] == {"instances": 0}
    assert len(host.call("SecurityGroupList", "get_by_project", "p")) == 0
