"""Instances as the object service reads and writes them."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
import types
import uuid
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from tests.unit.db.losses import lose_next_commit

from kilonova import conf as configuration
from kilonova.conductor.objects.service import ObjectService
from kilonova.contract import context, exceptions, objects
from kilonova.db.cell import instances as records
from kilonova.db.engine import Database
from kilonova.db.objects import action, instance, instances, service

FLAVOR = {
    "id": 1,
    "name": "small",
    "memory_mb": 192,
    "vcpus": 1,
    "root_gb": 1,
    "ephemeral_gb": 0,
    "flavorid": "s1",
    "swap": 0,
    "rxtx_factor": 1.0,
    "vcpu_weight": 0,
    "disabled": False,
    "is_public": True,
    "extra_specs": {"hw:cpu_policy": "shared"},
}


@pytest.fixture
def ctxt() -> context.RequestContext:
    return context.RequestContext(user_id="u", project_id="p", is_admin=True)


def make(**values: Any) -> objects.Instance:
    return objects.Instance(
        **{
            "uuid": str(uuid.uuid4()),
            "user_id": "u",
            "project_id": "p",
            "display_name": "one",
            "vm_state": "building",
            "task_state": "scheduling",
            "flavor": objects.Flavor(**FLAVOR),
            "old_flavor": None,
            "new_flavor": None,
            "metadata": {"a": "1", "b": "2"},
            "system_metadata": {"image_min_disk": "1"},
            "pci_requests": objects.InstancePCIRequests(requests=[]),
            **values,
        }
    )


@pytest.fixture
def made(cell_db: Database, ctxt: context.RequestContext) -> objects.Instance:
    one = make()
    cell_db.run(instance.create, ctxt, one)
    return one


def read(cell_db: Database, uuid: str, *attrs: str) -> objects.Instance:
    return cell_db.query(instance.load, uuid, attrs or instance.ALL)


def test_what_is_created_is_read_back(cell_db: Database, made: objects.Instance) -> None:
    found = read(cell_db, made.uuid)
    assert found.id == made.id
    assert found.metadata == {"a": "1", "b": "2"}
    assert found.flavor.extra_specs == {"hw:cpu_policy": "shared"}
    assert found.old_flavor is None
    assert found.info_cache.network_info == []
    assert found.pci_requests.requests == []
    assert found.deleted is False
    assert found.created_at.tzinfo is not None
    assert found.ec2_ids.instance_id == "i-00000001"
    assert not found.obj_what_changed()


def test_an_instance_exists_once(cell_db: Database, ctxt: context.RequestContext, made: objects.Instance) -> None:
    with pytest.raises(exceptions.InstanceExists):
        cell_db.run(instance.create, ctxt, make(uuid=made.uuid))


def test_pairs_are_replaced(cell_db: Database, ctxt: context.RequestContext, made: objects.Instance) -> None:
    made.metadata = {"b": "3", "c": "4"}
    cell_db.run(instance.save, ctxt, made)
    assert read(cell_db, made.uuid).metadata == {"b": "3", "c": "4"}


def test_task_state_is_the_lock(cell_db: Database, ctxt: context.RequestContext, made: objects.Instance) -> None:
    first, second = read(cell_db, made.uuid), read(cell_db, made.uuid)
    first.task_state = "spawning"
    cell_db.run(instance.save, ctxt, first, expected_task_state="scheduling")
    second.task_state = "deleting"
    with pytest.raises(exceptions.UnexpectedTaskStateError):
        cell_db.run(instance.save, ctxt, second, expected_task_state=[None, "scheduling"])
    assert read(cell_db, made.uuid).task_state == "spawning"


def test_deleting_is_told_apart(cell_db: Database, ctxt: context.RequestContext, made: objects.Instance) -> None:
    building = read(cell_db, made.uuid)
    made.task_state = "deleting"
    cell_db.run(instance.save, ctxt, made)
    building.vm_state = "active"
    with pytest.raises(exceptions.UnexpectedDeletingTaskStateError):
        cell_db.run(instance.save, ctxt, building, expected_task_state="spawning")


def test_node_goes_with_its_id(cell_db: Database, ctxt: context.RequestContext, made: objects.Instance) -> None:
    made.node = "n1"
    with pytest.raises(exceptions.ObjectActionError):
        cell_db.run(instance.save, ctxt, made)


def test_destroy_needs_an_unchanged_host(
    cell_db: Database, ctxt: context.RequestContext, made: objects.Instance
) -> None:
    placed = read(cell_db, made.uuid)
    placed.host = "h1"
    cell_db.run(instance.save, ctxt, placed)
    with pytest.raises(exceptions.ObjectActionError):
        cell_db.run(instance.destroy, ctxt, made)
    cell_db.run(instance.destroy, ctxt, placed)
    with pytest.raises(exceptions.InstanceNotFound):
        cell_db.run(instance.destroy, ctxt, placed)
    gone = cell_db.query(instance.load, made.uuid, ("info_cache", "system_metadata"), True)
    assert gone.deleted is True
    assert gone.info_cache.network_info == []


def test_list_by_host_takes_as_many_statements_for_one_as_for_many(
    cell_db: Database, ctxt: context.RequestContext
) -> None:

    counts = []
    for new in (1, 9):
        for _ in range(new):
            cell_db.run(instance.create, ctxt, make(host="h1"))
        with cell_db.read() as tx:
            seen: list[str] = []
            sa.event.listen(tx, "before_cursor_execute", lambda *args, seen=seen: seen.append(args[2]))
            found = instances.get_by_host(tx, ctxt, "h1", expected_attrs=instance.ALL)
        counts.append((len(found.objects), len(seen)))
    assert [n for n, _ in counts] == [1, 10]
    assert counts[0][1] == counts[1][1]


def test_events_of_actions(cell_db: Database, ctxt: context.RequestContext, made: objects.Instance) -> None:
    cell_db.run(action.action_start, ctxt, made.uuid, "create")
    cell_db.run(action.event_start, ctxt, made.uuid, "compute__do_build_and_run_instance", host="h1")
    cell_db.run(
        action.event_finish_with_failure,
        ctxt,
        made.uuid,
        "compute__do_build_and_run_instance",
        exc_val="boom",
        exc_tb="Traceback",
    )
    found = cell_db.query(action.get_by_request_id, ctxt, made.uuid, ctxt.request_id)
    assert found is not None
    assert found.message == "Error"
    (event,) = cell_db.query(action.events_get_by_action, ctxt, found.id).objects
    assert (event.result, event.details, event.host) == ("Error", "boom", "h1")


def test_a_heartbeat_is_seen(cell_db: Database, ctxt: context.RequestContext) -> None:
    one = objects.Service(host="h1", binary="nova-compute", topic="compute", version=74, report_count=0, disabled=False)
    one.forced_down = False
    cell_db.run(service.create, ctxt, one)
    assert one.last_seen_up is None
    one.report_count += 1
    cell_db.run(service.save, ctxt, one)
    assert one.last_seen_up is not None
    assert cell_db.query(service.get_minimum_version, ctxt, "nova-compute") == 74


def test_what_a_failure_says_fits_into_its_columns(
    cell_db: Database, ctxt: context.RequestContext, made: objects.Instance
) -> None:
    """A scheduler that refuses thousands of hosts has much to say, and a text column of MySQL takes 65535 bytes."""
    trace = "first line\n" + "host \N{EURO SIGN}\n" * 20_000 + "last line"
    cell_db.run(action.action_start, ctxt, made.uuid, "create")
    cell_db.run(action.event_start, ctxt, made.uuid, "schedule")
    done = cell_db.run(action.event_finish_with_failure, ctxt, made.uuid, "schedule", exc_val=trace, exc_tb=trace)
    assert done is not None
    for text in (done.traceback, done.details):
        assert len(text.encode()) <= 65535
        assert text.startswith("first line\n")
        assert text.endswith("last line")
    cell_db.run(action.finish_event_object, ctxt, done, trace, "short")
    assert (len(done.details.encode()) <= 65535, done.traceback) == (True, "short")


@pytest.fixture
def served(cell_db: Database, api_db: Database) -> ObjectService:
    return ObjectService(types.SimpleNamespace(own=cell_db, api=api_db), configuration.new())  # type: ignore[arg-type]


def test_object_action_sends_back_what_changed(
    served: ObjectService, ctxt: context.RequestContext, made: objects.Instance
) -> None:
    made.host = "h2"
    updates, result = served.object_action(ctxt, objinst=made, objmethod="save", args=[], kwargs={})
    assert result is None
    assert updates["obj_what_changed"] == set()
    assert "updated_at" in updates
    assert "uuid" not in updates


@pytest.fixture
def lost_commit(cell_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next transaction is lost when it is committed, as a Galera node may say then."""
    cell_db.options = msgspec.structs.replace(cell_db.options, db_retry_interval=0.0)
    lose_next_commit(cell_db, monkeypatch)


