"""The line of a host's uptime."""

from __future__ import annotations

import datetime
import re
import struct
from pathlib import Path

import pytest

from kilonova import conf as configuration
from kilonova.virt import uptime
from kilonova.virt.fake.driver import FakeDriver

AT = datetime.datetime(2026, 1, 2, 3, 4, 5)
# As python-openstackclient and novaclient take it apart.
CLIENTS = re.compile(r"\s*(.+)\sup\s+(.+),\s+(.+)\susers?,\s+load average:\s(.+)")


@pytest.mark.parametrize(
    ("seconds", "users", "said"),
    [
        (59, 0, "0 min"),
        (2 * 3600 + 180, 1, "2:03"),
        (86400 + 60, 2, "1 day, 1 min"),
        (5 * 86400 + 11 * 3600 + 60, 3, "5 days, 11:01"),
    ],
)
def test_clients_find_time_uptime_users_and_load(seconds: int, users: int, said: str) -> None:
    match = CLIENTS.match(uptime.line(AT, seconds, users, (0.1, 0.25, 3)))
    assert match is not None
    assert match.groups() == ("03:04:05", said, str(users), "0.10, 0.25, 3.00")


def test_the_drivers_say_it_so(tmp_path: Path) -> None:
    assert CLIENTS.match(uptime.of_this_host())
    records = b"".join(struct.pack("h382x", kind) for kind in (2, 7, 8, 7)) + b"cut off"
    (tmp_path / "utmp").write_bytes(records)
    assert uptime.users(tmp_path / "utmp") == 2
    assert uptime.users(tmp_path / "none") == 0


def test_the_fake_driver_says_it_so(tmp_path: Path) -> None:
    conf = configuration.new()
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    assert CLIENTS.match(FakeDriver(conf, "h1", tmp_path).uptime())
