"""One SIGTERM ends every program at every moment, whatever it waits for; who cannot work is not ready."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cmd.cloud import Cloud
from tests.unit.cmd.test_reload import Running

from kilonova.db.migrations import sync

SECONDS = 20
"""Within which a program that was not ready has ended; most of it is for a busy machine."""

PORTS = "osapi_compute_listen_port = 0\nmetadata_listen_port = 0\nosapi_compute_listen = 127.0.0.1\n"
LOGINS = "[placement]\nauth_type = none\n[api]\nauth_strategy = noauth2\n"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    made = Cloud(tmp_path_factory.mktemp("cloud"))
    sync.sync_api(made.api)
    sync.sync_main(made.cell)
    yield made
    made.api.dispose()
    made.cell.dispose()


class Port:
    """One that nobody listens on (`closed`), or one whose listener says nothing (`silent`)."""

    def __init__(self, kind: str) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(60)
        self.number = self.listener.getsockname()[1]
        if kind == "closed":
            self.listener.close()

    def called(self) -> socket.socket:
        """The next connection that is made to the listener: who made it waits for a first word."""
        return self.listener.accept()[0]


@contextlib.contextmanager
def port(kind: str) -> Iterator[Port]:
    made = Port(kind)
    try:
        yield made
    finally:
        made.listener.close()


@contextlib.contextmanager
def running(program: str, folder: Path, base: str) -> Iterator[Running]:
    made = Running(f"kilonova.cmd.{program}", folder, base)
    try:
        yield made
    finally:
        made.kill()


def ends(program: Running) -> int:
    began = time.monotonic()
    program.process.terminate()
    code = program.process.wait(60)
    assert time.monotonic() - began < SECONDS, program.log.read_text()
    return code


@pytest.mark.parametrize(
    ("program", "kind"),
    [("conductor", "silent"), ("scheduler", "closed"), ("compute", "closed"), ("compute", "silent")],
)
def test_while_the_bus_is_away(cloud: Cloud, tmp_path: Path, program: str, kind: str) -> None:
    with port(kind) as away:
        text = cloud.conf.read_text().replace("rabbit://u:secret@h/", f"rabbit://u:secret@127.0.0.1:{away.number}/")
        text = text.replace("[DEFAULT]\n", f"[DEFAULT]\nhost = here\ncompute_driver = fake.FakeDriver\n{PORTS}")
        text += f"[DEFAULT]\ndebug = true\n{LOGINS}"
        with running(program, tmp_path, text) as made:
            made.wait_for(f"the message bus is at 127.0.0.1:{away.number}")
            with away.called() if kind == "silent" else contextlib.nullcontext():
                if kind == "closed":
                    made.wait_for("Connection refused")
                assert not made.said(" ready")
                assert ends(made) in (0, -15)
            assert not made.said("Traceback"), made.log.read_text()


@pytest.mark.parametrize(
    ("program", "kind"), [("api", "silent"), ("metadata", "closed"), ("conductor", "closed"), ("scheduler", "silent")]
)
def test_while_the_database_is_away(cloud: Cloud, tmp_path: Path, program: str, kind: str) -> None:
    with port(kind) as away:
        url = f"mysql+pymysql://u:secret@127.0.0.1:{away.number}/nova"
        text = f"[DEFAULT]\ntransport_url = fake://\n{PORTS}{LOGINS}[database]\nconnection = {url}\n"
        with running(program, tmp_path, text + f"[api_database]\nconnection = {url}\n") as made:
            with away.called() if kind == "silent" else contextlib.nullcontext():
                if kind == "closed":
                    made.wait_for("cannot be used, attempt 1: ")
                assert not made.said(" ready")
                assert ends(made) in (0, -15)
            assert not made.said("Traceback"), made.log.read_text()
            assert not made.said("secret")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:////nowhere/at/all.db", "unable to open database file"),
        ("sqlite:///{folder}/empty.db", "has no table kn_flow: run nova-manage api_db sync"),
        ("oracle+nothing://u:secret@h/nova", "Can't load plugin"),
    ],
)
def test_an_api_with_a_wrong_database_says_so_and_is_not_ready(tmp_path: Path, url: str, says: str) -> None:
    text = f"[DEFAULT]\ntransport_url = fake://\n{PORTS}{LOGINS}[api_database]\nmax_retries = 0\n"
    with running("api", tmp_path, text + f"connection = {url.format(folder=tmp_path)}\n") as made:
        assert made.process.wait(60) == 1
        assert len(made.said("does not start: ")) == 1
        assert made.said("does not start: ")[0].count(says) == 1
        assert not made.said("Traceback"), made.log.read_text()
        assert not made.said(" ready")
        assert not made.said("secret")
