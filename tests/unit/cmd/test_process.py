"""A process starts its services in order, and ends them in reverse within the time that is configured."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
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
state_path = {folder}/nova.conf/state
log_file = {folder}/none/nova.log
[api]
auth_strategy = nothing
vendordata_jsonfile_path = {folder}/none.json
[oslo_policy]
policy_file = {folder}/policy.yaml
[placement]
auth_type = pasword
[neutron]
auth_type = password
username = nova
password = hush
[cinder]
auth_section = nowhere
[filter_scheduler]
enabled_filters = ComputeFilter,NoSuchFilter
[kilonova]
flow_seal_keys = secret
[healthcheck]
backends = no_such
"""


def test_everything_that_is_wrong_is_said_at_once_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    (tmp_path / "policy.yaml").write_text("- a\n- b\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file.write_text(WRONG.format(port=port, folder=tmp_path))
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
        f"[DEFAULT] state_path: {tmp_path}/nova.conf/state cannot be written: Not a directory",
        f"[Errno 2] No such file or directory: '{tmp_path}/none/nova.log'",
        f"[api] vendordata_jsonfile_path {tmp_path}/none.json: [Errno 2] No such file or directory",
        f"[oslo_policy] {tmp_path}/policy.yaml: ",
        "[placement] auth_type: there is no pasword; known are admin_token, ",
        "[neutron] auth_type password: Auth plugin requires parameters which were not given: auth_url",
        "[cinder] auth_section: there are no credentials in [nowhere]",
    ):
        assert len([line for line in lines if part in line]) == 1, (part, lines)
    assert len(lines) == 17
    assert all(line.startswith("kilonova serve: ") for line in lines)
    assert "hush" not in str(ended.value)


LOGIN = "auth_type = password\nauth_url = http://h/\n"
MISSING = "[placement] auth_type is not set"
UNKNOWN = "auth_type: there is no pasword"


@pytest.mark.parametrize(
    ("group", "of_group", "who"),
    [
        ("placement", "", {"SCHEDULER": MISSING, "CONDUCTOR": MISSING, "COMPUTE": MISSING}),
        ("placement", LOGIN, {}),
        ("placement", "auth_section = neutron\n[neutron]\n" + LOGIN, {}),
        ("placement", "auth_type = none\n", {}),
        ("placement", "auth_type = pasword\n", dict.fromkeys(("SCHEDULER", "CONDUCTOR", "COMPUTE", "API"), UNKNOWN)),
        (
            "neutron",
            "auth_type = pasword\n",
            dict.fromkeys(("SCHEDULER", "CONDUCTOR", "COMPUTE", "API", "METADATA"), UNKNOWN),
        ),
        ("cinder", "auth_type = pasword\n", dict.fromkeys(("CONDUCTOR", "COMPUTE", "API"), UNKNOWN)),
        ("keystone", "auth_type = pasword\n", {"API": UNKNOWN}),
        ("keystone_authtoken", "", {"API": "[keystone_authtoken] auth_type is not set"}),
        ("keystone_authtoken", "auth_type = pasword\n", {"API": UNKNOWN}),
        ("keystone_authtoken", "auth_section = placement\n", {}),
    ],
)
def test_who_uses_credentials_says_what_is_wrong_with_them(
    tmp_path: Path, group: str, of_group: str, who: dict[str, str]
) -> None:
    file = tmp_path / "nova.conf"
    others = {"placement", "keystone_authtoken"} - {group}
    file.write_text("".join(f"[{other}]\n{LOGIN}" for other in others) + f"[{group}]\n{of_group}")
    for program in ("SCHEDULER", "CONDUCTOR", "COMPUTE", "API", "METADATA"):
        conf = configuration.load(["--config-file", str(file)])
        lines = [line for line in checks.problems(conf, getattr(checks, program)) if "auth_" in line]
        assert len(lines) == (program in who), (program, lines)
        assert who.get(program, "") in "".join(lines)


def test_credentials_of_another_service_validate_tokens(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[keystone_authtoken]\nauth_section = placement\n[placement]\nauth_type = pasword\n")
    conf = configuration.load(["--config-file", str(file)])
    (line,) = checks.tokens(conf)
    assert line.startswith("[placement] auth_type: there is no pasword")


def test_without_keystone_nobody_needs_its_credentials() -> None:
    conf = configuration.load([])
    conf.set_override("auth_strategy", "noauth2", group="api")
    assert list(checks.tokens(conf)) == []


def test_a_host_says_that_it_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = configuration.load([])
    conf.set_override("state_path", str(tmp_path))
    conf.set_override("hosts", ["one", "two"], group="kilonova")
    assert list(checks.state(conf)) == []
    (tmp_path / "two").rmdir()
    (tmp_path / "two").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: "one" not in str(path))
    assert list(checks.state(conf)) == [
        f"[DEFAULT] state_path: {tmp_path}/one cannot be written",
        f"[DEFAULT] state_path: {tmp_path}/two cannot be written: File exists",
    ]


def test_usual_credentials_that_are_right_take_no_library(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[placement]\n{LOGIN}[neutron]\nauth_section = placement\n[cinder]\nauth_type = none\n")
    code = (
        "import sys; from kilonova import conf; from kilonova.cmd import checks;"
        f"found = conf.load(['--config-file', {str(file)!r}]);"
        "said = [line for check in checks.CONDUCTOR for line in check(found)];"
        "print([line for line in said if 'auth' in line], 'keystoneauth1' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[] False\n"


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
