"""nova-policy policy check: whose rules pass, on what, and what is said otherwise."""

from __future__ import annotations

import json

import pytest
from tests.unit.cmd.placed import NOWHERE, Placed

from kilonova.cmd import policy
from kilonova.contract import policies


class Asker:
    """nova-policy of a user in the environment."""

    def __init__(self, placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
        self.placed = placed
        self._env = monkeypatch
        self.be("member,reader")

    def be(self, roles: str, user: str = "u", project: str = "p") -> None:
        for name, value in (("OS_ROLES", roles), ("OS_USER_ID", user), ("OS_TENANT_ID", project)):
            self._env.setenv(name, value)

    def run(self, *words: str) -> int:
        return policy.main(["--config-file", str(self.placed.cloud.conf), *words])


@pytest.fixture
def asker(placed: Placed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asker:
    capsys.readouterr()
    return Asker(placed, monkeypatch)


def test_admins_pass_where_members_do_not(asker: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    assert asker.run("policy", "check") == 0
    of_members = capsys.readouterr().out.split()
    asker.be("admin,manager,member,reader")
    assert asker.run("policy", "check") == 0
    of_admins = capsys.readouterr().out.split()
    assert "os_compute_api:servers:create" in of_members
    assert "os_compute_api:os-services:list" not in of_members
    assert "os_compute_api:os-services:list" in of_admins
    assert set(of_members) < set(of_admins) <= {rule.name for rule in policies.RULES}


def test_part_of_a_name(asker: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    assert asker.run("policy", "check", "--api-name", "servers:delete") == 0
    assert capsys.readouterr().out == "os_compute_api:servers:delete\n"
    assert asker.run("policy", "check", "--api-name", "servers:delete", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"rule": "os_compute_api:servers:delete"}]
    assert asker.run("policy", "check", "--api-name", "nothing") == 1
    assert capsys.readouterr().out == "No rule of that name passes.\n"


def test_command_line_comes_before_the_environment(asker: Asker) -> None:
    words = ("policy", "check", "--api-name", "os-services:list")
    assert asker.run(*words) == 1
    assert asker.run("--os-roles", "admin", "--os-user-id", "x", "--os-tenant-id", "y", *words) == 0


def test_policy_file_counts(asker: Asker) -> None:
    conf = asker.placed.cloud.conf
    conf.with_name("policy.yaml").write_text('"os_compute_api:os-services:list": "role:member"\n')
    with conf.open("a") as file:
        file.write(f"[oslo_policy]\npolicy_file = {conf.with_name('policy.yaml')}\n")
    assert asker.run("policy", "check", "--api-name", "os-services:list") == 0


@pytest.mark.parametrize(("target", "code"), [(("project_id=p",), 0), (("project_id=other", "user_id=u"), 1)])
def test_target(asker: Asker, target: tuple[str, ...], code: int) -> None:
    assert asker.run("policy", "check", "--api-name", "servers:delete", "--target", *target) == code


def test_server_stands_for_its_owner(asker: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    server = asker.placed.server(None)
    words = ("policy", "check", "--api-name", "servers:delete", "--target")
    assert asker.run(*words, "project_id=other", f"instance_id={server}") == 0
    asker.be("member,reader", project="other")
    assert asker.run(*words, f"instance_id={server}") == 1
    assert asker.run(*words, f"instance_id={NOWHERE}") == 1
    assert f"no server {NOWHERE}" in capsys.readouterr().out


def test_without_the_api_database_its_own_cell_is_asked(asker: Asker) -> None:
    server = asker.placed.server(None)
    conf = asker.placed.cloud.conf
    conf.write_text(conf.read_text().partition("[api_database]")[0])
    words = ("policy", "check", "--api-name", "servers:delete", "--target", f"instance_id={server}")
    assert asker.run(*words) == 0


@pytest.mark.parametrize("target", ["colour=red", "project_id"])
def test_target_that_nobody_knows(asker: Asker, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert asker.run("policy", "check", "--target", target) == 1
    assert target in capsys.readouterr().out


def test_words_for_the_shell_and_the_version(asker: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown in (((), "policy\n"), (("policy",), "check\n"), (("nonsense",), "")):
        assert asker.run("bash-completion", *words) == 0
        assert capsys.readouterr().out == shown
    assert asker.run("version") == 0
