"""[kilonova] strict_hosts: broad lives out of other files once more, in which no host is refused anything."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterator

import pytest
from tests.ops import control_plane
from tests.ops.control_plane import ControlPlane
from tests.ops.test_build import (
    test_a_host_that_fails_is_replaced_by_an_alternate,
    test_a_host_that_stays_away_while_it_builds,
    test_all_hosts_fail,
    test_several_at_once,
)
from tests.ops.test_delete import (
    test_at_random_moments_of_builds,
    test_repair_loops_find_nothing_to_do_after_a_quiet_life,
    test_the_host_is_down_and_comes_back,
    test_twice_at_once,
)
from tests.ops.test_life import test_created_seen_stopped_started_rebooted_deleted
from tests.ops.test_recipes import (
    test_b115_a_second_try_keeps_the_attachment,
    test_d9_parallel_creates_keep_the_policy_and_all_live,
)
from tests.ops.test_repair import test_a_deletion_without_a_flow, test_a_lost_cast_is_sent_again

from kilonova.conductor.objects import strict

__all__ = [
    "test_a_deletion_without_a_flow",
    "test_a_host_that_fails_is_replaced_by_an_alternate",
    "test_a_host_that_stays_away_while_it_builds",
    "test_a_lost_cast_is_sent_again",
    "test_all_hosts_fail",
    "test_at_random_moments_of_builds",
    "test_b115_a_second_try_keeps_the_attachment",
    "test_created_seen_stopped_started_rebooted_deleted",
    "test_d9_parallel_creates_keep_the_policy_and_all_live",
    "test_repair_loops_find_nothing_to_do_after_a_quiet_life",
    "test_several_at_once",
    "test_the_host_is_down_and_comes_back",
    "test_twice_at_once",
]


class _Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(record.getMessage())


@pytest.fixture
def cloud(
    tmp_path: pathlib.Path, templates: pathlib.Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ControlPlane]:
    """In strict mode from its first moment until after its last."""
    told = _Told()
    strict.LOG.addHandler(told)
    monkeypatch.setitem(control_plane.QUICK, "strict_hosts", True)
    marker = request.node.get_closest_marker("hosts")
    made = ControlPlane(tmp_path, templates, marker.args if marker else ("h1", "h2"))
    yield made
    made.close()
    strict.LOG.removeHandler(told)
    assert told.words == []


def test_a_host_is_started_anew_and_looks_at_itself(cloud: ControlPlane) -> None:
    server = cloud.active("one")
    host = server["OS-EXT-SRV-ATTR:host"]
    cloud.stop_host(host)
    cloud.start_host(host)
    service = cloud.hosts[host]
    service._audit()
    for loop in service._loops:
        loop.run()
    service._heartbeat.beat(cloud.context().elevated())
    assert cloud.guests() == {server["id"]: host}
    cloud.act(server["id"], "os-stop")
    cloud.until_status(server["id"], "SHUTOFF")
    assert {name: timer["error"] for name, timer in service.status()["timers"].items() if timer["error"]} == {}
