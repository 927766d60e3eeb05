"""kill -9 of any process of ours in a cloud of real services: profile full, three cells, several fake hosts.

What the records of three cells, Placement, Neutron and the hosts say afterwards is compared in their own databases.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.needs import needs
from tests.real import chaos

from kilonova.cloud.daemons import reaped, wait_until
from kilonova.cloud.library import Running, Surroundings, surroundings
from kilonova.cloud.rest import poll
from kilonova.cloud.services.kilonova import Compute
from kilonova.db.cell.tables import INSTANCES

pytestmark = [
    pytest.mark.real,
    pytest.mark.chaos,
    pytest.mark.timeout(3600),
    needs("rabbitmq", "mariadb"),
]

PORT_OFFSET = 11000
COMPUTES = 4
KINDS = ["nova-api", "nova-scheduler", "nova-conductor", "nova-conductor-cell1", "nova-compute-fake-1"]

ALLOCATIONS = """
    SELECT a.consumer_id AS uuid, p.name AS host, a.resource_class_id AS kind, a.used
    FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id
"""
AMOUNTS = {0: 1, 1: 192, 2: 1}
"""Of one server, by Placement's number of the resource class: VCPU, MEMORY_MB, DISK_GB."""
PORTS = "SELECT device_id FROM ports WHERE device_owner LIKE 'compute:%'"


class Tried(Compute):
    """Our services with the leases, beats and hosts for which the promise is made."""

    def shared(self) -> dict[str, dict[str, Any]]:
        sections = super().shared()
        return sections | {
            "DEFAULT": {**sections["DEFAULT"], **chaos.BEATS},
            "kilonova": {**sections.get("kilonova", {}), **chaos.LEASES, **chaos.FAKE},
        }


class Full(chaos.Target):
    """The cloud's compute service; its processes are those of the supervisor."""

    def __init__(self, lab: Surroundings, running: Running) -> None:
        self.url = running.compute_url
        self.service = running.service
        self.supervisor = running.service.supervisor
        self.daemons = {daemon.name: daemon for daemon in self.service.daemons()}
        self.admin = lab.rest("admin", "demo")
        self.databases = {
            name: sa.create_engine(
                url if name.startswith("nova") else lab.site.database(name), isolation_level="AUTOCOMMIT"
            )
            for name in ("nova_api", "nova_cell0", "nova_cell1", "nova_cell2", "placement", "neutron")
            for url in [self.service.database_url(name)]
        }
        image = self.admin.get(lab.site.url("glance", "/v2/images?name=guest"))["images"][0]["id"]
        network = self.admin.get(lab.site.url("neutron", "/v2.0/networks?name=private"))["networks"][0]["id"]
        self._wish = {"flavorRef": "1", "imageRef": image, "networks": [{"uuid": network}]}

    def kill(self, name: str) -> None:
        pid = self.supervisor.pid(name)
        assert pid is not None, f"{name} does not run: {self.supervisor.tail(name)}"
        os.killpg(pid, signal.SIGKILL)
        assert wait_until(lambda: reaped(pid), 10)

    def start(self, name: str) -> None:
        self.supervisor.spawn(self.daemons[name])

    def headers(self) -> Mapping[str, str]:
        return {"X-Auth-Token": self.admin.token}

    def wish(self) -> Mapping[str, Any]:
        return self._wish

    def rows(self, database: str, query: Any) -> list[Any]:
        with self.databases[database].connect() as connection:
            return list(connection.execute(sa.text(query) if isinstance(query, str) else query))

    def disagreements(self) -> list[str]:
        columns = (INSTANCES.c.uuid, INSTANCES.c.vm_state, INSTANCES.c.task_state, INSTANCES.c.host)
        alive = sa.select(*columns).where(INSTANCES.c.deleted == 0)
        cells = {cell: {row.uuid: row for row in self.rows(cell, alive)} for cell in self.cells}
        records = {uuid: row for found in cells.values() for uuid, row in found.items()}
        held: dict[str, dict[str, dict[int, int]]] = {}
        for row in self.rows("placement", ALLOCATIONS):
            held.setdefault(row.uuid, {}).setdefault(row.host, {})[row.kind] = row.used
        found = chaos.differences(records, held, [row.device_id for row in self.rows("neutron", PORTS)])
        found += [f"{uuid} holds {one}" for uuid, one in held.items() for used in one.values() if used != AMOUNTS]
        found += ["a server is in two cells"] if len(records) < sum(map(len, cells.values())) else []
        wishes, mappings = (self.rows("nova_api", query) for query in (chaos.WISHES, chaos.MAPPINGS))
        found += chaos.on_the_way(records, wishes, mappings)
        states = {host: self.service.data / host for host in self.service.hosts()}
        return found + chaos.misplaced_guests(records, states)

    @property
    def cells(self) -> list[str]:
        return [name for name in self.databases if name.startswith("nova_cell")]

    def flows(self) -> list[str]:
        """Those that have not ended. A flow looks ever more rarely whether its server came to its end."""
        return chaos.live_flows(row for name in ("nova_api", *self.cells) for row in self.rows(name, chaos.LIVE_FLOWS))


@pytest.fixture(scope="module")
def cloud() -> Iterator[Full]:
    """CHAOS_STATE=FOLDER keeps the surroundings and all logs there, and takes what an earlier run kept."""
    with contextlib.ExitStack() as stack:
        kept = os.environ.get("CHAOS_STATE")
        temporary = tempfile.TemporaryDirectory(prefix="kn-", ignore_cleanup_errors=True)
        root = Path(kept) if kept else Path(stack.enter_context(temporary)) / "state"
        options: dict[str, Any] = {"profile": "full", "computes": COMPUTES, "port_offset": PORT_OFFSET}
        lab = stack.enter_context(surroundings(root, keep=bool(kept), **options))
        forget_ports(lab)
        running = stack.enter_context(lab.running(Tried(lab.site, lab.cloud.supervisor)))
        yield Full(lab, running)


def forget_ports(lab: Surroundings) -> None:
    """Those of servers of an earlier run, whose databases are made anew."""
    admin, base = lab.rest(), lab.site.url("neutron", "/v2.0/ports")
    for port in admin.get(base)["ports"]:
        if port["device_owner"].startswith("compute:"):
            admin.call("DELETE", f"{base}/{port['id']}")


@pytest.mark.parametrize("victims", [*([kind] for kind in KINDS), []], ids=[*KINDS, "any"])
def test_one_process_is_killed_again_and_again(cloud: Full, victims: list[str]) -> None:
    """An empty list stands for every process of ours."""
    chaos.clear(cloud)
    chaos.storm(cloud, victims or list(cloud.daemons), chaos.dice())
    poll("flows that do not end", lambda: not cloud.flows(), chaos.SECONDS)
    poll("a process did not come back", lambda: all(map(cloud.supervisor.pid, cloud.daemons)), 30)
