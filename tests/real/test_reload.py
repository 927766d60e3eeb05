"""SIGHUP to services that need one another: each reads its options again, and obeys those that may change.

The conductor and the API alone are in tests/unit/cmd/test_reload.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.needs import needs
from tests.real import broker
from tests.real.http_fakes import SERVICES, HttpFakes
from tests.unit.cmd.cloud import Cloud
from tests.unit.cmd.test_reload import Running

from kilonova.db.migrations import sync

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(300),
    needs("rabbitmq"),
]

NAMES = ("conductor", "scheduler", "compute", "metadata")
RARELY = "[kilonova]\nreconcile_interval = 3600\n"


@pytest.fixture(scope="module")
def others() -> Iterator[HttpFakes]:
    made = HttpFakes()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, others: HttpFakes) -> Iterator[dict[str, Running]]:
    """Services by name, all ready."""
    folder = tmp_path_factory.mktemp("cloud")
    cloud = Cloud(folder)
    sync.sync_api(cloud.api)
    sync.sync_main(cloud.cell)
    made: dict[str, Running] = {}
    with broker.rabbitmq(folder / "bus") as bus:
        assert cloud.run("cell_v2", "create_cell", "--name", "one", "--transport-url", bus) == 0
        base = cloud.conf.read_text() + _more(bus, others)
        try:
            for name in NAMES:
                (folder / name).mkdir()
                made[name] = Running(f"kilonova.cmd.{name}", folder / name, base + RARELY)
                # A host that asks before there is a conductor waits rpc_response_timeout for its answer.
                made["conductor"].wait_for("ready")
            for each in made.values():
                each.wait_for("ready")
            yield made
        finally:
            for each in made.values():
                each.kill()
    cloud.api.dispose()
    cloud.cell.dispose()


def _more(bus: str, others: HttpFakes) -> str:
    services = "".join(
        f"[{name}]\nauth_type = none\nendpoint_{'template' if name == 'cinder' else 'override'} = {others.url(name)}\n"
        for name in SERVICES
    )
    return (
        f"[DEFAULT]\ntransport_url = {bus}\nhost = here\ncompute_driver = fake.FakeDriver\n"
        "metadata_listen = 127.0.0.1\nmetadata_listen_port = 0\n[service_user]\nauth_type = none\n" + services
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_reads_its_options_again(running: dict[str, Running], name: str) -> None:
    service = running[name]
    assert not service.said(" DEBUG ")
    service.write("[DEFAULT]\ndebug = true\nreport_interval = 7\n[kilonova]\nreconcile_interval = 0.2\n")
    service.hang_up()
    service.wait_for("configuration read again; changed: DEFAULT.debug, kilonova.reconcile_interval")
    assert service.said("immutable option DEFAULT.report_interval")
    service.wait_for(" DEBUG ")
    service.write()
    service.hang_up()
    service.wait_for("configuration read again", times=2)
    assert service.process.poll() is None


def test_repair_loops_run_as_often_as_they_are_told_now(running: dict[str, Running], others: HttpFakes) -> None:
    service, calls = running["conductor"], others.cloud.cinder.calls
    before = len(calls)
    service.write("[kilonova]\nreconcile_interval = 0.2\n")
    service.hang_up()
    end = time.monotonic() + 30
    while len(calls) < before + 3:
        assert time.monotonic() < end, service.log.read_text()
        time.sleep(0.05)
    service.write("[kilonova]\nreconcile_interval = 0.2\nreconcile_disabled = orphan_attachments,orphan_volumes\n")
    service.hang_up()
    service.wait_for("changed: kilonova.reconcile_disabled")
    time.sleep(0.5)
    seen = len(calls)
    time.sleep(1.0)
    assert len(calls) == seen


def test_all_end_when_they_are_asked_to(running: dict[str, Running]) -> None:
    for each in running.values():
        each.process.terminate()
    assert {name: each.process.wait(60) for name, each in running.items()} == dict.fromkeys(NAMES, 0)
