"""Our conductors and scheduler work beside the peer's, on the same queues and databases: whoever takes what, all agree.

Users speak with python-openstackclient. Keystone, Placement, Neutron, Glance, MariaDB and RabbitMQ are real, guests are
those of the fake drivers. Needs PEER_PYTHON (a Python with the peer in it).
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.interop.mixed import OTHER, Host, Mixed, Side
from tests.interop.mixed_cloud import Cloud
from tests.needs import needs

from kilonova import conf
from kilonova.cloud import credentials
from kilonova.cloud.library import Surroundings, surroundings
from kilonova.contract import context
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import BaseClient

PEER = os.environ.get("PEER_PYTHON")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    needs("peer"),
    needs("rabbitmq", "mariadb"),
]
PORT_OFFSET = 23000
MANY = 20


@pytest.fixture(scope="module")
def lab() -> Iterator[Surroundings]:
    with (
        tempfile.TemporaryDirectory(prefix="kn-side-", ignore_cleanup_errors=True) as root,
        surroundings(Path(root) / "s", profile="full", port_offset=PORT_OFFSET) as made,
    ):
        yield made


@pytest.fixture(scope="module", params=["ours", "theirs"])
def cloud(lab: Surroundings, request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """An API of the one side, conductors, schedulers and hosts of both."""
    control: Side = request.param
    hosts = [Host(side, side, "MediumFakeDriver") for side in (control, OTHER[control])]
    place = dataclasses.replace(lab.site, peer=Path(str(PEER)).parents[1])
    with lab.running(service := Mixed(place, lab.cloud.supervisor, control, hosts, beside=True)) as running:
        yield Cloud(lab, service, running)


def test_both_sides_take_from_one_queue(cloud: Cloud) -> None:
    """A broker gives messages to its consumers in turn."""
    bus = Bus(conf.load(["--config-file", os.devnull]), cloud.site.transport("nova"))
    cell = bus.at(cloud.site.transport("nova_cell1"))
    try:
        for at, topic in ((bus, "conductor"), (bus, "scheduler"), (cell, "conductor")):
            pings = [BaseClient(at, topic).ping(context.admin(), n, timeout=60) for n in range(8)]
            assert [answer["arg"] for answer in pings] == list(range(8))
            answered = Counter(answer["service"] == "kilonova" for answer in pings)
            assert min(answered[True], answered[False]) > 0, topic
    finally:
        bus.close()


def test_many_builds_at_once_are_shared(cloud: Cloud) -> None:
    with ThreadPoolExecutor(5) as pool:
        built = list(pool.map(lambda n: cloud.create(f"shared-{n}"), range(MANY)))
    hosts = {server: cloud.until(server, "ACTIVE", patience=300)["OS-EXT-SRV-ATTR:host"] for server in built}
    assert set(hosts.values()) == {"ours", "theirs"}
    for server, host in hosts.items():
        cloud.assert_lives_on(server, host)
        assert cloud.actions(server) == {"create": {"compute__do_build_and_run_instance": "Success"}}
    cloud.delete(*built)
    for server in built:
        cloud.assert_left_nothing(server)


def said(cloud: Cloud, *words: str, user: str = "demo") -> str:
    """What python-openstackclient prints."""
    credentials.write(cloud.site)
    env = os.environ | {"OS_CLIENT_CONFIG_FILE": str(cloud.site.root / "clouds.yaml"), "OS_CLOUD": user}
    client = Path(sys.executable).parent / "openstack"
    done = subprocess.run([client, *words], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def openstack(cloud: Cloud, *words: str, user: str = "demo") -> Any:
    """The same, as data."""
    return json.loads(said(cloud, *words, "-f", "json", user=user))


def test_the_client_of_users_sees_one_service(cloud: Cloud) -> None:
    kinds = ["--flavor", "1", "--image", "guest", "--network", "private"]
    made = openstack(cloud, "server", "create", *kinds, "--wait", "by-client")
    server = made["id"]
    assert made["status"] == "ACTIVE"
    assert [one["Name"] for one in openstack(cloud, "server", "list") if one["ID"] == server] == ["by-client"]
    for action, status in (("stop", "SHUTOFF"), ("start", "ACTIVE")):
        said(cloud, "server", action, server)
        cloud.until(server, status)
    said(cloud, "server", "reboot", "--hard", "--wait", server)
    said(cloud, "console", "log", "show", server)
    events = openstack(cloud, "server", "event", "list", server)
    assert {one["Action"] for one in events} == {"create", "stop", "start", "reboot"}
    services = openstack(cloud, "compute", "service", "list", user="admin")
    assert {(one["Binary"], one["Host"]) for one in services if one["State"] == "up"} >= {
        *(("nova-compute", host) for host in cloud.service.members),
        *(("nova-conductor", host) for host in ("controller", "beside")),
        *(("nova-scheduler", host) for host in ("controller", "beside")),
    }
    said(cloud, "server", "delete", "--wait", server)
    cloud.assert_left_nothing(server)
