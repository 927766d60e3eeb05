"""What repair loops put right in a whole control plane."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest
from tests.ops.control_plane import CELL, ControlPlane

from kilonova.base import clock
from kilonova.conductor import records
from kilonova.db.objects import instance as instances
from kilonova.wire.rpc.clients import ComputeClient


@pytest.mark.parametrize(
    ("action", "body", "method", "status"),
    [
        ("os-stop", None, "stop_instance", "SHUTOFF"),
        ("reboot", {"type": "HARD"}, "reboot_instance", "ACTIVE"),
    ],
)
def test_a_lost_cast_is_sent_again(
    cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch, action: str, body: Any, method: str, status: str
) -> None:
    server = cloud.active("one")["id"]
    with monkeypatch.context() as patch:
        patch.setattr(ComputeClient, method, lambda *a, **k: None, raising=False)
        cloud.act(server, action, body)
    assert cloud.show(server)["OS-EXT-STS:task_state"] is not None
    cloud.until_status(server, status, 60)
    assert len(cloud.actions(server)) == 2


def test_claims_and_ports_of_a_server_that_vanished(cloud: ControlPlane) -> None:
    """As after a host that was lost for good in the middle of a deletion."""
    server = cloud.active("one")["id"]
    (port,) = cloud.cloud.neutron.ports_of(server)
    port["created_at"] = clock.iso(clock.now() + datetime.timedelta(seconds=5))
    database = cloud.parts.cells.cell(CELL).database
    database.run(records.erase, cloud.context(), server)
    cloud.until("no claim", lambda: not cloud.cloud.placement.held(server))
    cloud.until("no port", lambda: not cloud.cloud.neutron.ports_of(server))


def test_what_is_not_ours_stays(cloud: ControlPlane) -> None:
    """A consumer that no record here ever knew, on a node of ours."""
    node = next(iter(cloud.cloud.placement.providers))
    stranger = str(uuid.uuid4())
    wanted = {"allocations": {node: {"resources": {"VCPU": 1}}}}
    assert cloud.cloud.clients.placement.claim(cloud.context(), stranger, wanted, "p", "u")
    loops = cloud._services[1]
    passes = loops.passes["orphan_allocations"]
    cloud.until("several passes", lambda: passes.report.passes > 5)
    assert cloud.cloud.placement.held(stranger)
    assert any(stranger in harm for harm in passes.report.seen)


def test_a_deletion_without_a_flow(cloud: ControlPlane) -> None:
    """As a peer's API leaves it when its cast is lost."""
    server = cloud.active("one")["id"]
    database = cloud.parts.cells.cell(CELL).database
    record = database.query(instances.load, server)
    record.task_state = "deleting"
    database.run(instances.save, cloud.context(), record)
    cloud.until_gone(server, 60)
    cloud.assert_clean()