@pytest.mark.usefixtures("made", "lost_commit")
def test_a_save_that_is_repeated_writes_all_of_it_again(
    cell_db: Database, served: ObjectService, ctxt: context.RequestContext, made: objects.Instance
) -> None:
    made.vm_state, made.metadata = "active", {"a": "2"}
    made.info_cache.network_info = [{"id": "port"}]
    updates, _ = served.object_action(ctxt, objinst=made, objmethod="save", args=[], kwargs={})
    found = read(cell_db, made.uuid)
    assert (found.vm_state, found.metadata) == ("active", {"a": "2"})
    assert [vif["id"] for vif in found.info_cache.network_info] == ["port"]
    assert updates["obj_what_changed"] == set()
    assert "updated_at" in updates


@pytest.mark.usefixtures("lost_commit")
def test_a_creation_that_is_repeated_creates(
    cell_db: Database, served: ObjectService, ctxt: context.RequestContext
) -> None:
    one = make()
    updates, _ = served.object_action(ctxt, objinst=one, objmethod="create", args=[], kwargs={})
    assert read(cell_db, one.uuid).id == updates["id"]


def test_class_action_answers_in_the_callers_versions(
    served: ObjectService, ctxt: context.RequestContext, made: objects.Instance
) -> None:
    versions = objects.manifest("Instance") | {"Instance": "2.7"}
    answer = served.object_class_action_versions(
        ctxt,
        objname="Instance",
        objmethod="get_by_uuid",
        object_versions=versions,
        args=[made.uuid],
        kwargs={"expected_attrs": ["flavor", "metadata"]},
    )
    assert answer["nova_object.version"] == "2.7"
    assert "compute_id" not in answer["nova_object.data"]


