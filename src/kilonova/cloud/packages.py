"""What has to be on the machine: Debian packages and the Python environment of the other services."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kilonova.cloud.commands import PUBLIC, TOOLS, run
from kilonova.cloud.errors import CloudError
from kilonova.cloud.site import Site, cache_root

BASE = {"gcc": "gcc", "ip": "iproute2", "qemu-img": "qemu-utils"}
"""Programs that every cloud needs and the package each comes from; uWSGI is compiled."""

LIBVIRT = {
    "libvirtd": "libvirt-daemon",
    "virsh": "libvirt-clients",
    "qemu-system-x86_64": "qemu-system-x86",
    "ssh-keygen": "openssh-client",
}
OVN = {"ovs-vswitchd": "openvswitch-switch", "ovn-northd": "ovn-central", "ovn-controller": "ovn-host"}
FULL = {"mariadbd": "mariadb-server", "rabbitmq-server": "rabbitmq-server", "memcached": "memcached"}
IMAGE = {
    "mke2fs": "e2fsprogs",
    "mcopy": "mtools",
    "mkfs.vfat": "dosfstools",
    "syslinux": "syslinux",
    "cpio": "cpio",
    "zstd": "zstd",
    "xz": "xz-utils",
    "depmod": "kmod",
    "openssl": "openssl",
}
LIBRARIES = {
    "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so": "libvirt-daemon-driver-qemu",
    "/usr/lib/syslinux/mbr/mbr.bin": "syslinux-common",
    # It makes the user libvirt-qemu, without which libvirt's QEMU driver does not load.
    "/usr/share/doc/libvirt-daemon-system/copyright": "libvirt-daemon-system",
}
"""Files that stand for packages without a program of their own."""


def foreign_path() -> Path:
    """Folder of the modules that run inside the other services; it goes onto their PYTHONPATH."""
    return Path(__file__).parent / "foreign"


def programs(site: Site) -> dict[str, str]:
    needed = dict(BASE)
    if site.settings.driver == "libvirt":
        needed |= LIBVIRT | IMAGE
    if site.settings.network == "ovn":
        needed |= OVN
    if site.full:
        needed |= FULL
    elif site.bus:
        needed |= {"rabbitmq-server": FULL["rabbitmq-server"]}
    return needed


def missing(site: Site) -> list[str]:
    """Debian packages that are still to be installed."""
    path = f"{os.environ.get('PATH', '')}:{TOOLS}"
    lacking = [package for program, package in programs(site).items() if not shutil.which(program, path=path)]
    if site.settings.driver == "libvirt":
        lacking += [package for file, package in LIBRARIES.items() if not Path(file).exists()]
    if not python_headers().exists():
        lacking.append("python3-dev")
    return sorted(set(lacking))


def python_headers() -> Path:
    import sysconfig

    return Path(sysconfig.get_paths()["include"]) / "Python.h"


def install(site: Site) -> None:
    """Install what is missing with apt; none of the packages' own services is started."""
    lacking = missing(site)
    if not lacking:
        return
    if not shutil.which("apt-get"):
        raise CloudError(f"these programs are missing and there is no apt-get to install them: {' '.join(lacking)}")
    sudo = [] if os.getuid() == 0 else ["sudo"]
    log = site.log / "apt.log"
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    run([*sudo, "apt-get", "update", "-q"], log, env, timeout=600, umask=PUBLIC)
    install = ["apt-get", "install", "-qy", "--no-install-recommends", *lacking]
    with services_held_back(sudo):
        run([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", *install], log, env, timeout=1800, umask=PUBLIC)
    keep_from_booting(lacking, sudo, log)


def keep_from_booting(installed: list[str], sudo: list[str], log: Path) -> None:
    """The services of packages that are here for this cloud alone do not start with the machine either."""
    if not Path("/run/systemd/system").exists():
        return
    files = [Path(word) for word in run(["dpkg", "-L", *installed], check=False).split()]
    units = {file.name for file in files if "systemd/system" in str(file) and file.suffix in (".service", ".socket")}
    whole = sorted(unit for unit in units if "@" not in unit)
    if whole:
        run([*sudo, "systemctl", "disable", "--quiet", *whole], log, check=False)


@contextmanager
def services_held_back(sudo: list[str]) -> Iterator[None]:
    """Keep packages from starting their services: Debian asks `policy-rc.d`.

    A machine's own policy is left alone; where there is none, ours is there for as long as apt runs.
    """
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    with tempfile.NamedTemporaryFile("w", suffix=".policy") as file:
        file.write("#!/bin/sh\nexit 101\n")
        file.flush()
        run([*sudo, "install", "-m", "755", file.name, policy])
        try:
            yield
        finally:
            run([*sudo, "rm", "-f", policy])


def requirements() -> Path:
    return Path(__file__).parent / "requirements.txt"


def services_venv() -> Path:
    """The environment of Keystone, Glance, Placement, Neutron and Cinder: one for each set of pins and Python."""
    given = os.environ.get("KILONOVA_CLOUD_SERVICES_VENV")
    if given:
        return Path(given)
    mark = hashlib.sha256(requirements().read_bytes() + sys.version.split()[0].encode()).hexdigest()[:12]
    return cache_root() / f"services-{mark}"


def ensure_services_venv(log: Path) -> Path:
    """Make the environment unless it is whole; one maker at a time."""
    venv = services_venv()
    stamp = venv / ".whole"
    if stamp.exists():
        return venv
    venv.parent.mkdir(parents=True, exist_ok=True)
    with venv.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            python = sys.executable if sys.prefix == sys.base_prefix else str(Path(sys.base_prefix) / "bin" / "python3")
            run([uv(), "venv", "--clear", "--quiet", "--python", python, venv], log, umask=PUBLIC)
            install_into(venv, ["--requirement", requirements()], log)
            stamp.touch()
    return venv


def install_into(venv: Path, what: Iterable[object], log: Path) -> None:
    run(
        [uv(), "pip", "install", "--quiet", "--python", venv / "bin" / "python", *what], log, timeout=1800, umask=PUBLIC
    )


def uv() -> str:
    found = os.environ.get("KILONOVA_UV") or shutil.which("uv")
    if not found:
        raise CloudError("uv is not installed; `./run` installs it, or `pip install uv`")
    return found
