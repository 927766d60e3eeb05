"""The agent of a host on libvirt is changed, from the peer's to ours and back: guests run on and notice nothing.

Everything is real: QEMU, OVN, Keystone, Placement, Neutron, Glance, MariaDB and RabbitMQ. Needs root and PEER_PYTHON
(a Python with the peer in it).
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.libvirt_host import Hypervisor, LibvirtHost, differences, layout
from tests.interop.mixed import Side
from tests.interop.mixed_cloud import PATIENCE, Cloud
from tests.needs import needs

from kilonova.cloud.library import Surroundings, surroundings
from kilonova.cloud.rest import poll

PEER = os.environ.get("PEER_PYTHON")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(2400),
    needs("peer"),
    needs("rabbitmq", "mariadb"),
    needs("genisoimage"),
    needs("guests"),
]
PORT_OFFSET = 26000
OTHER: dict[Side, Side] = {"ours": "theirs", "theirs": "ours"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Surroundings]:
    with (
        tempfile.TemporaryDirectory(prefix="kn-over-", ignore_cleanup_errors=True) as root,
        surroundings(
            Path(root) / "s", profile="full", driver="libvirt", network="ovn", port_offset=PORT_OFFSET
        ) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def host(lab: Surroundings) -> Iterator[Hypervisor]:
    """The host under a control plane of ours."""
    place = dataclasses.replace(lab.site, peer=Path(str(PEER)).parents[1])
    service = LibvirtHost(place, lab.cloud.supervisor, "ours", "theirs")
    with lab.running(service) as running:
        made = Hypervisor(Cloud(lab, service, running), service)
        made.register_flavor()
        try:
            yield made
        finally:
            made.clear()


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_guests_run_on_when_the_agent_changes(host: Hypervisor, first: Side) -> None:
    second, cloud = OTHER[first], host.cloud
    host.give_to(first)
    quiet, busy, stopped = (host.build(name) for name in ("quiet", "busy", "stopped"))
    for server in (quiet, busy, stopped):
        cloud.until(server, "ACTIVE")
    cloud.act(stopped, "os-stop")
    boots = {server: host.counts_in_new_boot(server) for server in (quiet, busy)}
    cloud.until(stopped, "SHUTOFF", lambda shown: shown["OS-EXT-STS:power_state"] == 4)

    hand_over(host, second, [quiet, busy, stopped], boots)
    assert cloud.show(stopped)["status"] == "SHUTOFF"
    cloud.delete(stopped)
    assert_nothing_is_left(host, stopped)
    boots[busy] = reboot(host, busy, "SOFT", boots[busy])
    boots[busy] = reboot(host, busy, "HARD", boots[busy])
    boots[busy] = stop_and_start(host, busy, boots[busy])
    host.counts_on(quiet, boots[quiet])

    hand_over(host, first, [quiet, busy], boots)
    boots[busy] = reboot(host, busy, "HARD", boots[busy])
    boots[quiet] = stop_and_start(host, quiet, boots[quiet])
    cloud.delete(quiet, busy)
    for server in (quiet, busy):
        assert_nothing_is_left(host, server)


def test_both_lay_out_a_guest_in_the_same_way(host: Hypervisor) -> None:
    """Files, their formats, owners and modes, the image cache and the domain."""
    seen = {}
    for side in ("theirs", "ours"):
        host.give_to(side)
        shutil.rmtree(host.cache, ignore_errors=True)
        server = host.build("laid-out", host.LARGE)
        host.cloud.until(server, "ACTIVE")
        seen[side] = layout(host, server)
        host.cloud.delete(server)
        assert_nothing_is_left(host, server)
    assert differences(seen["theirs"], seen["ours"]) == {}


def hand_over(host: Hypervisor, side: Side, servers: list[str], boots: dict[str, str]) -> None:
    """The other agent comes; records, processes and files stay as they are, and guests count on."""
    poll("the host does not count its guests", host.has_counted, PATIENCE)
    before = host.sight(servers)
    assert all(before["servers"][server]["pid"] for server in boots)
    for server in boots:
        poll("ssh of the guest does not answer", functools.partial(host.reachable, server), PATIENCE)
    host.give_to(side)
    assert differences(before, host.sight(servers)) == {}
    for server, boot in boots.items():
        host.counts_on(server, boot)
        assert host.reachable(server)
        assert_console_goes_on(host, server)
        shown = host.cloud.show(server)
        assert (shown["status"], shown["OS-EXT-STS:power_state"]) == ("ACTIVE", 1)


def assert_console_goes_on(host: Hypervisor, server: str) -> None:
    boot, count = host.count(server)
    shown = host.cloud.act(server, "os-getConsoleOutput", {"length": 50})["output"]
    assert f"count {boot} {count}" in shown


def reboot(host: Hypervisor, server: str, kind: str, boot: str) -> str:
    host.cloud.act(server, "reboot", {"type": kind})
    again = host.counts_in_new_boot(server, boot)
    host.cloud.until(server, "ACTIVE", lambda shown: shown["OS-EXT-STS:power_state"] == 1)
    return again


def stop_and_start(host: Hypervisor, server: str, boot: str) -> str:
    cloud = host.cloud
    cloud.act(server, "os-stop")
    cloud.until(server, "SHUTOFF", lambda shown: shown["OS-EXT-STS:power_state"] == 4)
    assert host.pid(server) is None
    cloud.act(server, "os-start")
    cloud.until(server, "ACTIVE", lambda shown: shown["OS-EXT-STS:power_state"] == 1)
    return host.counts_in_new_boot(server, boot)


def assert_nothing_is_left(host: Hypervisor, server: str) -> None:
    host.cloud.assert_left_nothing(server)
    assert server not in host.domains()
    assert not host.folder(server).exists()
    poll("a port stays on the switch", lambda: len(host.taps()) == len(host.domains()), PATIENCE)
