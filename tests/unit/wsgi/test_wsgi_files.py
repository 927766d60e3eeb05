"""An application under a foreign WSGI server: its configuration, and how servers find it."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from kilonova.wsgi import files
from kilonova.wsgi.application import Application, _threads_run


def test_files_of_the_environment(tmp_path: Path) -> None:
    for name in ("a.conf", "nova.conf"):
        (tmp_path / name).touch()
    here = {"OS_NOVA_CONFIG_DIR": f" {tmp_path} "}
    assert files.arguments(here) == [f"--config-file={tmp_path}/nova.conf"]
    some = here | {"OS_NOVA_CONFIG_FILES": "api-paste.ini;a.conf;missing.conf"}
    assert files.arguments(some) == [f"--config-file={tmp_path}/a.conf"]


@pytest.mark.parametrize("name", ["metadata", "osapi_compute"])
def test_servers_find_the_application_in_the_modules_dictionary_and_importing_makes_nothing(name: str) -> None:
    code = (
        f"import sys; from kilonova.wsgi import {name} as module; assert callable(vars(module)['application']);"
        "assert 'sqlalchemy' not in sys.modules and 'falcon' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class Made:
    def __init__(self) -> None:
        self.times = 0
        self.error: BaseException | None = None

    def __call__(self, parts: Any) -> Any:
        self.times += 1
        if self.error is not None:
            raise self.error
        return lambda environ, start_response: [str(self.times).encode()]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    (tmp_path / "nova.conf").write_text("[api_database]\nconnection = sqlite://\n")
    monkeypatch.setenv("OS_NOVA_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr("kilonova.base.log.setup", lambda conf: None)
    return Made()


def ask(application: Application) -> tuple[str, bytes]:
    said: list[str] = []
    body = b"".join(application({}, lambda status, headers: said.append(status)))
    return (said or ["made"])[0], body


def test_it_is_made_once_in_each_process_that_serves(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    application = Application("nova-api", made, tuple)
    assert [ask(application), ask(application)] == [("made", b"1")] * 2
    monkeypatch.setattr(os, "getpid", lambda: -7)
    assert ask(application) == ("made", b"2")


@pytest.mark.parametrize("error", [OSError("no bus"), SystemExit("nova-api: wrong")])
def test_what_cannot_be_made_is_503_and_tried_again(
    made: Made, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    application = Application("nova-api", made, tuple)
    made.error = error
    status, body = ask(application)
    assert status.startswith("503")
    assert b"serviceUnavailable" in body
    assert [record.exc_info for record in caplog.records if "does not start" in record.msg] == [None]
    made.error = None
    assert ask(application) == ("made", b"2")


NOT_MADE = """
from kilonova.contract import exceptions
from kilonova.wsgi.application import Application

def make(parts):
    raise exceptions.InvalidConfiguration("no bus here")

assert b"503" in b"".join(Application("nova-api", make, tuple)({}, lambda *_: None))
"""


def test_what_cannot_be_made_is_said_once_in_its_line(tmp_path: Path) -> None:
    (tmp_path / "nova.conf").write_text(f"[DEFAULT]\nlog_file = {tmp_path}/log\n")
    environment = {**os.environ, "OS_NOVA_CONFIG_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", NOT_MADE], check=True, timeout=60, env=environment)
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if "no bus here" in line]
    assert len(lines) == 1
    assert lines[0].endswith("nova-api does not start: no bus here")


def test_a_wrong_configuration_ends_the_server_that_loads_it(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_database() -> Any:
        from kilonova.cmd import checks

        return (checks.cell_database,)

    application = Application("nova-api", made, no_database)
    application.check()
    monkeypatch.setitem(sys.modules, "gunicorn", types.ModuleType("gunicorn"))
    with pytest.raises(SystemExit) as ended:
        application.check()
    assert ended.value.code == 4
    assert "nova-api: [database] connection is not set" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "run"), [({b"http": b"x"}, False), ({b"enable-threads": True}, True)])
def test_uwsgi_has_to_run_threads(options: Any, run: bool) -> None:
    assert _threads_run(types.SimpleNamespace(opt=options)) is run
    assert _threads_run(None)
