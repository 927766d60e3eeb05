"""A compute service of the peer lives on our conductor: every object call it makes in the life of a server.

Set PEER_PYTHON to an interpreter that has the peer, TEST_TRANSPORT_URL to a message broker.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import types
from typing import Any

import pytest
from oslo_config import cfg
from tests.needs import needs
from tests.unit.db.conftest import api_db, cell_db, templates  # noqa: F401 - fixtures

from kilonova.base import ids
from kilonova.conductor.objects.service import ObjectService
from kilonova.conf import default_rpc, kilonova, upgrade_levels
from kilonova.contract import context, objects
from kilonova.db.engine import Database
from kilonova.db.objects import action, instance
from kilonova.wire.rpc.bus import Bus

PEER = os.environ.get("PEER_PYTHON")
BROKER = os.environ.get("TEST_TRANSPORT_URL")
SCRIPT = str(pathlib.Path(__file__).with_name("peer_objects.py"))
pytestmark = [
    pytest.mark.interop,
    needs("peer", "transport-url"),
]

EXPECTED: dict[str, Any] = {
    "service": [1, 74, True],
    "minimum": 74,
    "missing service": True,
    "node": [2, {"num_instances": "1"}, "x86_64", True],
    "nodes": ["peer-node"],
    "missing node": "ComputeHostNotFound",
    "flavor": ["small", {"hw:x": "1"}, {"image_min_disk": "1"}],
    "event": "compute__do_build_and_run_instance",
    "wrong state": "UnexpectedTaskStateError",
    "built": ["active", None, "peer-host", True],
    "metadata": {"image_min_disk": "1", "image_hw_machine_type": "q35"},
    "network": ["vif-1"],
    "lazy": [0, True, [], True],
    "lazy devices": [0, True, "small"],
    "by host": [True],
    "uuids": True,
    "filters": 1,
    "vifs": ["t"],
    "refreshed": "active",
    "bdms": [1],
    "bdms after": 0,
    "pci": 0,
    "shares": 0,
    "fault": "broken",
    "moves": ["running"],
    "aggregates": 0,
    "no server": "InstanceNotFound",
    "gone": "InstanceNotFound",
    "gone twice": None,
    "deleted": True,
    "service gone": True,
    "end": None,
}


def server(cell_db: Database, request_id: str) -> str:  # noqa: F811
    ctxt = context.RequestContext("u", "p", request_id=request_id, overwrite=False)
    flavor = objects.Flavor(
        id=1, name="small", memory_mb=192, vcpus=1, root_gb=1, ephemeral_gb=0, flavorid="s1", swap=0, rxtx_factor=1.0,
        vcpu_weight=0, disabled=False, is_public=True, extra_specs={"hw:x": "1"}, projects=[], description=None,
    )  # fmt: skip
    made = objects.Instance(
        uuid=ids.new_uuid(), user_id="u", project_id="p", display_name="one", vm_state="building",
        task_state="scheduling", flavor=flavor, old_flavor=None, new_flavor=None, metadata={},
        system_metadata={"image_min_disk": "1"}, pci_requests=objects.InstancePCIRequests(requests=[]),
    )  # fmt: skip
    cell_db.run(instance.create, ctxt, made)
    cell_db.run(action.action_start, ctxt, made.uuid, "create")
    return str(made.uuid)


def test_a_peers_compute_on_our_conductor(api_db: Database, cell_db: Database) -> None:  # noqa: F811
    conf = cfg.ConfigOpts()
    conf.register_opts(default_rpc.OPTIONS)
    conf.register_opts(upgrade_levels.OPTIONS, group=upgrade_levels.GROUP)
    conf.register_opts(kilonova.OPTIONS, group=kilonova.GROUP)
    conf([])
    bus = Bus(conf, BROKER)
    conf.set_override("control_exchange", f"test-{ids.new_uuid()}")
    cells: Any = types.SimpleNamespace(api=api_db, own=cell_db)
    conductor = bus.serve("conductor", "c1", [ObjectService(cells, conf)])
    conductor.start()
    request_id = ids.new_request_id()
    uuid = server(cell_db, request_id)
    arguments = [str(PEER), SCRIPT, str(BROKER), conf.control_exchange, uuid, ids.new_uuid(), request_id]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=900)
    conductor.stop()
    conductor.wait(5)
    bus.close()
    said = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert said == EXPECTED, ran.stderr[-3000:]
