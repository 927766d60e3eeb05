"""Profile full: MariaDB, RabbitMQ, three cells, a process per service, several hosts."""

from __future__ import annotations

import json
import os
import signal
import time

import amqp
import pymysql
import pytest
from tests.needs import inapplicable
from tests.real.clouds import Started

from kilonova.cloud.rest import Rest, poll
from kilonova.cloud.services.mariadb import DATABASES
from kilonova.cloud.services.rabbitmq import VHOSTS
from kilonova.cloud.site import LOOPBACK

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800), pytest.mark.xdist_group("full")]


def test_every_service_is_a_process_that_answers(full: Started) -> None:
    names = set(full.cloud.supervisor.running())
    expected = {"nova-api", "nova-metadata", "nova-scheduler", "nova-conductor", "nova-conductor-cell1"}
    assert expected | {"nova-conductor-cell2", "nova-compute-fake-2", "rabbitmq", "mariadb", "memcached"} <= names
    done = full.cli("status")
    assert done.returncode == 0, done.stdout


def states(full: Started) -> dict[str, str]:
    done = full.cli("status", "--json")
    return {one["name"]: one["state"] for one in json.loads(done.stdout)}


@pytest.mark.parametrize(
    "name", ["nova-conductor", "nova-conductor-cell1", "nova-scheduler", "nova-compute-fake-1", "mariadb", "memcached"]
)
def test_a_daemon_that_stands_still_does_not_answer(full: Started, name: str) -> None:
    pid = full.cloud.supervisor.pid(name)
    assert pid is not None
    question = next(daemon.question for daemon in full.cloud.daemons() if daemon.name == name)
    assert question is not None
    assert question()
    os.kill(pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        assert not question()
        found = states(full)
        assert time.monotonic() - begin < 30
        assert found.pop(name) == "stopped"
        if name not in ("mariadb", "memcached"):
            assert set(found.values()) == {"answers"}
        assert full.cli("status").returncode == 3
    finally:
        os.kill(pid, signal.SIGCONT)
    poll(f"{name} does not answer again", lambda: states(full)[name] == "answers", 60)


def test_a_host_is_restarted_by_its_name(full: Started) -> None:
    before = {name: full.cloud.supervisor.pid(name) for name in full.cloud.supervisor.running()}
    done = full.cli("restart", "nova-compute-fake-2")
    assert done.returncode == 0, done.stdout + done.stderr
    after = {name: full.cloud.supervisor.pid(name) for name in full.cloud.supervisor.running()}
    assert {name for name in before if before[name] != after[name]} == {"nova-compute-fake-2"}
    assert states(full)["nova-compute-fake-2"] == "answers"


def database_login(full: Started, user: str, password: str) -> pymysql.connections.Connection:
    return pymysql.connect(host=LOOPBACK, port=full.site.ports["mariadb"], user=user, password=password)


@pytest.mark.parametrize(
    ("user", "password"), [("root", ""), ("mysql", ""), ("cloud", "secret"), ("nova_api", "secret")]
)
def test_no_account_of_mariadb_has_a_password_that_everybody_knows(full: Started, user: str, password: str) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        database_login(full, user, password)


def test_an_account_of_mariadb_reaches_no_file_and_no_other_database(full: Started) -> None:
    name = "nova_cell1"
    with (
        database_login(full, name, full.site.password(f"database {name}")) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT @@secure_file_priv, LOAD_FILE('/etc/passwd')")
        folder, content = cursor.fetchone() or ("", "")
        assert folder
        assert content is None
        cursor.execute("SHOW DATABASES")
        assert {one for (one,) in cursor.fetchall()} & set(DATABASES) == {name}
        for statement in (
            "SELECT 1 INTO OUTFILE '/tmp/kilonova-was-here'",
            "SELECT * FROM nova_api.cell_mappings",
            "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE nova_cell1.instances",
        ):
            with pytest.raises(pymysql.err.MySQLError):
                cursor.execute(statement)


def test_mariadb_runs_as_its_own_user(full: Started) -> None:
    if os.getuid() != 0:
        inapplicable("a cloud that is not root's is its owner's throughout")
    pid = full.cloud.supervisor.pid("mariadb")
    assert os.stat(f"/proc/{pid}").st_uid not in (0, None)


def test_an_account_of_the_bus_enters_one_virtual_host(full: Started) -> None:
    def enters(user: str, password: str, vhost: str) -> bool:
        place = f"{LOOPBACK}:{full.site.ports['rabbitmq']}"
        connection = amqp.Connection(place, userid=user, password=password, virtual_host=vhost, connect_timeout=10)
        try:
            connection.connect()
        except (amqp.NotAllowed, amqp.AccessRefused):
            return False
        connection.close()
        return True

    password = full.site.password("bus nova_cell1")
    assert [vhost for vhost in (*VHOSTS, "/") if enters("nova_cell1", password, vhost)] == ["nova_cell1"]
    assert not enters("guest", "guest", "/")
    assert not enters("cloud", "secret", "nova")


def test_a_running_host_was_given_no_database(full: Started) -> None:
    pid = full.cloud.supervisor.pid("nova-compute-fake-1")
    assert pid is not None
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        files = [word for word in file.read().decode().split("\0") if word.endswith(".conf")]
    assert files
    for name in files:
        with open(name) as file:
            text = file.read()
        assert "mysql" not in text
        assert full.site.password("bus nova_cell2") not in text


def test_a_server_that_finds_no_host_lives_in_cell0(full: Started) -> None:
    full.openstack("flavor", "create", "--ram", "64", "--disk", "1000000", "--vcpus", "1", "huge", user="admin")
    demo, base = Rest(full.site, "demo", "demo"), full.site.url("compute", "/v2.1")
    try:
        full.openstack("server", "create", "--flavor", "huge", "--image", "guest", "--network", "private", "homeless")
        found = lambda: demo.get(f"{base}/servers/detail?name=homeless")["servers"][0]  # noqa: E731
        poll("the server is not in ERROR", lambda: found()["status"] == "ERROR", 60)
        assert found()["fault"]["message"].startswith("No valid host")
        full.openstack("server", "delete", "--wait", "homeless")
    finally:
        full.openstack("flavor", "delete", "huge", user="admin")


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
