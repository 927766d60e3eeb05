"""A process starts its services in order, and ends them in reverse within the time that is configured."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from kilonova import conf as configuration
from kilonova.base import shutdown
from kilonova.cmd import checks, process
from kilonova.conf import values
from kilonova.contract import exceptions


class Asked:
    """A service that takes `seconds` to stop."""

    def __init__(self, said: list[tuple[str, float]], name: str, seconds: float = 0.0) -> None:
        self.said, self.name, self.seconds = said, name, seconds

    def start(self) -> None:
        self.said.append((self.name, 0.0))

    def stop(self, timeout: float) -> None:
        self.said.append((self.name, timeout))
        time.sleep(self.seconds)


class Signalled(Asked):
    """The last to start: somebody asks the process to end."""

    def start(self) -> None:
        super().start()
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("for_work", "most"), [(25, 25), (100, 30)])
def test_services_have_the_configured_time_to_end(for_work: int, most: int) -> None:
    conf = configuration.load([])
    conf.set_override("graceful_shutdown_timeout", 40)
    conf.set_override("manager_shutdown_timeout", for_work)
    said: list[tuple[str, float]] = []
    closed: list[bool] = []
    services = [Asked(said, "first"), Signalled(said, "last", seconds=0.2)]
    assert process.run(conf, lambda: services, [lambda: closed.append(True)]) == 0
    assert [name for name, _ in said] == ["first", "last", "last", "first"]
    of_last, of_first = (left for _, left in said[2:])
    assert most - 5 < of_last <= most
    assert of_first <= of_last - 0.2
    assert closed == [True]


@pytest.mark.parametrize(
    "words", [["--config-file", "/nowhere/nova.conf"], ["--log-config-append", "/nowhere/log.conf"]]
)
def test_a_configuration_that_cannot_be_read_is_said_in_one_line(words: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"^nova-compute: .*/nowhere/"):
        process.configure("nova-compute", words)


class Hanging(Asked):
    """Waits for what never comes, when it starts and when it is to stop."""

    def __init__(self, said: list[tuple[str, float]], name: str) -> None:
        super().__init__(said, name)
        self.never = threading.Event()

    def start(self) -> None:
        super().start()
        signal.raise_signal(signal.SIGTERM)
        self.never.wait(60)

    def stop(self, timeout: float) -> None:
        super().stop(timeout)
        self.never.wait(60)


@pytest.mark.usefixtures("handlers")
def test_a_signal_while_a_service_hangs_in_its_start_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "UNREADY_SECONDS", 0.3)
    monkeypatch.setattr(shutdown, "SLACK_SECONDS", 0.3)
    said: list[tuple[str, float]] = []
    closed: list[bool] = []
    hanging = Hanging(said, "hanging")
    services = [Asked(said, "first"), hanging, Asked(said, "never")]
    began = time.monotonic()
    assert process.run(configuration.load([]), lambda: services, [lambda: closed.append(True)]) == 0
    assert time.monotonic() - began < 5
    hanging.never.set()
    assert [name for name, _ in said] == ["first", "hanging", "hanging", "first"]
    assert closed == [True]


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(
    ("error", "traceback"),
    [
        (OSError(98, "Address already in use"), False),
        (exceptions.InvalidConfiguration("no such thing"), False),
        (ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy"), False),
        (KeyError("x"), True),
    ],
)
def test_what_does_not_start_says_why_in_one_line(
    error: Exception, traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def make() -> list[process.Service]:
        raise error

    assert process.run(configuration.load([]), make) == 1
    (line,) = [record for record in caplog.records if "does not start" in record.msg]
    assert bool(line.exc_info) is traceback
    assert "\n" not in line.getMessage()


WRONG = """
[DEFAULT]
transport_url = rabbit://user:se/cr@et@host:5672/
report_interval = ten
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = {port}
metadata_listen_port = 99999
compute_driver = bochs.Driver
[api]
auth_strategy = nothing
[filter_scheduler]
enabled_filters = ComputeFilter,NoSuchFilter
[kilonova]
flow_seal_keys = secret
[healthcheck]
backends = no_such
"""


def test_everything_that_is_wrong_is_said_at_once_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file.write_text(WRONG.format(port=port))
        with pytest.raises(SystemExit) as ended:
            process.configure("kilonova serve", ["--config-file", str(file)], checks.WHOLE)
    lines = str(ended.value).splitlines()
    for part in (
        "[DEFAULT] report_interval: invalid literal for int() with base 10: 'ten'",
        "[DEFAULT] metadata_listen_port: Should be less than or equal to 65535",
        "[api] auth_strategy: Valid values are [keystone, noauth2], but found 'nothing'",
        "[api_database] connection is not set",
        "[database] connection is not set",
        f"127.0.0.1:{port} cannot be listened on: Address already in use",
        "NoSuchFilter",
        "[DEFAULT] transport_url: a port is no number",
        "[healthcheck] backends: there is no no_such",
        "compute_driver is 'bochs.Driver'; known are ",
    ):
        assert len([line for line in lines if part in line]) == 1, (part, lines)
    assert len(lines) == 10
    assert all(line.startswith("kilonova serve: ") for line in lines)


@pytest.mark.parametrize("url", ["nonsense", "mysql+pymysql://u:hush@h:port/nova"])
def test_a_wrong_address_of_a_database_is_said_and_its_password_is_not(url: str) -> None:
    conf = configuration.load([])
    for group, check in (("api_database", checks.api_database), ("database", checks.cell_database)):
        conf.set_override("connection", url, group)
        (line,) = check(conf)
        assert line.startswith(f"[{group}] connection: it is not the URL of a database")
        assert "hush" not in line
        conf.set_override("connection", "mysql+pymysql://u:hush@h/nova", group)
        assert list(check(conf)) == []


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("rabbit://", True),
        ("rabbit://u:p@h:5672,u:p@[::1]:5672,h/v", True),
        ("fake://a/", True),
        ("nonsense", False),
        ("rabit://u:hush@h/", False),
        ("rabbit://u:hush@h:port/", False),
        ("rabbit://u:hu/sh@h:1/", False),
    ],
)
def test_a_wrong_address_of_the_bus_is_said_and_its_password_is_not(url: str, good: bool) -> None:
    conf = configuration.load([])
    assert list(checks.bus(conf)) == []
    conf.set_override("transport_url", url)
    lines = list(checks.bus(conf))
    assert (lines == []) is good
    assert "hush" not in "".join(lines)


def test_a_secret_that_is_wrong_is_not_shown() -> None:
    conf = configuration.new()
    conf.register_opt(cfg.IntOpt("pin", secret=True), group="kilonova")
    option = cfg.IntOpt("pin", secret=True)
    error = cfg.ConfigFileValueError("Value for option pin from x is not valid: invalid literal: 'hush'")
    assert "hush" not in values._reason(error, option)
