"""nova-status upgrade check: each check passes, and fails for its reason."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import fakes
from tests.contract import facts

from kilonova import conf as configuration
from kilonova.clients.bundle import Clients
from kilonova.cmd import status
from kilonova.cmd.status import Code, Scene
from kilonova.db import query
from kilonova.db.api import cell_mappings, host_mappings
from kilonova.db.cell import instances
from kilonova.db.cell.tables import COMPUTE_NODES, SERVICES
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

ONE = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def services() -> fakes.Cloud:
    return fakes.Cloud()


@pytest.fixture
def scene(tmp_path: Path, services: fakes.Cloud) -> Iterator[Scene]:
    conf = configuration.new()
    conf([], default_config_files=[])
    conf.set_override("connection", f"sqlite:///{tmp_path}/api.db", "api_database")
    conf.set_override("send_service_user_token", True, "service_user")
    cells = Cells(conf)
    sync.sync_api(cells.api)
    for uuid, name in ((CELL0_UUID, "cell0"), (ONE, "one")):
        url = f"sqlite:///{tmp_path}/{name}.db"
        values = {"uuid": uuid, "name": name, "database_connection": url, "transport_url": "none:///"}
        cells.api.run(cell_mappings.cell_mapping_create, values)
        sync.sync_main(Database(url))
    yield Scene(conf, cells, services.clients)
    cells.dispose()


def one(scene: Scene) -> Database:
    return scene.cells.cell(ONE).database


def node(scene: Scene) -> None:
    numbers = dict.fromkeys(
        ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version"), 1
    )
    one(scene).run(query.insert, COMPUTE_NODES, {**numbers, "host": "h", "hypervisor_type": "f", "cpu_info": "{}"})


def test_all_is_well(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    assert status.check(scene) == Code.SUCCESS
    shown = capsys.readouterr().out
    assert shown.count("Result: Success") == 7
    assert len({len(line) for line in shown.splitlines()}) == 1


def test_heaviest_result_is_the_exit_code(scene: Scene) -> None:
    one(scene).run(instances.instance_create, {"project_id": "p"})
    assert status.check(scene) == Code.WARNING
    scene.conf.set_override("send_service_user_token", False, "service_user")
    assert status.check(scene) == Code.FAILURE


def test_hosts_must_be_mapped(scene: Scene) -> None:
    assert status.cells_v2(scene).code is Code.SUCCESS
    node(scene)
    assert status.cells_v2(scene).code is Code.FAILURE
    scene.cells.api.run(host_mappings.host_mapping_create, "h", scene.cells.cell(ONE).id)
    assert status.cells_v2(scene) == status.PASSED


def test_two_cells_are_needed(scene: Scene) -> None:
    scene.cells.api.run(cell_mappings.cell_mapping_delete, ONE)
    scene.cells.refresh()
    assert status.cells_v2(scene).code is Code.FAILURE


@pytest.mark.parametrize(
    ("path", "status_code", "said"),
    [("/$", 503, "does not answer"), ("/resource_providers", 401, "does not answer")],
)
def test_placement_must_answer(scene: Scene, services: fakes.Cloud, path: str, status_code: int, said: str) -> None:
    assert status.placement(scene) == status.PASSED
    services.placement.fail("GET", path, status=status_code, times=99)
    result = status.placement(scene)
    assert result.code is Code.FAILURE
    assert said in str(result.details)


@pytest.mark.parametrize(("newest", "code"), [("1.9", Code.FAILURE), ("1.35", Code.FAILURE), ("1.36", Code.SUCCESS)])
def test_placement_must_be_new_enough(scene: Scene, services: fakes.Cloud, newest: str, code: Code) -> None:
    services.placement.newest = newest
    assert status.placement(scene).code is code


def test_placement_without_credentials(scene: Scene) -> None:
    result = status.placement(dataclasses.replace(scene, clients=Clients.from_conf(scene.conf)))
    assert result.code is Code.FAILURE
    assert "no credentials" in str(result.details)


def test_cinder_is_asked_where_it_is_used(scene: Scene, services: fakes.Cloud) -> None:
    services.cinder.unreachable("GET", "/attachments", times=99)
    assert status.cinder(scene) == status.PASSED
    scene.conf.set_override("auth_type", "password", "cinder")
    assert status.cinder(scene).code is Code.WARNING
    services.cinder.faults.clear()
    assert status.cinder(scene) == status.PASSED
    services.cinder.fail("GET", "/attachments", status=406)
    assert status.cinder(scene).code is Code.FAILURE
    services.cinder.fail("GET", "/attachments", status=403)
    assert status.cinder(scene).code is Code.WARNING


def test_policy_file_must_be_yaml(scene: Scene, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("context_is_admin: role:admin\n")
    assert status.policy_file(scene) == status.PASSED
    scene.conf.set_override("policy_file", str(policy), "oslo_policy")
    assert status.policy_file(scene) == status.PASSED
    policy.write_text('{"context_is_admin": "role:admin"}')
    assert status.policy_file(scene).code is Code.FAILURE


@pytest.mark.parametrize(("version", "code"), [(71, Code.FAILURE), (72, Code.SUCCESS)])
def test_old_computes(scene: Scene, version: int, code: Code) -> None:
    for host, newest in (("a", 74), ("b", version)):
        values = {"host": host, "binary": "nova-compute", "topic": "compute", "version": newest}
        one(scene).run(query.insert, SERVICES, values)
    assert status.old_computes(scene).code is code


def test_machine_types(scene: Scene) -> None:
    values = {"project_id": "p", "system_metadata": {"image_hw_machine_type": "q35"}}
    one(scene).run(instances.instance_create, values)
    assert status.machine_types(scene) == status.PASSED
    one(scene).run(instances.instance_create, {"project_id": "p"})
    assert status.machine_types(scene).code is Code.WARNING


def test_compute_that_is_forced_down_holds_nothing_up(scene: Scene) -> None:
    values = {"host": "a", "binary": "nova-compute", "topic": "compute", "version": 50, "forced_down": True}
    one(scene).run(query.insert, SERVICES, values)
    assert status.old_computes(scene) == status.PASSED


def test_cell_that_is_down_fails_what_asks_it(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    url = "mysql+pymysql://u:p@127.0.0.1:1/n"
    scene.cells.api.run(cell_mappings.cell_mapping_update, ONE, {"database_connection": url})
    scene.conf.set_override("db_max_retries", 0, "database")
    scene.cells.refresh()
    with pytest.raises(status.CellsDownError, match=ONE):
        status.old_computes(scene)
    assert status.check(scene, as_json=True) == Code.FAILURE
    shown = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    assert len(shown) == 7
    assert shown["Older than N-1 computes"]["result"] == "Failure"
    assert ONE in shown["Older than N-1 computes"]["details"]
    assert shown["Service User Token Configuration"] == {
        "check": "Service User Token Configuration", "result": "Success", "details": None,
    }  # fmt: skip


def test_words_for_the_shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("")
    for words, shown in (((), "upgrade\n"), (("upgrade",), "check\n"), (("nonsense",), "")):
        assert status.main(["--config-file", str(conf), "bash-completion", *words]) == 0
        assert capsys.readouterr().out == shown


def test_without_databases_the_program_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[DEFAULT]\n")
    assert status.main(["--config-file", str(conf), "upgrade", "check"]) == status.ERROR
    assert "[api_database] connection is not set" in capsys.readouterr().err


def test_checks_are_novas() -> None:
    contract = facts.load("cli")
    assert list(status.CHECKS) == contract["upgrade_checks"]
    codes = {"SUCCESS": Code.SUCCESS, "WARNING": Code.WARNING, "FAILURE": Code.FAILURE, "ERROR": status.ERROR}
    assert contract["upgrade_check_exit_codes"] == codes
