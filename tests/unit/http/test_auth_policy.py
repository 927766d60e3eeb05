"""Remembered tokens and policy decisions: how long, and what makes them forgotten."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from oslo_config import cfg

from kilonova.cmd import one_line
from kilonova.contract import exceptions, policies
from kilonova.contract.context import RequestContext
from kilonova.wire.http.auth import TokenCache
from kilonova.wire.http.faults import Fault
from kilonova.wire.http.policy import Enforcer

STOP = "os_compute_api:servers:stop"
MINE = {"project_id": "p"}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def caller(*roles: str, **more: Any) -> RequestContext:
    return RequestContext(**{"user_id": "u", "project_id": "p", "roles": list(roles), "overwrite": False, **more})


@pytest.fixture
def policy_file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "policy.yaml"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def enforcer(policy_file: pathlib.Path, clock: Clock) -> Enforcer:
    file = policy_file.with_name("nova.conf")
    file.write_text(f"[oslo_policy]\npolicy_file = {policy_file}\n")
    conf = cfg.ConfigOpts()
    conf([], project="nova", default_config_files=[str(file)], default_config_dirs=[])
    return Enforcer(conf, policies.RULES, clock)


def test_roles_and_projects_decide(enforcer: Enforcer) -> None:
    assert enforcer.allows(STOP, MINE, caller("member"))
    assert not enforcer.allows(STOP, MINE, caller("reader"))
    assert not enforcer.allows(STOP, MINE, caller("member", project_id="other"))
    assert enforcer.allows(STOP, MINE, caller("admin", project_id="other"))
    with pytest.raises(Fault) as refused:
        enforcer.authorize(STOP, MINE, caller("reader"))
    assert (refused.value.code, STOP in refused.value.message) == (403, True)


def test_a_token_of_another_scope_is_refused(enforcer: Enforcer) -> None:
    assert not enforcer.allows(STOP, MINE, caller("admin", system_scope="all", project_id=None))


def test_a_changed_policy_file_is_obeyed_within_a_second(
    enforcer: Enforcer, policy_file: pathlib.Path, clock: Clock
) -> None:
    assert enforcer.allows(STOP, MINE, caller("member"))
    policy_file.write_text(f'"{STOP}": "role:boss"\n')
    assert enforcer.allows(STOP, MINE, caller("member"))
    clock.now += 1.5
    assert not enforcer.allows(STOP, MINE, caller("member"))
    assert enforcer.allows(STOP, MINE, caller("boss"))


BROKEN = [f'"{STOP}": "role:\n  - [', "- a\n- b\n", "just words"]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_policy_file_is_said_in_one_line_at_the_start(
    enforcer: Enforcer, policy_file: pathlib.Path, text: str
) -> None:
    policy_file.write_text(text)
    with pytest.raises(exceptions.InvalidConfiguration) as raised:
        enforcer.load()
    line = one_line.explained(raised.value)
    assert line is not None
    assert line.startswith(f"[oslo_policy] {policy_file}: ")
    assert line == str(raised.value)


@pytest.mark.parametrize("text", BROKEN)
def test_a_policy_file_that_breaks_later_changes_nothing_and_is_said_once(
    enforcer: Enforcer, policy_file: pathlib.Path, clock: Clock, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy_file.write_text(f'"{STOP}": "role:boss"\n')
    assert enforcer.allows(STOP, MINE, caller("boss"))
    policy_file.write_text(text)
    for _ in range(3):
        clock.now += 1.5
        assert enforcer.allows(STOP, MINE, caller("boss"))
        assert not enforcer.allows(STOP, MINE, caller("member"))
    assert len([record for record in caplog.records if "stays as it was" in record.msg]) == 1
    policy_file.write_text(f'"{STOP}": "role:member or role:boss or role:other"\n')
    clock.now += 1.5
    assert enforcer.allows(STOP, MINE, caller("member"))


def test_is_admin_of_older_policy_files(enforcer: Enforcer, policy_file: pathlib.Path) -> None:
    policy_file.write_text(f'"{STOP}": "is_admin:True"\n')
    assert not enforcer.allows(STOP, MINE, caller("member"))
    assert enforcer.allows(STOP, MINE, caller("member", is_admin=True))


def test_tokens_are_kept_for_their_time_only(clock: Clock) -> None:
    cache = TokenCache(60, clock)
    cache.put("t", {"token": 1})
    assert cache.get("t") == {"token": 1}
    clock.now += 61
    assert cache.get("t") is None
    assert cache.get("other") is None
