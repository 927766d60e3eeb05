"""Profile full: MariaDB, RabbitMQ, three cells, a process per service, several hosts."""

from __future__ import annotations

import json

import pytest
from tests.real.clouds import Started

from kilonova.cloud.rest import Rest, poll

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800), pytest.mark.xdist_group("full")]


def test_every_service_is_a_process_that_answers(full: Started) -> None:
    names = set(full.cloud.supervisor.running())
    expected = {"nova-api", "nova-metadata", "nova-scheduler", "nova-conductor", "nova-conductor-cell1"}
    assert expected | {"nova-conductor-cell2", "nova-compute-fake-2", "rabbitmq", "mariadb", "memcached"} <= names
    done = full.cli("status")
    assert done.returncode == 0, done.stdout


def test_servers_live_in_both_cells(full: Started) -> None:
    """Enough servers that the scheduler uses every host; each is stopped, started, rebooted and deleted."""
    demo = Rest(full.site, "demo", "demo")
    base = full.site.url("compute", "/v2.1")
    create = ["--flavor", "c1.tiny", "--image", "guest", "--network", "private", "--min", "6", "--max", "6", "--wait"]
    full.openstack("server", "create", *create, "many")
    admin = Rest(full.site, "admin", "demo")
    servers = [one for one in admin.get(f"{base}/servers/detail")["servers"] if one["name"].startswith("many")]
    assert {one["status"] for one in servers} == {"ACTIVE"}
    hosts = {one["OS-EXT-SRV-ATTR:host"] for one in servers}
    assert "fake-2" in hosts
    assert hosts & {"fake-1", "fake-3"}
    server = servers[0]["id"]
    for words, status in ((["stop"], "SHUTOFF"), (["start"], "ACTIVE"), (["reboot", "--wait"], "ACTIVE")):
        full.openstack("server", *words, server)
        wanted = lambda status=status: demo.get(f"{base}/servers/{server}")["server"]["status"] == status  # noqa: E731
        poll(f"{server} is not {status}", wanted, 60)
    full.openstack("server", "delete", "--wait", *[one["id"] for one in servers])
    left = json.loads(full.openstack("server", "list", "-f", "json"))
    assert [one["Name"] for one in left] == ["first"]


def test_nothing_is_left_in_neutron_and_placement(full: Started) -> None:
    admin = Rest(full.site)
    ports = admin.get(full.site.url("neutron", "/v2.0/ports?device_owner=compute:nova"))["ports"]
    assert len(ports) == 1
    version = {"OpenStack-API-Version": "placement 1.36"}
    base = full.site.url("placement")
    consumers: set[str] = set()
    for provider in admin.get(f"{base}/resource_providers", **version)["resource_providers"]:
        held = admin.get(f"{base}/resource_providers/{provider['uuid']}/allocations", **version)
        consumers |= set(held["allocations"])
    assert consumers == {ports[0]["device_id"]}
