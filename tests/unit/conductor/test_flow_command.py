"""`kilonova flow`: what operators read and do."""

from __future__ import annotations

import pathlib

import pytest
from tests.unit.conductor.stage import Stage
from tests.unit.conductor.test_build import begin, run

from kilonova.cmd import flow
from kilonova.flow.store import NewFlow, State


@pytest.fixture
def config(stage: Stage, tmp_path: pathlib.Path) -> str:
    path = tmp_path / "nova.conf"
    api, own = stage.conf.api_database.connection, stage.conf.database.connection
    path.write_text(f"[api_database]\nconnection = {api}\n[database]\nconnection = {own}\n")
    return str(path)


def test_show_tells_the_steps(stage: Stage, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    server = begin(stage, stage.post())
    run(stage)
    assert flow.main(["--config-file", config, "show", server]) == 0
    out = capsys.readouterr().out
    assert f"build {server}  done" in out
    assert "request req-1" in out
    for step in ("choose", "record", "commit", "send", "watch"):
        assert step in out
    assert "s3cret" not in out


def test_show_of_what_is_not_known(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert flow.main(["--config-file", config, "show", "nobody"]) == 1
    assert "no flow of nobody" in capsys.readouterr().err


def test_list_and_abandon(stage: Stage, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    new = NewFlow("build", "some-server", {})
    stage.api_store.offer(new)
    assert flow.main(["--config-file", config, "list"]) == 0
    assert "some-server  offered" in capsys.readouterr().out
    assert flow.main(["--config-file", config, "abandon", new.id, "--why", "the host burnt down"]) == 0
    row = stage.api_store.get(new.id)
    assert (row.state, row.reason) == (State.ABANDONED, "the host burnt down")
    assert flow.main(["--config-file", config, "abandon", new.id, "--why", "again"]) == 1


def test_a_flow_that_only_newer_conductors_take_says_so(
    stage: Stage, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.api_store.offer(NewFlow("build", "some-server", {}, version=2))
    assert flow.main(["--config-file", config, "list"]) == 0
    assert "for conductors that know version 2 of it" in capsys.readouterr().out
