"""A libvirtd for tests: its folders are private by a mount namespace, the machine's own libvirt is not touched."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator

import libvirt

FOLDERS = ("/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/run/libvirt")
_READY_WITHIN = 60


class Unavailable(Exception):
    """Why there can be none here."""


@contextlib.contextmanager
def running(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Start virtlogd and libvirtd below `root`; gives the URI and the directory that is `/` to them.

    Raises Unavailable.
    """
    if os.geteuid() != 0:
        raise Unavailable("only root can start a libvirtd for guests")
    for program in ("libvirtd", "virtlogd", "unshare", "qemu-system-x86_64"):
        if not shutil.which(program):
            raise Unavailable(f"{program} is not installed")
    binds = []
    for folder in FOLDERS:
        own = root / folder.strip("/").replace("/", "-")
        own.mkdir(parents=True)
        binds.append(f"mkdir -p {folder} && mount --bind {own} {folder} && ")
    etc = root / "etc-libvirt"
    (etc / "libvirtd.conf").write_text(f'auth_unix_rw = "none"\nhost_uuid = "{uuid.uuid4()}"\n')
    (etc / "qemu.conf").write_text(
        'user = "root"\ngroup = "root"\nsecurity_driver = "none"\nremember_owner = 0\nnamespaces = []\n'
        "cgroup_controllers = []\n"
    )
    daemons = [_start(root, "".join(binds), program) for program in ("virtlogd", "libvirtd")]
    try:
        address = f"qemu:///system?socket={root / 'run-libvirt' / 'libvirt-sock'}"
        _wait(address, daemons)
        yield address, f"/proc/{daemons[1].pid}/root"
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(20)


def _start(root: pathlib.Path, binds: str, program: str) -> subprocess.Popen[bytes]:
    log = (root / f"{program}.log").open("wb")
    command = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        f"{binds}exec {program} --pid-file {root}/{program}.pid",
    ]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _wait(address: str, daemons: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while True:
        try:
            libvirt.open(address).close()
            return
        except libvirt.libvirtError as failure:
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in daemons):
                raise Unavailable(f"libvirtd does not start: {failure}") from failure
        time.sleep(0.2)
