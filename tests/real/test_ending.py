"""One SIGTERM ends every program whose bus or database went away while it worked, in its time and with exit code 0.

While they start: tests/unit/cmd/test_ending.py.
"""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.needs import needs
from tests.real import broker, servers
from tests.real.database_fixtures import new_databases
from tests.real.http_fakes import SERVICES, HttpFakes
from tests.real.relays import GONE, SILENT, Relay
from tests.real.servers import _free_port
from tests.unit.cmd.test_reload import Running

from kilonova.db.api import cell_mappings
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.migrations import sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), needs("rabbitmq", "mariadb")]

SECONDS = 30
"""What a program has to end. Without a bus there is no work that it could wait for, and it needs less."""

BOUND = SECONDS + 12
"""Of one whose work waits for a database; the rest is for what is left behind, piece by piece."""

CELL = "00000000-0000-4000-8000-000000000001"
BUS, DATABASE = "bus", "database"

CONF = """
[DEFAULT]
transport_url = {bus}
compute_driver = fake.FakeDriver
report_interval = 1
graceful_shutdown_timeout = {seconds}
manager_shutdown_timeout = {for_work}
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = {port}
metadata_listen = 127.0.0.1
metadata_listen_port = 0
[api]
auth_strategy = noauth2
[api_database]
connection = {api}
[database]
connection = {cell}
[kilonova]
reconcile_interval = 1
[service_user]
auth_type = none
"""


class Site:
    """Databases and a bus, each behind a relay, and the file that programs read of them."""

    def __init__(self, urls: list[str], bus: str, others: HttpFakes) -> None:
        self.port = _free_port()
        made = [sa.make_url(url) for url in urls]
        self.relays = {DATABASE: Relay(int(made[0].port or 0)), BUS: Relay(int(bus.rstrip("/").rpartition(":")[2]))}
        relayed = [url.set(port=self.relays[DATABASE].port).render_as_string(hide_password=False) for url in made]
        bus = f"rabbit://guest:guest@127.0.0.1:{self.relays[BUS].port}/"
        for url, make in zip(urls, (sync.sync_api, sync.sync_main, sync.sync_main), strict=True):
            database = Database(url)
            make(database)
            database.dispose()
        database = Database(urls[0])
        for uuid, url, transport in ((CELL0_UUID, relayed[1], "none:///"), (CELL, relayed[2], bus)):
            row = {"uuid": uuid, "name": uuid[-1], "database_connection": url, "transport_url": transport}
            database.run(cell_mappings.cell_mapping_create, row | {"disabled": False})
        database.dispose()
        self.base = CONF.format(
            bus=bus, port=self.port, api=relayed[0], cell=relayed[2], seconds=SECONDS, for_work=SECONDS // 2
        )
        for name in SERVICES:
            address = "endpoint_template" if name == "cinder" else "endpoint_override"
            self.base += f"[{name}]\nauth_type = none\n{address} = {others.url(name)}\n"

    @contextlib.contextmanager
    def running(self, name: str, folder: Path) -> Iterator[Running]:
        """A program that is ready."""
        folder.mkdir()
        # A host that is known comes back with its directory; each of these is a new one.
        base = f"{self.base}[DEFAULT]\nhost = {folder.parent.name}\n"
        made = Running(f"kilonova.cmd.{name}", folder, base)
        try:
            made.wait_for(" ready")
            yield made
        finally:
            made.kill()

    def ask(self) -> None:
        """A request that has to read the databases; its answer is no matter."""
        wanted = urllib.request.Request(f"http://127.0.0.1:{self.port}/v2.1/servers", headers={"X-Auth-Token": "a:b"})
        with contextlib.suppress(OSError):
            urllib.request.urlopen(wanted, timeout=60).close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    others = HttpFakes()
    with (
        broker.rabbitmq(folder / "bus") as bus,
        servers.mariadb(folder) as server,
        new_databases(server, ("api", "cell0", "cell")) as urls,
    ):
        made = Site(urls, bus, others)
        yield made
        for relay in made.relays.values():
            relay.close()
    others.stop()


@pytest.mark.parametrize("how", [SILENT, GONE], ids=["silent", "gone"])
@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("api", BUS),
        ("api", DATABASE),
        ("metadata", DATABASE),
        ("scheduler", BUS),
        ("scheduler", DATABASE),
        ("conductor", BUS),
        ("conductor", DATABASE),
        ("compute", BUS),
        ("serve", BUS),
        ("serve", DATABASE),
    ],
)
def test_it_ends_while_what_it_works_with_is_away(
    site: Site, tmp_path: Path, program: str, what: str, how: str
) -> None:
    relay = site.relays[what]
    with contextlib.ExitStack() as stack:
        if program == "compute":
            # A host reaches the database through one.
            stack.enter_context(site.running("conductor", tmp_path / "other"))
        made = stack.enter_context(site.running(program, tmp_path / "made"))
        stack.callback(relay.come_back)
        asked = threading.Thread(target=site.ask, daemon=True)
        relay.leave(how)
        asked.start()
        # What it does each second finds nobody now.
        time.sleep(3)
        began = time.monotonic()
        made.process.terminate()
        code = made.process.wait(BOUND + 60)
        took = time.monotonic() - began
        print(program, what, how, f"{took:.1f} s")
        assert code == 0, made.log.read_text()
        # All of them in one process end one after the other.
        assert took < (SECONDS if what == BUS and program != "serve" else BOUND), made.log.read_text()
        assert not made.said(" failed in phase "), made.log.read_text()