def test_what_may_be_a_little_old_is_read_from_the_replica(
    cell_db: Database, api_db: Database, ctxt: context.RequestContext, tmp_path: pathlib.Path, made: objects.Instance
) -> None:
    copy = tmp_path / "replica.db"
    with contextlib.closing(sqlite3.connect(str(cell_db.url.database))) as file:
        file.execute("VACUUM INTO ?", (str(copy),))
    both = Database(str(cell_db.url), slave_connection=f"sqlite:///{copy}")
    served = ObjectService(types.SimpleNamespace(own=both, api=api_db), configuration.new())  # type: ignore[arg-type]
    both.run(records.instance_update, made.uuid, {"host": "h2"})

    def host(**kwargs: Any) -> Any:
        versions = objects.manifest("Instance")
        answer = served.object_class_action_versions(
            ctxt,
            objname="Instance",
            objmethod="get_by_uuid",
            object_versions=versions,
            args=[made.uuid],
            kwargs={"expected_attrs": [], **kwargs},
        )
        return answer["nova_object.data"]["host"]

    assert host(use_slave=True) is None
    assert host(use_slave=False) == host() == "h2"
    both.dispose()


def test_what_is_not_served_says_so(served: ObjectService, ctxt: context.RequestContext) -> None:
    with pytest.raises(exceptions.ObjectActionError, match="is not served"):
        served.object_class_action_versions(
            ctxt, objname="Quotas", objmethod="usage", object_versions={}, args=[], kwargs={}
        )


def test_a_deleted_instance_is_saved_by_who_reads_deleted_ones(
    cell_db: Database, ctxt: context.RequestContext, made: objects.Instance
) -> None:
    """Nova's hosts note so that they removed the files, and how often they tried."""
    cell_db.run(instance.destroy, ctxt, made)
    everything = context.RequestContext(user_id="u", project_id="p", is_admin=True, read_deleted="yes")
    for attempts in ("1", "2"):
        filters = {"deleted": True, "soft_deleted": False, "cleaned": False}
        [found] = cell_db.query(
            instances.get_by_filters, everything, filters, expected_attrs=["system_metadata"]
        ).objects
        assert found.system_metadata["image_min_disk"] == "1"
        assert found.system_metadata.get("clean_attempts", "0") == str(int(attempts) - 1)
        found.system_metadata = {**found.system_metadata, "clean_attempts": attempts}
        found.cleaned = attempts == "2"
        with pytest.raises(exceptions.InstanceNotFound):
            cell_db.run(instance.save, ctxt, found)
        cell_db.run(instance.save, everything, found)
    assert cell_db.query(instances.get_by_filters, everything, filters).objects == []
