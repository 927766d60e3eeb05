"""Whose log line is it? Every line about a server is of who asked for that server, and a refusal is one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.ops.control_plane import ControlPlane

from kilonova.base import present
from kilonova.wire.rpc.clients import ComputeTaskClient

OPERATOR = "admin"
"""Whose requests the helpers make that look at servers."""


class Watch(logging.Handler):
    """What is said, and for whom the thread works that says it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, Any, logging.LogRecord]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("kilonova"):
            self.lines.append((record.getMessage(), present.current(), record))

    def about(self, server: str) -> list[tuple[str, Any, logging.LogRecord]]:
        return [line for line in self.lines if server in line[0]]


@pytest.fixture
def watch(caplog: pytest.LogCaptureFixture) -> Iterator[Watch]:
    caplog.set_level(logging.INFO)
    made = Watch()
    logging.getLogger().addHandler(made)
    yield made
    logging.getLogger().removeHandler(made)


def request_of(cloud: ControlPlane, server: str) -> str:
    (create,) = [one for one in cloud.actions(server) if one["action"] == "create"]
    return str(create["request_id"])


@pytest.mark.parametrize("lost", [False, True], ids=["cast", "cast is lost"])
def test_a_failed_build_is_logged_under_its_own_request(
    cloud: ControlPlane, watch: Watch, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after it the same threads build servers of somebody else; a flow whose cast is lost is found later."""
    if lost:
        monkeypatch.setattr(ComputeTaskClient, "schedule_and_build_instances", lambda *_, **__: None, raising=False)
    owners: dict[str, str] = {}
    huge = cloud.make_flavor("huge", root_gb=10**6)
    for number in range(3):
        good = cloud.create(f"good{number}", user="joe")["id"]
        bad = cloud.create(f"bad{number}", user="sue", flavorRef=huge)["id"]
        owners |= {good: "joe", bad: "sue"}
        cloud.until_status(good, "ACTIVE")
        cloud.until_status(bad, "ERROR")
    for server, owner in owners.items():
        lines = watch.about(server)
        assert {context.user_id for _, context, _ in lines if context} <= {owner, OPERATOR}
        of_build = {context.request_id for _, context, _ in lines if context and context.user_id == owner}
        assert request_of(cloud, server) in of_build, lines
        if owner == "sue":
            told = [(context, record) for text, context, record in lines if "No valid host" in text]
            assert told
            assert {context and context.request_id for context, _ in told} == {request_of(cloud, server)}
            assert not [record for _, record in told if record.exc_info]


def test_an_anonymous_get_is_nobodys(cloud: ControlPlane, watch: Watch) -> None:
    server = cloud.active()["id"]
    watch.lines.clear()
    for _ in range(3):
        assert cloud.request("GET", f"/servers/{server}").status_code == 200
        assert cloud.http.simulate_get(f"/v2.1/servers/{server}").status_code == 401
    access = [(context, text) for text, context, record in watch.lines if record.name == "kilonova.http.access"]
    assert [context.user_id for context, _ in access] == ["joe", None] * 3
    assert len({context.request_id for context, _ in access}) == 6
    assert all("status: 401" in text for context, text in access if context.user_id is None)


def test_what_a_quota_refuses_is_one_line(cloud: ControlPlane, watch: Watch) -> None:
    limit = {"quota_set": {"instances": 0}}
    cloud.request("PUT", "/os-quota-sets/6f70656e737461636b20342065766572", limit, user="admin", status=200)
    watch.lines.clear()
    cloud.create(status=403)
    assert not [text for text, _, record in watch.lines if record.exc_info]
    assert len([text for text, *_ in watch.lines]) == 1
