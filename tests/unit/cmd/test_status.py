"""nova-status upgrade check: each check passes, and fails for its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kilonova import conf as configuration
from kilonova.clients.http import ServiceUnavailable
from kilonova.cmd import status
from kilonova.cmd.status import Code, Scene
from kilonova.db import query
from kilonova.db.api import cell_mappings, host_mappings
from kilonova.db.cell import instances
from kilonova.db.cell.tables import COMPUTE_NODES, SERVICES
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

CONTRACT = Path(__file__).parents[4] / "shared" / "contract" / "cli.json"
ONE = "11111111-1111-4111-8111-111111111111"


class Service:
    """Answers every call, or fails every call."""

    error: Exception | None = None

    def __getattr__(self, _name: str) -> Any:
        def call(*_args: Any, **_more: Any) -> None:
            if self.error is not None:
                raise self.error

        return call


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
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
    clients: Any = SimpleNamespace(placement=Service(), cinder=Service())
    yield Scene(conf, cells, clients)
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


@pytest.mark.parametrize(("name", "code"), [("placement", Code.FAILURE), ("cinder", Code.WARNING)])
def test_services_must_answer(scene: Scene, name: str, code: Code) -> None:
    scene.conf.set_override("auth_type", "password", "cinder")
    assert getattr(status, name)(scene) == status.PASSED
    getattr(scene.clients, name).error = ServiceUnavailable(name, "no route")
    result = getattr(status, name)(scene)
    assert result.code is code
    assert "no route" in result.details


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


def test_cell_that_is_down_is_an_error(scene: Scene) -> None:
    url = "mysql+pymysql://u:p@127.0.0.1:1/n"
    scene.cells.api.run(cell_mappings.cell_mapping_update, ONE, {"database_connection": url})
    scene.conf.set_override("db_max_retries", 0, "database")
    scene.cells.refresh()
    with pytest.raises(status.CellsDownError, match=ONE):
        status.old_computes(scene)


def test_without_databases_the_program_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[DEFAULT]\n")
    assert status.main(["--config-file", str(conf), "upgrade", "check"]) == status.ERROR
    assert "[api_database] connection is not set" in capsys.readouterr().err


@pytest.mark.skipif(not CONTRACT.exists(), reason="the contract is not beside the work tree")
def test_checks_are_novas() -> None:
    contract = json.loads(CONTRACT.read_text())
    assert list(status.CHECKS) == contract["upgrade_checks"]
    codes = {"SUCCESS": Code.SUCCESS, "WARNING": Code.WARNING, "FAILURE": Code.FAILURE, "ERROR": status.ERROR}
    assert contract["upgrade_check_exit_codes"] == codes
