"""How the cloud's guests end. `virsh` is a script that keeps its guests as files."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kilonova.cloud.daemons import Supervisor, wait_until
from kilonova.cloud.services.libvirt import Libvirt, command_line
from kilonova.cloud.site import Site

VIRSH = """#!/bin/sh
cd {guests} || exit 1
shift 2
echo "$*" >>../said
case $1 in
list) ls ;;
shutdown) case $2 in deaf) ;; late) [ -e ../asked ] && rm late; touch ../asked ;; *) rm "$2" ;; esac ;;
destroy) rm "$2" ;;
esac
"""


@pytest.fixture
def libvirt(make_site: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Libvirt:
    (tmp_path / "guests").mkdir()
    program = tmp_path / "bin" / "virsh"
    program.parent.mkdir()
    program.write_text(VIRSH.format(guests=tmp_path / "guests"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    supervisor = Supervisor(make_site())
    monkeypatch.setattr(supervisor, "pid", lambda name: 1)
    return Libvirt(supervisor.site, supervisor)


def test_guests_shut_down_and_only_a_deaf_one_loses_its_power(libvirt: Libvirt, tmp_path: Path) -> None:
    for name in ("good", "late", "deaf"):
        (tmp_path / "guests" / name).touch()
    libvirt.power_off(times=3, patience=0)
    assert libvirt.domains() == []
    said = (tmp_path / "said").read_text().splitlines()
    assert said.count("shutdown good") == 1
    assert said.count("shutdown late") == 2
    assert said.count("shutdown deaf") == 3
    assert [line for line in said if line.startswith("destroy")] == ["destroy deaf"]


def test_no_guests_are_not_waited_for(libvirt: Libvirt, tmp_path: Path) -> None:
    libvirt.power_off()
    assert set((tmp_path / "said").read_text().splitlines()) == {"list --name"}


def test_nothing_of_the_machines_own_daemons_is_in_their_way(libvirt: Libvirt) -> None:
    """/run/virtlogd.pid is locked by the one that holds it."""
    for daemon in libvirt.daemons():
        assert f"--pid-file {libvirt.data}/{daemon.name}.pid" in str(daemon.argv[-1])


def test_a_guest_that_outlived_its_libvirtd_is_ended(libvirt: Libvirt, tmp_path: Path) -> None:
    pids = libvirt.data / "run" / "qemu"
    pids.mkdir(parents=True)
    script = "import time; time.sleep(60)"
    ours = subprocess.Popen([sys.executable, "-c", script, str(libvirt.site.data / "disk")])
    other = subprocess.Popen([sys.executable, "-c", script])
    try:
        (pids / "guest.pid").write_text(f"{ours.pid}\n")
        # A number that somebody else has by now.
        (pids / "gone.pid").write_text(f"{other.pid}")
        assert wait_until(lambda: str(libvirt.site.data) in command_line(ours.pid), 5)
        assert libvirt.end_orphans() == ["guest"]
        assert ours.wait(5) == -signal.SIGKILL
        assert other.poll() is None
        assert libvirt.end_orphans() == []
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
