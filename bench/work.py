"""Work that a build makes for every process around it: independent of what else the machine does.

Requests come from the access logs of the WSGI services, CPU time from `/proc/PID/stat` of each daemon and its
children, statements and transactions from MariaDB's status counters. What the services do while idle (heartbeats,
periodic looks) is in the counts, alike for both sides.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
import re
from collections.abc import Mapping

import sqlalchemy as sa

from bench.side import tree

REQUESTED = ("neutron", "keystone", "placement", "glance")
"""Services whose requests are counted."""

_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_STATEMENTS = ("select", "insert", "insert_select", "update", "update_multi", "delete", "delete_multi", "replace")
_WRITES = tuple(name for name in _STATEMENTS if name != "select")

Amounts = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Sources:
    """Where the counts come from: access logs by service, first processes by daemon, one database of the server."""

    access_logs: Mapping[str, pathlib.Path]
    pids: Mapping[str, int]
    database: str


@dataclasses.dataclass(frozen=True)
class Reading:
    """Counters at one moment."""

    offsets: Mapping[str, int]
    """Length of each access log, in bytes."""
    cpu: Amounts
    """Seconds of CPU time by daemon."""
    sql: Amounts


def read(sources: Sources) -> Reading:
    return Reading(
        {name: log.stat().st_size if log.exists() else 0 for name, log in sources.access_logs.items()},
        {name: cpu_seconds(pid) for name, pid in sources.pids.items()},
        _sql(sources.database),
    )


def since(sources: Sources, before: Reading, builds: int) -> dict[str, float]:
    """What was done since `before`, per build, by name.

    `requests.SERVICE` is a sum, `requests.SERVICE METHOD PATH` one kind of it; `cpu_ms.DAEMON` and `cpu_ms.total`;
    `sql.statements` (reads and writes), `sql.writes`, `sql.commits` (transactions that wrote, as InnoDB counts them
    where it does; COMMIT statements otherwise).
    """
    now = read(sources)
    done: dict[str, float] = {}
    for name, log in sources.access_logs.items():
        kinds = requests(log, before.offsets[name])
        done[f"requests.{name}"] = sum(kinds.values())
        done |= {f"requests.{name} {kind}": count for kind, count in kinds.items()}
    cpu = {name: 1000 * (seconds - before.cpu.get(name, 0.0)) for name, seconds in now.cpu.items()}
    done |= {f"cpu_ms.{name}": amount for name, amount in cpu.items()} | {"cpu_ms.total": sum(cpu.values())}
    done |= {f"sql.{name}": amount - before.sql[name] for name, amount in now.sql.items()}
    return {name: amount / builds for name, amount in done.items()}


def requests(log: pathlib.Path, offset: int = 0) -> collections.Counter[str]:
    """Requests by kind in an access log from a byte on."""
    if not log.exists():
        return collections.Counter()
    with log.open("rb") as lines:
        lines.seek(offset)
        return collections.Counter(kind(line.decode(errors="replace")) for line in lines)


def kind(line: str) -> str:
    """`GET /v2.0/ports/UUID?device_id=...` as `GET /v2.0/ports/{id}?device_id`: ids and values left out."""
    method, uri, *_ = line.split()
    path, _, query = uri.partition("?")
    names = sorted({pair.partition("=")[0] for pair in query.split("&") if pair})
    return f"{method} {_ID.sub('{id}', path)}" + (f"?{'&'.join(names)}" if names else "")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all its descendants, with that of children that ended."""
    ticks = 0
    for one in tree(pid):
        try:
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _sql(database: str) -> dict[str, float]:
    engine = sa.create_engine(database)
    try:
        with engine.connect() as connection:
            status = {name.lower(): value for name, value in connection.execute(sa.text("SHOW GLOBAL STATUS"))}
    finally:
        engine.dispose()
    return {
        "statements": sum(float(status[f"com_{name}"]) for name in _STATEMENTS),
        "writes": sum(float(status[f"com_{name}"]) for name in _WRITES),
        "commits": float(status["com_commit"]),
    }
