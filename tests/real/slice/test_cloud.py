"""`./run cloud` as its user sees it: profile embedded, with real guests where the machine allows."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.needs import inapplicable, lacking
from tests.real.clouds import Started

from kilonova.cloud import addresses
from kilonova.cloud.commands import ok
from kilonova.cloud.first_server import FirstServer
from kilonova.cloud.rest import poll
from kilonova.cloud.services.libvirt import Libvirt
from kilonova.cloud.services.ovn import Ovn

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200), pytest.mark.xdist_group("cloud")]

MEMORY_MIB = 200


def show(cloud: Started, server: str) -> Any:
    return json.loads(cloud.openstack("server", "show", server, "-f", "json"))


def until(cloud: Started, server: str, status: str, within: float = 120) -> None:
    poll(f"{server} is not {status}", lambda: show(cloud, server)["status"] == status, within)


def test_the_first_server_is_active_and_its_console_is_shown(started: Started) -> None:
    assert show(started, "first")["status"] == "ACTIVE"
    if started.real:
        assert "login:" in started.said
        assert "metadata from metadata service" in started.said
        assert "user-data: hello from user data" in started.said
    assert "clouds.yaml" in started.said


def test_ssh_with_the_injected_key(started: Started) -> None:
    if not started.real:
        lacking("guests", "fake guests have no ssh")
    first = FirstServer(started.site)
    address = first.address()
    assert address is not None
    assert first.reachable(60)
    done = subprocess.run(first.ssh(address, "hostname"), capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "first"


def test_the_one_process_is_small(started: Started) -> None:
    if started.site.full:
        inapplicable("profile full has a process per service")
    size = started.cloud.supervisor.memory("kilonova")
    assert size is not None
    assert size.pss <= MEMORY_MIB


def test_a_life_by_the_command_line_client(started: Started) -> None:
    wanted = ["--flavor", "c1.tiny", "--image", "guest", "--network", "private", "--wait"]
    config_drive = ["--use-config-drive"] if started.real else []
    started.openstack("server", "create", *wanted, *config_drive, "second")
    assert "second" in started.openstack("server", "list")
    assert show(started, "second")["status"] == "ACTIVE"
    if started.real:
        read = lambda: "READY second" in started.openstack("console", "log", "show", "second")  # noqa: E731
        poll("the guest is not ready", read, 120, 1)
        assert "config drive" in started.openstack("console", "log", "show", "second")
    started.openstack("server", "stop", "second")
    until(started, "second", "SHUTOFF")
    started.openstack("server", "start", "second")
    until(started, "second", "ACTIVE")
    started.openstack("server", "reboot", "--soft", "--wait", "second")
    started.openstack("server", "reboot", "--hard", "--wait", "second")
    assert show(started, "second")["status"] == "ACTIVE"
    started.openstack("server", "delete", "--wait", "second")
    assert "second" not in started.openstack("server", "list", "-f", "value")


def test_a_server_that_finds_no_host_is_an_error_that_can_be_seen_and_deleted(started: Started) -> None:
    """It lives in cell0."""
    started.openstack("flavor", "create", "--ram", "64", "--disk", "1000000", "--vcpus", "1", "huge", user="admin")
    try:
        wanted = ["--flavor", "huge", "--image", "guest", "--network", "private"]
        started.openstack("server", "create", *wanted, "homeless")
        until(started, "homeless", "ERROR")
        assert show(started, "homeless")["fault"]["message"].startswith("No valid host")
        started.openstack("server", "delete", "--wait", "homeless")
    finally:
        started.openstack("flavor", "delete", "huge", user="admin")


def test_a_passer_by_finds_nothing(started: Started) -> None:
    """Neither in files, nor in what the processes show of themselves."""
    place = started.site
    assert place.root.stat().st_mode & 0o777 == 0o700
    for pattern in ("data/**/*.db", "data/**/disk*", "data/**/_base/*", "data/image/*", "log/*", "etc/**/*", "*openrc"):
        for file in place.root.glob(pattern):
            assert file.is_dir() or file.stat().st_mode & 0o007 == 0, file
    secrets = [place.password(owner) for owner in ("user admin", "user nova", "user demo", "metadata", "seal")]
    shown = processes_naming("")
    shown += [file.read_text(errors="replace") for file in place.log.iterdir() if file.is_file()]
    assert not [text for text in shown if any(secret in text for secret in secrets)]
    if os.getuid() == 0:
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run([*as_nobody, "find", place.root, "-mindepth", "1"], capture_output=True, text=True)
        assert done.stdout == ""
        assert "Permission denied" in done.stderr


def test_a_server_answers_at_its_fixed_and_at_its_floating_address(started: Started) -> None:
    if not started.real:
        lacking("guests", "fake guests have no ssh")
    first = FirstServer(started.site)
    fixed = first.address()
    assert fixed is not None
    floating = started.openstack(
        "floating", "ip", "create", "public", "-f", "value", "-c", "floating_ip_address"
    ).strip()
    started.openstack("server", "add", "floating", "ip", "first", floating)
    try:
        for address in (floating, fixed):
            poll(f"ssh to {address} does not answer", lambda to=address: ok(first.ssh(to, "true"), timeout=30), 60, 1)
    finally:
        started.openstack("floating", "ip", "delete", floating)


def test_a_guest_posts_its_password(started: Started) -> None:
    if not started.real:
        lacking("guests", "fake guests post nothing")
    first = FirstServer(started.site)
    address = first.address()
    assert address is not None
    path = "/openstack/latest/password"
    post = f"printf 'POST {path} HTTP/1.0\\r\\nContent-Length: 6\\r\\n\\r\\nsesame' | nc 169.254.169.254 80"
    told = subprocess.run(first.ssh(address, post), capture_output=True, text=True, timeout=60)
    # A cloud that is tested a second time has one already.
    assert told.stdout.split()[1] in ("200", "409")
    read = subprocess.run(
        first.ssh(address, f"wget -qO- http://169.254.169.254{path}"), capture_output=True, text=True, timeout=60
    )
    assert read.stdout == "sesame"


def test_the_one_process_restarts_and_guests_run_on(started: Started) -> None:
    name = "nova-api" if started.site.full else "kilonova"
    before = started.cloud.supervisor.pid(name)
    done = started.cli("restart", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert started.cloud.supervisor.pid(name) not in (None, before)
    assert show(started, "first")["status"] == "ACTIVE"
    if started.real:
        assert len(Libvirt(started.site, started.cloud.supervisor).domains()) == 1


def test_a_server_on_volumes(started: Started) -> None:
    """Its root disk is a volume made of the image; an empty one goes when it goes."""
    if not started.site.settings.volumes:
        inapplicable("the cloud has no volumes")
    empty = "source_type=blank,destination_type=volume,volume_size=1,delete_on_termination=true,boot_index=-1"
    wanted = ["--flavor", "c1.tiny", "--image", "guest", "--boot-from-volume", "1", "--block-device", empty]
    key = ["--key-name", "cloud"] if started.real else []
    started.openstack("server", "create", *wanted, *key, "--network", "private", "--wait", "onvolumes")
    shown = show(started, "onvolumes")
    assert shown["status"] == "ACTIVE"
    kept, going = sorted(shown["volumes_attached"], key=lambda one: bool(one["delete_on_termination"]))
    assert volumes(started) == {kept["id"]: "in-use", going["id"]: "in-use"}
    if started.real:
        first = FirstServer(started.site)
        address = shown["addresses"]["private"][0]
        poll("ssh does not answer", lambda: ok(first.ssh(address, "true"), timeout=30), 120, 1)
        look = "cat /sys/block/vda/serial; echo; cat /sys/block/vdb/serial; echo; df / | grep -o /dev/vda2"
        done = subprocess.run(first.ssh(address, look), capture_output=True, text=True, timeout=60)
        # virtio shows the first 20 characters of a serial number.
        assert done.stdout.split() == [kept["id"][:20], going["id"][:20], "/dev/vda2"]
    started.openstack("server", "delete", "--wait", "onvolumes")
    poll("volumes after the server", lambda: volumes(started) == {kept["id"]: "available"}, 60)
    started.openstack("volume", "delete", kept["id"])
    assert json.loads(started.openstack("volume", "attachment", "list", "-f", "json")) == []


def volumes(cloud: Started) -> dict[str, str]:
    """Status by id."""
    return {one["ID"]: one["Status"] for one in json.loads(cloud.openstack("volume", "list", "-f", "json"))}


def test_nothing_is_left_of_a_deleted_server(started: Started) -> None:
    """Ports and allocations are those of the first server alone."""
    first = show(started, "first")["id"]
    ports = json.loads(started.openstack("port", "list", "--device-owner", "compute:nova", "-f", "json", "--long"))
    devices = {port.get("device_id") or port.get("Device ID") for port in ports}
    assert devices <= {first, None}
    assert len(ports) == 1
    if started.real:
        assert len(Libvirt(started.site, started.cloud.supervisor).domains()) == 1


def test_status_says_that_everything_answers(started: Started) -> None:
    done = started.cli("status")
    assert done.returncode == 0, done.stdout
    assert all(name in done.stdout for name in started.cloud.daemon_names())
    assert "down" not in done.stdout
    found = json.loads(started.cli("status", "--json").stdout)
    assert {one["name"]: one["state"] for one in found} == dict.fromkeys(started.cloud.daemon_names(), "answers")


def test_status_says_what_stands_still(started: Started) -> None:
    name = "keystone"
    master = started.cloud.supervisor.pid(name)
    assert master is not None
    os.killpg(master, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        done = started.cli("status", "--json")
        assert time.monotonic() - begin < 30
        assert done.returncode == 3
        assert {one["name"]: one["state"] for one in json.loads(done.stdout)}[name] == "stopped"
    finally:
        os.killpg(master, signal.SIGCONT)


def test_a_second_up_does_nothing(started: Started) -> None:
    begin = time.monotonic()
    pids = {name: started.cloud.supervisor.pid(name) for name in started.cloud.supervisor.names()}
    done = started.cli("up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs already" in done.stdout
    assert {name: started.cloud.supervisor.pid(name) for name in pids} == pids
    assert time.monotonic() - begin < 30


def test_zz_down_stops_all_and_up_brings_it_back(started: Started) -> None:
    """The last of the file: the cloud is started anew."""
    done = started.cli("down")
    assert done.returncode == 0, done.stdout + done.stderr
    assert started.cloud.supervisor.names() == []
    assert processes_naming(started.root) == []
    if started.real:
        said = [file.read_text(errors="replace") for file in started.site.data.glob("compute/instances/*/console.log")]
        assert len(said) == 1
        assert "Power down" in said[0].splitlines()[-1]
    begin = time.monotonic()
    done = started.cli("up")
    took = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    assert show(started, "first")["status"] in ("ACTIVE", "SHUTOFF")
    if started.real:
        assert "Waiting until the first server says READY" in done.stdout
        # Only this boot: the name of the server is known from its disk, so nothing of its first boot is shown.
        assert done.stdout.count("READY first") == 1
        assert "ssh answers" in done.stdout
    print(f"all services answered again after {took:.0f} s")


def test_zzz_nothing_is_left_of_a_cloud_that_ended_badly(started: Started) -> None:
    """Whatever of it was killed: the last of all, since the cloud is removed."""
    if "KILONOVA_TEST_CLOUD" in os.environ:
        inapplicable("the cloud was here before, and is left")
    plan = addresses.plan(started.site.settings.number)
    number = plan.host_device.split("-")[0]
    devices = Ovn(started.site, started.cloud.supervisor).devices()
    assert (plan.host_device in devices) == started.real
    for name in ("ovs-vswitchd", "ovsdb-ovs", "libvirtd", "metadata-proxy"):
        if pid := started.cloud.supervisor.pid(name):
            os.kill(pid, signal.SIGKILL)
    done = started.cli("down", "--wipe")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not started.root.exists()
    poll("processes are left", lambda: not processes_naming(started.root), 20)
    if started.real:
        links = {name for _, name in socket.if_nameindex()}
        assert not links & {plan.integration, plan.external, plan.host_device, "ovs-netdev", *devices}
        spaces = Path("/run/netns")
        left = [path.name for path in spaces.iterdir()] if spaces.exists() else []
        assert not [name for name in left if name.startswith(f"{number}-")]


def processes_naming(root: Path | str) -> list[str]:
    """Command lines of other processes in which the state folder appears."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(root) in words and int(folder.name) != os.getpid():
            found.append(words)
    return found
