"""SIGHUP to services that run: what may change does, of the rest they say so, and they go on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cmd.cloud import Cloud

from kilonova import conf as configuration
from kilonova.cmd import assembly
from kilonova.db.cell import services
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.wire.rpc import versions

PATIENCE = 90.0
OLD = 66
"""Service version of nova-compute some releases ago, which knows less of the interface."""


class Running:
    """A service in a process of its own, started with the lines of `base`; its log is read while it runs."""

    def __init__(self, module: str, folder: Path, base: str) -> None:
        self.file, self.log = folder / "service.conf", folder / "service.log"
        self.base = f"{base}[DEFAULT]\nlog_file = {self.log}\nstate_path = {folder}\n"
        self.write()
        words = [sys.executable, "-m", module, "--config-file", str(self.file)]
        self.process = subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL)

    def write(self, more: str = "") -> None:
        self.file.write_text(self.base + more)

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def said(self, text: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if text in line]

    def wait_for(self, text: str, times: int = 1) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.said(text)) < times:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, f"{text!r} is not in: {self.log.read_text()}"
            time.sleep(0.05)

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(params=["conductor", "api"])
def service(request: pytest.FixtureRequest, cloud: Cloud, tmp_path: Path) -> Iterator[Running]:
    cloud.create_cell()
    base = (
        f"{cloud.conf.read_text()}[DEFAULT]\ntransport_url = fake://\nhost = here\n"
        "osapi_compute_listen = 127.0.0.1\nosapi_compute_listen_port = 0\n"
        "metadata_listen = 127.0.0.1\nmetadata_listen_port = 0\n[api]\nauth_strategy = noauth2\n"
        "[placement]\nauth_type = none\n"
    )
    made = Running(f"kilonova.cmd.{request.param}", tmp_path, base)
    try:
        made.wait_for("ready")
        yield made
    finally:
        made.kill()


def test_service_that_is_told_of_new_files(service: Running) -> None:
    assert not service.said(" DEBUG ")  # as every line with values is
    service.write("[DEFAULT]\ndebug = true\nreport_interval = 7\nreport_intervall = 7\n")
    service.hang_up()
    service.wait_for("configuration read again; changed: DEFAULT.debug")
    service.wait_for("DEFAULT.report_intervall (service.conf) is no option; did you mean DEFAULT.report_interval?")
    assert service.said("immutable option DEFAULT.report_interval")
    service.wait_for("report_interval                = 10")
    assert not service.said("u:secret")

    service.write("[DEFAULT\n")
    service.hang_up()
    service.wait_for("the configuration cannot be read; it stays as it is")

    service.write()
    service.hang_up()
    service.wait_for("configuration read again", times=2)
    assert service.end() == 0


def test_what_is_asked_once_is_asked_again(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.create_cell()
    values = {"binary": "nova-compute", "topic": "compute", "report_count": 0, "disabled": False}
    cloud.cell.run(services.service_create, {**values, "host": "new", "version": 74})
    parts = assembly.Parts(configuration.load(["--config-file", str(cloud.conf)]))
    newest = parts.compute_cap()
    assert len(parts.cells.all()) == 1

    cloud.cell.run(services.service_create, {**values, "host": "old", "version": OLD})
    words = ("--transport-url", "rabbit://y/", "--database_connection", f"sqlite:///{cloud.folder}/other.db")
    assert cloud.run("cell_v2", "create_cell", "--name", "other", *words) == 0
    sync.sync_main(Database(f"sqlite:///{cloud.folder}/other.db"))
    assert (parts.compute_cap(), len(parts.cells.all())) == (newest, 1)

    parts.reload()
    assert len(parts.cells.all()) == 2
    assert parts.compute_cap() == versions.version_of(OLD) != newest
    parts.close()
