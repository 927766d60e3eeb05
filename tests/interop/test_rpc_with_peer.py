"""The peer's services call our host and we call theirs, over a real broker.

Set PEER_PYTHON to an interpreter that has the peer, TEST_TRANSPORT_URL to a message broker.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg
from tests.needs import needs

from kilonova.base import ids
from kilonova.conf import default_rpc, upgrade_levels
from kilonova.contract import context, exceptions, objects
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import ComputeClient
from kilonova.wire.rpc.errors import RpcTimeout

PEER = os.environ.get("PEER_PYTHON")
BROKER = os.environ.get("TEST_TRANSPORT_URL")
SCRIPT = str(pathlib.Path(__file__).with_name("peer_rpc.py"))
pytestmark = [
    pytest.mark.interop,
    needs("peer", "transport-url"),
]
SLOW, PATIENCE = 6, 2
"""Seconds that a long call takes, and that its caller bears silence: who works on it must say so meanwhile."""
UUID = "5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d"


@pytest.fixture
def bus() -> Iterator[Bus]:
    conf = cfg.ConfigOpts()
    conf.register_opts(default_rpc.OPTIONS)
    conf.register_opts(upgrade_levels.OPTIONS, group=upgrade_levels.GROUP)
    conf([])
    made = Bus(conf, BROKER)
    conf.set_override("control_exchange", f"test-{ids.new_uuid()}")
    yield made
    made.close()


def peer(bus: Bus, role: str) -> list[str]:
    return [str(PEER), SCRIPT, role, str(BROKER), bus.conf.control_exchange]


def test_the_peer_calls_our_host(bus: Bus) -> None:
    stopped: list[Any] = []
    done = threading.Event()

    class Host:
        def get_console_output(self, ctxt: Any, *, instance: Any, tail_length: int) -> str:
            if tail_length < 0:
                raise exceptions.ConsoleNotAvailable
            return f"{ctxt.user_id} {instance.uuid} {tail_length}"

        def reserve_block_device_name(self, ctxt: Any, *, device: str, **more: Any) -> str:
            time.sleep(SLOW)
            return device

        def stop_instance(self, ctxt: Any, *, instance: Any, clean_shutdown: bool) -> None:
            stopped.append((ctxt.roles, instance.uuid, clean_shutdown))
            done.set()

    server = bus.serve("compute", "our-host", [Host()])
    server.start()
    ran = subprocess.run(peer(bus, "call"), capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout)
    assert answers["output"] == f"peer-user {UUID} 5"
    name, is_one, message = answers["error"]
    assert name.startswith("ConsoleNotAvailable")
    assert is_one
    assert message == exceptions.ConsoleNotAvailable.msg_fmt
    assert answers["slow"] == "/dev/vdb"
    assert done.wait(10)
    assert stopped == [(["member"], UUID, True)]
    server.stop()
    server.wait(10)


def test_we_call_the_peers_host(bus: Bus) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(peer(bus, "serve"), stdin=pipe, stdout=pipe, text=True) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        assert host.stdout.readline().strip() == "ready"
        ctxt = context.RequestContext("our-user", "our-project", overwrite=False)
        instance = objects.Instance(uuid=UUID, host="peer-host", metadata={})
        client = ComputeClient(bus)
        answer = client.get_console_output(ctxt, instance, 5)
        assert answer.metadata == {"seen": "peer"}
        with pytest.raises(exceptions.InstanceNotFound, match=UUID):
            client.get_console_output(ctxt, instance, -1)
        client.stop_instance(ctxt, instance, clean_shutdown=False)
        assert json.loads(host.stdout.readline()) == ["our-user", ctxt.request_id, UUID, False]
        bus.conf.set_override("rpc_response_timeout", PATIENCE)
        bus.conf.set_override("long_rpc_timeout", 60)
        names = [a.name for a in client.API.by_name["reserve_block_device_name"].arguments]
        asked = dict.fromkeys(names) | {"instance": instance, "device": "/dev/vdb"}
        assert client.reserve_block_device_name(ctxt, **asked) == "/dev/vdb"
        began = time.monotonic()
        with pytest.raises(RpcTimeout):
            client.reserve_block_device_name(ctxt, **asked | {"instance": objects.Instance(uuid=UUID, host="nobody")})
        assert time.monotonic() - began < 30
        host.stdin.write("end\n")
        host.stdin.close()
        host.wait(30)
