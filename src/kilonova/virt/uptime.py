"""How long a host runs, in the form of `uptime` (procps): clients take time, uptime, users and load apart by it."""

from __future__ import annotations

import datetime
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# A record of utmp(5) on Linux, of which the first field is the type.
_RECORD: Final = struct.Struct("h382x")
_USER_PROCESS: Final = 7
_DAY, _HOUR, _MINUTE = 86400, 3600, 60


def line(at: datetime.datetime, seconds: int, users: int, load: Sequence[float]) -> str:
    """The line of a host that has been up for ``seconds`` with so many users logged in."""
    who = f"{users} user" if users == 1 else f"{users} users"
    average = ", ".join(f"{each:.2f}" for each in load)
    return f" {at:%H:%M:%S} up {_duration(seconds)},  {who},  load average: {average}"


def of_this_host() -> str:
    """The line of the host that this process runs on (Linux)."""
    seconds = int(float(Path("/proc/uptime").read_text().split()[0]))
    return line(datetime.datetime.now(), seconds, users(Path("/run/utmp")), os.getloadavg())


def users(utmp: Path) -> int:
    """How many are logged in; nobody where that is not recorded."""
    try:
        records = utmp.read_bytes()
    except FileNotFoundError:
        return 0
    whole = len(records) // _RECORD.size * _RECORD.size
    return sum(kind == _USER_PROCESS for (kind,) in _RECORD.iter_unpack(records[:whole]))


def _duration(seconds: int) -> str:
    days, rest = divmod(seconds, _DAY)
    hours, minutes = rest // _HOUR, rest % _HOUR // _MINUTE
    clock = f"{hours:2d}:{minutes:02d}" if hours else f"{minutes} min"
    if not days:
        return clock.strip()
    return f"{days} day{'s' if days > 1 else ''}, {clock}"
