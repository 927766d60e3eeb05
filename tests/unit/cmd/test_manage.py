"""nova-manage: what each action does to the databases, and its exit code."""

from __future__ import annotations

import datetime
import json
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.contract import facts
from tests.unit.cmd.cloud import Cloud

from kilonova.base import ids
from kilonova.cmd import manage
from kilonova.db import query
from kilonova.db.api import cell_mappings, instance_mappings
from kilonova.db.cell import archive, compute_nodes, instances
from kilonova.db.cell.tables import INSTANCE_ACTIONS, INSTANCE_ACTIONS_EVENTS, SERVICES, SHARE_MAPPING
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database

MAPPED, UNMAPPED = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

Run = Callable[..., int]


def test_whole_set_up_of_a_new_cloud(empty: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    assert empty.run("api_db", "sync") == 0
    assert empty.run("cell_v2", "map_cell0") == 0
    assert empty.run("db", "sync") == 0
    assert (empty.folder / "cell.db_cell0").exists()
    capsys.readouterr()
    assert empty.run("db", "version") == 0
    assert capsys.readouterr().out.strip() == "ab450ba04102"
    assert empty.run("api_db", "version") == 0
    assert capsys.readouterr().out.strip() == "cdeec0c85668"


def test_sync_without_the_api_database_says_what_to_look_at(empty: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    assert empty.run("db", "sync") == 1
    assert "api_db sync" in capsys.readouterr().out
    assert empty.run("db", "sync", "--local_cell") == 0


def test_sync_to_an_unknown_revision_fails(cloud: Cloud) -> None:
    assert cloud.run("db", "sync", "--local_cell", "nonsense") == 1
    assert cloud.run("db", "sync", "--local_cell", "402") == 1


def test_map_cell0_may_be_repeated(cloud: Cloud) -> None:
    assert cloud.run("cell_v2", "map_cell0") == 0
    assert cloud.run("cell_v2", "map_cell0", "--database_connection", "sqlite:////other.db") == 0
    cell0 = cloud.cells()["cell0"]
    assert cell0["uuid"] == CELL0_UUID
    assert cell0["transport_url"] == "none:///"
    assert cell0["database_connection"].endswith("/cell.db_cell0")


def test_simple_cell_setup_waits_for_hosts_and_may_be_repeated(cloud: Cloud) -> None:
    assert cloud.run("cell_v2", "simple_cell_setup") == 1
    cloud.node("h1")
    server = cloud.cell.run(instances.instance_create, {"project_id": "p", "user_id": "u"})
    assert cloud.run("cell_v2", "simple_cell_setup") == 0
    assert cloud.run("cell_v2", "simple_cell_setup") == 0
    assert len(cloud.cells()) == 2
    assert list(cloud.hosts()) == ["h1"]
    mapping = cloud.api.query(instance_mappings.instance_mapping_get, server["uuid"])
    assert mapping is not None
    assert mapping["cell_uuid"] == cloud.cells()[None]["uuid"]  # type: ignore[index]


def test_create_cell_refuses_urls_of_another_cell(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = cloud.create_cell()
    capsys.readouterr()
    assert cloud.run("cell_v2", "create_cell", "--name", "two", "--transport-url", "rabbit://x/") == 2
    assert uuid in capsys.readouterr().out
    words = ("--transport-url", "rabbit://y/", "--database_connection", "sqlite:////y.db", "--disabled", "--verbose")
    assert cloud.run("cell_v2", "create_cell", "--name", "two", *words) == 0
    assert cloud.cells()["two"]["disabled"]
    assert cloud.cells()["two"]["uuid"] in capsys.readouterr().out


def test_list_cells_hides_passwords(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--transport-url", "rabbit://a:secret@h1,b:secret@h2/", "--database_connection", "mysql://u:secret@h/n")
    cloud.run("cell_v2", "create_cell", "--name", "one", *words)
    capsys.readouterr()
    assert cloud.run("cell_v2", "list_cells") == 0
    shown = capsys.readouterr().out
    assert "secret" not in shown
    assert "rabbit://a:****@h1,b:****@h2/" in shown
    assert cloud.run("cell_v2", "list_cells", "--verbose", "--json") == 0
    (cell,) = json.loads(capsys.readouterr().out)
    assert cell["Database Connection"] == "mysql://u:secret@h/n"
    assert cell["Disabled"] is False


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--name", "new", "--transport-url", "rabbit://z/"), 0),
        (("--disable",), 0),
        (("--disable", "--enable"), 4),
        (("--database_connection", "sqlite:////two.db"), 3),
    ],
)
def test_update_cell(cloud: Cloud, words: tuple[str, ...], code: int) -> None:
    uuid = cloud.create_cell()
    two = ("--name", "two", "--transport-url", "rabbit://t/", "--database_connection", "sqlite:////two.db")
    cloud.run("cell_v2", "create_cell", *two)
    assert cloud.run("cell_v2", "update_cell", "--cell_uuid", uuid, *words) == code
    row = cloud.api.query(cell_mappings.cell_mapping_get, uuid)
    assert row is not None
    if code:
        assert (row["name"], row["disabled"]) == ("one", False)
    elif "--disable" in words:
        assert row["disabled"]
    else:
        assert (row["name"], row["transport_url"]) == ("new", "rabbit://z/")


def test_update_cell_knows_its_limits(cloud: Cloud) -> None:
    cloud.run("cell_v2", "map_cell0", "--database_connection", "sqlite:////cell0.db")
    assert cloud.run("cell_v2", "update_cell", "--cell_uuid", "unknown", "--name", "x") == 1
    assert cloud.run("cell_v2", "update_cell", "--cell_uuid", CELL0_UUID, "--disable") == 5


def test_discover_hosts_maps_new_ones_once(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.create_cell()
    cloud.run("cell_v2", "map_cell0")
    assert cloud.run("cell_v2", "discover_hosts", "--strict") == 1
    cloud.node("h1")
    assert cloud.run("cell_v2", "discover_hosts", "--strict") == 0
    assert cloud.hosts() == {"h1": "one"}
    cloud.node("h2")
    capsys.readouterr()
    assert cloud.run("cell_v2", "discover_hosts", "--verbose") == 0
    assert "1 new hosts: h2" in capsys.readouterr().out
    assert [node["mapped"] for node in cloud.cell.query(compute_nodes.compute_node_list)] == [1, 1]
    assert cloud.run("cell_v2", "discover_hosts", "--strict") == 1


def test_discover_hosts_by_service(cloud: Cloud) -> None:
    cloud.create_cell()
    cloud.cell.run(query.insert, SERVICES, {"host": "h9", "binary": "nova-compute", "topic": "compute"})
    cloud.cell.run(query.insert, SERVICES, {"host": "c", "binary": "nova-conductor", "topic": "conductor"})
    assert cloud.run("cell_v2", "discover_hosts", "--by-service", "--strict") == 0
    assert cloud.hosts() == {"h9": "one"}


def test_list_hosts(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = cloud.create_cell()
    cloud.node("h1")
    cloud.run("cell_v2", "discover_hosts")
    capsys.readouterr()
    assert cloud.run("cell_v2", "list_hosts", "--cell_uuid", uuid, "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"Cell Name": "one", "Cell UUID": uuid, "Hostname": "h1"}]
    assert cloud.run("cell_v2", "list_hosts") == 0
    assert "h1" in capsys.readouterr().out
    assert cloud.run("cell_v2", "list_hosts", "--cell_uuid", "unknown") == 1


def test_delete_host(cloud: Cloud) -> None:
    uuid = cloud.create_cell()
    cloud.node("h1")
    cloud.run("cell_v2", "discover_hosts")
    server = cloud.cell.run(instances.instance_create, {"project_id": "p", "user_id": "u", "host": "h1"})

    def delete(cell: str, host: str) -> int:
        return cloud.run("cell_v2", "delete_host", "--cell_uuid", cell, "--host", host)

    cloud.run("cell_v2", "map_cell0")
    assert delete("unknown", "h1") == 1
    assert delete(uuid, "unknown") == 2
    assert delete(CELL0_UUID, "h1") == 3
    assert delete(uuid, "h1") == 4
    cloud.cell.run(instances.instance_destroy, server["uuid"])
    assert delete(uuid, "h1") == 0
    assert cloud.hosts() == {}
    assert cloud.run("cell_v2", "discover_hosts", "--strict") == 0


def test_delete_cell(cloud: Cloud) -> None:
    uuid = cloud.create_cell()
    cloud.node("h1")
    cloud.run("cell_v2", "discover_hosts")
    server = cloud.cell.run(instances.instance_create, {"project_id": "p", "user_id": "u"})
    cloud.run("cell_v2", "map_instances", "--cell_uuid", uuid)

    def delete(*words: str) -> int:
        return cloud.run("cell_v2", "delete_cell", "--cell_uuid", uuid, *words)

    assert cloud.run("cell_v2", "delete_cell", "--cell_uuid", "unknown") == 1
    assert delete() == 2
    assert delete("--force") == 3
    cloud.run("cell_v2", "delete_host", "--cell_uuid", uuid, "--host", "h1")
    cloud.cell.run(instances.instance_destroy, server["uuid"])
    assert delete() == 4
    assert "one" in cloud.cells()
    assert delete("--force") == 0
    assert cloud.cells() == {}
    assert cloud.api.query(instance_mappings.instance_mapping_get, server["uuid"]) is None


def test_map_instances_goes_on_where_it_stopped(cloud: Cloud) -> None:
    uuid = cloud.create_cell()
    for n in range(5):
        when = datetime.datetime(2026, 1, 1, 0, n)
        values = {"uuid": ids.new_uuid(), "project_id": "p", "user_id": "u", "created_at": when}
        cloud.cell.run(instances.instance_create, values)

    def run(*words: str) -> int:
        return cloud.run("cell_v2", "map_instances", "--cell_uuid", uuid, *words)

    def mapped() -> int:
        return len(cloud.api.query(instance_mappings.instance_mapping_list_by_project, "p"))

    assert run("--max-count", "0") == 127
    assert run("--max-count", "x") == 127
    assert run("--max-count", "2") == 1
    assert mapped() == 2
    assert run("--max-count", "2") == 1
    assert mapped() == 4
    assert run("--max-count", "2") == 0
    assert mapped() == 5
    assert run() == 0
    marker = cloud.api.query(instance_mappings.instance_mapping_list_by_project, "INSTANCE_MIGRATION_MARKER")
    assert marker == []


def test_verify_instance(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = cloud.create_cell()
    cell = cloud.cells()["one"]

    def verify(server: str, *words: str) -> int:
        return cloud.run("cell_v2", "verify_instance", "--uuid", server, *words)

    assert verify(UNMAPPED) == 1
    mapping = {"instance_uuid": MAPPED, "project_id": "p", "user_id": "u", "cell_id": None}
    cloud.api.run(instance_mappings.instance_mapping_create, mapping)
    assert verify(MAPPED) == 2
    cloud.api.run(instance_mappings.instance_mapping_update, MAPPED, {"cell_id": cell["id"]})
    assert verify(MAPPED) == 4
    cloud.cell.run(instances.instance_create, {"uuid": MAPPED, "project_id": "p"})
    capsys.readouterr()
    assert verify(MAPPED, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert verify(MAPPED) == 0
    assert uuid in capsys.readouterr().out
    cloud.cell.run(instances.instance_destroy, MAPPED)
    assert verify(MAPPED) == 3


def test_database_that_does_not_answer_is_one_line(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.conf.write_text("[api_database]\nconnection = mysql+pymysql://u:secret@127.0.0.1:1/n\ndb_max_retries = 0\n")
    assert cloud.run("cell_v2", "list_cells") == 255
    error = capsys.readouterr().err
    assert error.startswith("ERROR: UnreachableError")
    assert "secret" not in error


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        manage.main(["cell_v2"])
    assert refused.value.code == 2
    with pytest.raises(SystemExit) as helped:
        manage.main(["cell_v2", "delete_cell", "--help"])
    assert helped.value.code == 0
    assert "exit codes" in capsys.readouterr().out
    assert manage.main(["version"]) == 0


def test_words_are_novas() -> None:
    contract = facts.load("cli")["nova-manage"]
    ours = {(action.category, action.name): action for action in manage.every_action()}
    for category, declared in contract.items():
        for name, wanted in declared.get("actions", {}).items():
            if wanted.get("unintended"):
                continue
            action = ours[category, name]
            flags = {tuple(one["flags"]) if one["flags"] else (one["dest"],) for one in wanted["args"]}
            assert flags <= {one.flags for one in action.arguments}, (category, name)
            extra = [one for one in action.arguments if one.flags not in flags]
            assert not any(one.settings.get("required") for one in extra), (category, name)
            if "documented_exit_codes" in wanted:
                assert sorted(action.exit_codes) == wanted["documented_exit_codes"], (category, name)


def _deleted_server(cloud: Cloud, cell_id: int | None = None) -> str:
    uuid = ids.new_uuid()
    values = {"uuid": uuid, "project_id": "p", "metadata": {"k": "v"}, "system_metadata": {"s": "t"}, "tags": ["t"]}
    cloud.cell.run(instances.instance_create, values)
    with cloud.cell.write() as tx:
        action = query.insert(tx, INSTANCE_ACTIONS, {"instance_uuid": uuid, "action": "create", "request_id": "r"})
        query.insert(tx, INSTANCE_ACTIONS_EVENTS, {"action_id": action["id"], "event": "e"})
    mapping = {"instance_uuid": uuid, "project_id": "p", "user_id": "u", "cell_id": cell_id}
    cloud.api.run(instance_mappings.instance_mapping_create, mapping)
    cloud.cell.run(instances.instance_destroy, uuid)
    return uuid


def _count(db: Database, table: str) -> int:
    with db.read() as tx:
        return int(tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_archive_moves_deleted_servers_whole(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    gone = _deleted_server(cloud)
    kept = cloud.cell.run(instances.instance_create, {"project_id": "p", "metadata": {"k": "v"}})["uuid"]
    assert cloud.run("db", "archive_deleted_rows", "--verbose") == 1
    shown = capsys.readouterr().out
    assert "API_DB.instance_mappings" in shown
    assert "instance_system_metadata" in shown
    for table in ("instances", "instance_actions", "instance_actions_events", "instance_extra", "instance_metadata"):
        assert _count(cloud.cell, f"shadow_{table}") == 1, table
    assert cloud.cell.query(instances.instance_get, gone, deleted_too=True) is None
    assert cloud.cell.query(instances.instance_get, kept, ("metadata",))["metadata"] == {"k": "v"}  # type: ignore[index]
    assert _count(cloud.cell, "instance_actions") == 0
    assert cloud.api.query(instance_mappings.instance_mapping_get, gone) is None
    assert cloud.run("db", "archive_deleted_rows", "--verbose") == 0
    assert "Nothing was archived" in capsys.readouterr().out


def test_archive_keeps_near_its_limit_and_goes_on(cloud: Cloud) -> None:
    for _ in range(6):
        _deleted_server(cloud)
    assert cloud.run("db", "archive_deleted_rows", "--max_rows", "20") == 1
    assert 1 <= _count(cloud.cell, "shadow_instances") < 6
    assert cloud.run("db", "archive_deleted_rows", "--max_rows", "20", "--until-complete") == 1
    assert _count(cloud.cell, "shadow_instances") == 6
    assert cloud.run("db", "archive_deleted_rows") == 0


def test_archive_by_time(cloud: Cloud) -> None:
    _deleted_server(cloud)
    assert cloud.run("db", "archive_deleted_rows", "--before", "2020-01-01") == 0
    assert cloud.run("db", "archive_deleted_rows", "--before", "Sun Nov 29 20:12:00 UTC 2099") == 1


def test_row_that_others_refer_to_stays_alone(cloud: Cloud) -> None:
    held = _deleted_server(cloud)
    _deleted_server(cloud)
    cloud.cell.run(query.insert, SHARE_MAPPING, {"instance_uuid": held, "share_id": "s"})
    assert cloud.run("db", "archive_deleted_rows", "--until-complete") == 1
    assert _count(cloud.cell, "shadow_instances") == 1
    assert cloud.cell.query(instances.instance_get, held, deleted_too=True) is not None


def test_archive_of_all_cells_names_them(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.create_cell()
    _deleted_server(cloud)
    capsys.readouterr()
    assert cloud.run("db", "archive_deleted_rows", "--all-cells", "--verbose", "--purge") == 1
    assert "one.instances" in capsys.readouterr().out
    assert _count(cloud.cell, "shadow_instances") == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--max_rows", "-1"), 2),
        (("--max_rows", str(2**31)), 2),
        (("--before", "sometime"), 4),
        (("--max_rows", "0"), 0),
        (("--before", "March 1, 2026 12:00"), 0),
    ],
)
def test_archive_refuses_nonsense(cloud: Cloud, words: tuple[str, ...], code: int) -> None:
    assert cloud.run("db", "archive_deleted_rows", *words) == code


def test_archive_needs_the_api_database(cloud: Cloud) -> None:
    cloud.conf.write_text(f"[database]\nconnection = sqlite:///{cloud.folder}/cell.db\n")
    assert cloud.run("db", "archive_deleted_rows") == 3
    assert cloud.run("db", "purge", "--all", "--all-cells") == 4
    assert cloud.run("db", "purge", "--all") == 3


def test_purge(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    assert cloud.run("db", "purge") == 1
    assert cloud.run("db", "purge", "--before", "sometime") == 2
    assert cloud.run("db", "purge", "--all") == 3
    _deleted_server(cloud)
    cloud.run("db", "archive_deleted_rows")
    assert cloud.run("db", "purge", "--before", "2020-01-01") == 3
    capsys.readouterr()
    assert cloud.run("db", "purge", "--all", "--verbose") == 0
    assert "shadow_instances: 1 rows purged" in capsys.readouterr().out
    assert _count(cloud.cell, "shadow_instances") == 0


def test_what_installers_read(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """kolla-ansible, openstack-helm and others look for these words."""
    cloud.run("cell_v2", "map_cell0")
    cloud.run("cell_v2", "map_cell0")
    assert "Cell0 is already setup" in capsys.readouterr().out
    cloud.create_cell()
    assert cloud.run("cell_v2", "create_cell", "--name", "two", "--transport-url", "rabbit://x/") == 2
    assert "already exists" in capsys.readouterr().out
    for word in ("--help", "--version"):
        with pytest.raises(SystemExit):
            manage.main([word])
    shown = capsys.readouterr().out
    _, _, below = shown.partition("Command categories:\n")
    assert re.search(r"[{,]placement[},]", below.splitlines()[0])
    assert int(re.findall(r"(?m)^(\d+)[.]\d+[.]\d+", shown)[-1]) >= 34


def test_empty_revision_is_the_newest(cloud: Cloud) -> None:
    assert cloud.run("db", "sync", "--local_cell", "") == 0


@pytest.mark.parametrize("count", ["0", "-1", "x", "2.0", "\N{SUPERSCRIPT TWO}", str(2**64)])
def test_max_count_has_to_be_a_number(cloud: Cloud, count: str) -> None:
    uuid = cloud.create_cell()
    word = f"--max-count={count}"
    assert cloud.run("db", "online_data_migrations", word) == 127
    assert cloud.run("cell_v2", "map_instances", "--cell_uuid", uuid, word) == 127
    assert cloud.run("placement", "heal_allocations", word) == 127


@pytest.mark.parametrize(
    "text", ["[database", "[api_database]\nmax_pool_size = many\n", "[DEFAULT]\nlog_config_append = /nowhere\n"]
)
def test_configuration_that_cannot_be_read_is_one_line(
    cloud: Cloud, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with cloud.conf.open("a") as file:
        file.write(text)
    assert cloud.run("cell_v2", "list_cells") != 0
    assert capsys.readouterr().err.startswith("ERROR: ")


def test_missing_configuration_file_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert manage.main(["--config-file", "/nowhere/nova.conf", "cell_v2", "list_cells"]) == 1
    assert "/nowhere/nova.conf" in capsys.readouterr().err


def _cell_that_is_down(cloud: Cloud) -> None:
    """Before the other one."""
    words = ("--transport-url", "rabbit://d/", "--database_connection", f"sqlite:///{cloud.folder}/no/such.db")
    assert cloud.run("cell_v2", "create_cell", "--name", "down", *words) == 0
    cloud.create_cell()


def test_archive_passes_over_a_cell_that_is_down(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    _cell_that_is_down(cloud)
    gone = _deleted_server(cloud)
    capsys.readouterr()
    words = ("--all-cells", "--until-complete", "--verbose", "--purge")
    assert cloud.run("db", "archive_deleted_rows", *words) == 255
    shown = capsys.readouterr()
    assert "one.instances" in shown.out
    assert "Cell down" in shown.err
    assert cloud.api.query(instance_mappings.instance_mapping_get, gone) is None
    assert _count(cloud.cell, "shadow_instances") == 0


def test_purge_passes_over_a_cell_that_is_down(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    _cell_that_is_down(cloud)
    _deleted_server(cloud)
    cloud.run("db", "archive_deleted_rows")
    assert cloud.run("db", "purge", "--all", "--all-cells") == 255
    assert "Cell down" in capsys.readouterr().err
    assert _count(cloud.cell, "shadow_instances") == 0


def test_discover_hosts_passes_over_a_cell_that_is_down(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    _cell_that_is_down(cloud)
    cloud.node("h1")
    assert cloud.run("cell_v2", "discover_hosts") == 255
    assert "Cell down" in capsys.readouterr().err
    assert cloud.hosts() == {"h1": "one"}


def _interrupt_batches(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """^C comes so many times in each batch; the batches' sizes."""
    whole, batches = archive.archive, []

    def interrupted(database: Database, *words: Any, **more: Any) -> archive.Archived:
        done = whole(database, *words, **more)
        batches.append(done.total)
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(archive, "archive", interrupted)
    return batches


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Whoever started the tests may have set the signal aside, as shells do for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_archive_ends_its_batch(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = [_deleted_server(cloud) for _ in range(6)]
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        batches = _interrupt_batches(patch, 1)
        words = ("--until-complete", "--max_rows", "20", "--purge", "--verbose")
        assert cloud.run("db", "archive_deleted_rows", *words) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert len(batches) == 1
    assert "instances" in capsys.readouterr().out
    archived = _count(cloud.cell, "shadow_instances")
    assert 0 < archived < 6
    assert len(cloud.api.query(instance_mappings.instance_mapping_list, gone)) == 6 - archived
    assert cloud.run("db", "archive_deleted_rows", "--until-complete") == 1
    assert cloud.api.query(instance_mappings.instance_mapping_list, gone) == []


@pytest.mark.usefixtures("interruptible")
def test_archive_interrupted_twice_ends_at_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _deleted_server(cloud)
    _interrupt_batches(monkeypatch, 2)
    assert cloud.run("db", "archive_deleted_rows", "--until-complete") == 130
    assert "Interrupted" in capsys.readouterr().err


def test_archive_moves_no_server_whose_mapping_stays(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = _deleted_server(cloud)
    with cloud.api.write() as tx:
        tx.exec_driver_sql("DROP TABLE instance_group_member")
    assert cloud.run("db", "archive_deleted_rows") == 3
    assert "does not answer" in capsys.readouterr().out
    assert cloud.api.query(instance_mappings.instance_mapping_get, gone) is not None
    assert _count(cloud.cell, "shadow_instances") == 0


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("at", range(3))
def test_archive_that_is_killed_leaves_no_mapping_of_an_archived_server(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, at: int, moved: bool
) -> None:
    gone = {_deleted_server(cloud) for _ in range(6)}
    whole, times = archive._archive_rows, iter(range(100))

    def killed(database: Database, table: sa.Table, *words: Any) -> None:
        now = table.name == "instances" and next(times) == at
        if moved or not now:
            whole(database, table, *words)
        if now:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(archive, "CHUNK", 2)
        patch.setattr(archive, "_archive_rows", killed)
        with pytest.raises(Killed):
            cloud.run("db", "archive_deleted_rows")
    mapped = {one["instance_uuid"] for one in cloud.api.query(instance_mappings.instance_mapping_list, gone)}
    there = set(cloud.cell.query(instances.instance_uuids, {"deleted": True}))
    assert len(there) == 6 - 2 * (at + moved)
    assert mapped <= there
    assert cloud.run("db", "archive_deleted_rows") == int(bool(there))
    assert cloud.api.query(instance_mappings.instance_mapping_list, gone) == []
    assert _count(cloud.cell, "shadow_instances") == 6


def test_archive_spares_the_mapping_of_a_server_that_lives_in_another_cell(cloud: Cloud) -> None:
    """Its record here was one of two, and went."""
    here, words = cloud.create_cell(), ("--transport-url", "rabbit://o/")
    other = f"sqlite:///{cloud.folder}/other.db"
    assert cloud.run("cell_v2", "create_cell", "--name", "other", *words, "--database_connection", other) == 0
    cells = {each["uuid"]: each["id"] for each in cloud.api.query(cell_mappings.cell_mapping_list)}
    lives = _deleted_server(cloud, next(number for uuid, number in cells.items() if uuid != here))
    gone = _deleted_server(cloud, cells[here])
    assert cloud.run("db", "archive_deleted_rows") == 1
    assert cloud.api.query(instance_mappings.instance_mapping_get, gone) is None
    assert cloud.api.query(instance_mappings.instance_mapping_get, lives) is not None
    assert _count(cloud.cell, "shadow_instances") == 2
