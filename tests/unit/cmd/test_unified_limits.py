"""nova-manage limits migrate_to_unified_limits: what is in Keystone afterwards, and the exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.keystone import FakeKeystone
from tests.interop.fake_over_http import served
from tests.unit.cmd.placed import Placed, flavor

from kilonova import conf as configuration
from kilonova.clients.bundle import operators_keystone
from kilonova.cmd.manage import limits
from kilonova.contract import context
from kilonova.db.api import flavors, quotas

NOVA = "nova-service-id"
DEFAULTS = {
    "servers": 10, "class:VCPU": 20, "class:PCPU": 20, "class:MEMORY_MB": 51200, "server_metadata_items": 128,
    "server_injected_files": 5, "server_injected_file_content_bytes": 10240, "server_injected_file_path_bytes": 255,
    "server_key_pairs": 100, "server_groups": 10, "server_group_members": 10,
}  # fmt: skip


class Bank:
    """nova-manage with a Keystone in memory, in which DISK_GB has a limit."""

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.keystone = placed.services.keystone
        self.register("class:DISK_GB", 1000)

    def run(self, *words: str) -> int:
        return self.placed.run("limits", "migrate_to_unified_limits", *words)

    def register(self, name: str, limit: int, region: str | None = None) -> None:
        new = {"service_id": NOVA, "region_id": region, "resource_name": name, "default_limit": limit}
        self.keystone.limits.append(new)

    def registered(self, region: str | None = None) -> dict[str, int]:
        return {
            each["resource_name"]: each["default_limit"]
            for each in self.keystone.limits
            if each["service_id"] == NOVA
            and each.get("region_id") == region
            and each["resource_name"] != "class:DISK_GB"
        }

    def of_project(self) -> dict[str, int]:
        return {each["resource_name"]: each["resource_limit"] for each in self.keystone.project_limits}


@pytest.fixture
def bank(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> Bank:
    monkeypatch.setattr(limits, "operators_keystone", lambda _conf: placed.services.clients.keystone)
    return Bank(placed)


def new_flavor(bank: Bank, **specs: str) -> None:
    values = {"name": "f", "flavorid": "f", "vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    extra = {name.replace("__", ":"): value for name, value in specs.items()}
    bank.placed.cloud.api.run(flavors.flavor_create, {**values, "is_public": True, "disabled": False}, extra)


def test_defaults_of_the_configuration(bank: Bank) -> None:
    assert bank.run() == 0
    assert bank.registered() == DEFAULTS


def test_default_class_comes_before_the_configuration(bank: Bank) -> None:
    with bank.placed.cloud.conf.open("a") as file:
        file.write("[quota]\ncores = 8\nram = -1\n")
    for name, limit in (("instances", 3), ("cores", 5), ("fixed_ips", 9)):
        bank.placed.cloud.api.run(quotas.quota_class_set, "default", name, limit)
    assert bank.run() == 0
    changed = {"servers": 3, "class:VCPU": 5, "class:PCPU": 5, "class:MEMORY_MB": -1}
    assert bank.registered() == {**DEFAULTS, **changed}


def test_what_is_registered_stays(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.register("servers", 77)
    bank.keystone.limits.append({"service_id": "other", "resource_name": "server_groups", "default_limit": 1})
    assert bank.run("--verbose") == 0
    assert bank.registered() == {**DEFAULTS, "servers": 77}
    assert "servers = 77 already" in capsys.readouterr().out


def test_region(bank: Bank) -> None:
    bank.register("class:DISK_GB", 5, "east")
    assert bank.run("--region-id", "east") == 0
    assert bank.registered("east") == DEFAULTS
    assert bank.registered() == {}


def test_limits_of_a_project(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    api = bank.placed.cloud.api
    for name, limit in (("instances", 1), ("cores", 4), ("security_groups", 9)):
        api.run(quotas.quota_set, "p", name, limit)
    api.run(quotas.quota_set, "p", "ram", 5, "user")
    assert bank.run("--project-id", "p") == 0
    assert bank.of_project() == {"servers": 1, "class:VCPU": 4, "class:PCPU": 4}
    assert {each["project_id"] for each in bank.keystone.project_limits} == {"p"}
    assert "Limits of single users stay behind, Keystone has none: user." in capsys.readouterr().out
    assert bank.run("--project-id", "p") == 0
    assert len(bank.keystone.project_limits) == 3


def test_dry_run_writes_nothing(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.placed.cloud.api.run(quotas.quota_set, "p", "cores", 4)
    new_flavor(bank)
    assert bank.run("--dry-run", "--verbose", "--project-id", "p") == 3
    assert bank.registered() == {}
    assert bank.of_project() == {}
    shown = capsys.readouterr().out
    assert "[dry-run] default limit servers = 10" in shown
    assert "[dry-run] project limit class:PCPU = 4" in shown


def test_classes_of_flavors_without_a_limit(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    new_flavor(bank, resources__CUSTOM_GOLD="1", resources_FPGA__CUSTOM_FPGA="2", resources__MEMORY_MB="0")
    capsys.readouterr()
    assert bank.run("--json") == 3
    shown = json.loads(capsys.readouterr().out)
    missing = [{"Resource": f"class:{name}", "Registered Limit": "missing"} for name in ("CUSTOM_FPGA", "CUSTOM_GOLD")]
    assert shown == missing
    bank.register("class:CUSTOM_GOLD", 1)
    bank.register("class:CUSTOM_FPGA", 1)
    assert bank.run() == 0


def test_classes_of_flavors_kept_with_servers(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.placed.host("h")
    for _ in range(3):
        bank.placed.server("h", kept=flavor(extra_specs={"resources:CUSTOM_OLD": "1"}))
    assert bank.run("--no-embedded-flavor-scan") == 0
    assert bank.run("--project-id", "another") == 0
    capsys.readouterr()
    assert bank.run("--project-id", "p") == 3
    shown = capsys.readouterr().out
    assert "class:CUSTOM_OLD" in shown
    assert "class:VCPU" not in shown
    assert bank.run("--verbose") == 3
    assert "class:VCPU" in capsys.readouterr().out


def test_flavor_that_contradicts_itself_is_passed_over(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    new_flavor(bank, hw__cpu_policy="mixed", hw__cpu_dedicated_mask="nonsense")
    assert bank.run() == 0
    assert "Flavor f is passed over" in capsys.readouterr().out


def test_cell_that_is_down_is_named(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    lost = bank.placed.lose_cell()
    assert bank.run() == 0
    assert f"were not looked at: {lost}" in capsys.readouterr().out


def test_quiet_prints_nothing(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    new_flavor(bank, resources__CUSTOM_GOLD="1")
    capsys.readouterr()
    assert bank.run("--quiet") == 3
    assert capsys.readouterr() == ("", "")
    assert bank.run("--quiet", "--verbose") == 1


@pytest.mark.parametrize(("method", "path"), [("GET", "/v3/services"), ("GET", "/v3/registered_limits")])
def test_keystone_that_is_down(bank: Bank, method: str, path: str) -> None:
    bank.keystone.fail(method, path, status=503, times=99)
    assert bank.run() == 1


def test_limit_that_keystone_refuses(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are registered; what is missing is not looked for."""
    bank.keystone.fail("POST", "/v3/registered_limits", status=403, times=1)
    assert bank.run() == 1
    assert len(bank.registered()) == len(DEFAULTS) - 1
    assert "does not take the default limit" in capsys.readouterr().err


def test_limit_that_somebody_registers_meanwhile(bank: Bank) -> None:
    bank.keystone.fail("POST", "/v3/registered_limits", status=409, times=1)
    assert bank.run() == 0


def test_keystone_without_the_service(bank: Bank) -> None:
    bank.keystone.services.clear()
    assert bank.run() == 1


def test_database_that_is_not_there(bank: Bank, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    conf = bank.placed.cloud.conf
    conf.write_text(
        "[api_database]\nconnection = mysql+pymysql://u:p@127.0.0.1:1/n\nmax_retries = 0\ndb_max_retries = 0\n"
    )
    assert bank.run() == 2
    assert "cannot be reached" in capsys.readouterr().out
    conf.write_text("[DEFAULT]\n")
    assert bank.run() == 2


def test_credentials_are_those_that_validate_tokens(tmp_path: Any) -> None:
    keystone = FakeKeystone()
    with served(keystone) as url:
        file = tmp_path / "nova.conf"
        file.write_text(f"[keystone_authtoken]\nauth_type = none\n[keystone]\nendpoint_override = {url}\n")
        conf = configuration.load(["--config-file", str(file)], "nova-manage")
        assert operators_keystone(conf).service_id(context.admin(), "nova") == NOVA
