"""The guest image, and whether this machine's KVM can boot it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from kilonova.cloud.commands import TOOLS, run
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import Site, cache_root
from kilonova.cloud.steps import Step

BUILDER = Path(__file__).parent.parent / "image" / "build"
TRIAL_SECONDS = 8
BOOTED = b"Linux version"


class GuestImage(Service):
    name = "guest image"

    def daemons(self) -> list[Daemon]:
        return []

    @property
    def log(self) -> Path:
        return self.site.log / "image.log"

    def steps(self) -> list[Step]:
        build = Step(self.name, self.build, ("packages",), self.log, self.stamp("built"))
        trial = Step("hypervisor", self.trial, (self.name,), self.log, self.stamp("hypervisor"))
        return [build, trial]

    def build(self) -> None:
        out = self.site.data / "image"
        env = {"PACKAGES": str(cache_root() / "guest-packages")}
        run([BUILDER, out], self.log, env, timeout=600)

    def trial(self) -> None:
        """Find out by trying: a KVM that starts a machine may still be unable to run a kernel."""
        kind = "kvm" if kvm_boots(self.site.data / "image", self.log) else "qemu"
        (self.site.data / "virt-type").write_text(kind)


def virt_type(site: Site) -> str:
    """`kvm` or `qemu`, as the trial has found."""
    file = site.data / "virt-type"
    return file.read_text() if file.exists() else "qemu"


def kvm_boots(image: Path, log: Path, within: float = TRIAL_SECONDS) -> bool:
    """Whether a guest's kernel comes to life under KVM within some seconds (it takes one where KVM works)."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "192", "-nodefaults", "-no-reboot"]
    argv += ["-display", "none", "-serial", "stdio", "-kernel", str(image / "vmlinuz"), "-append", "console=ttyS0"]
    with log.open("ab") as file:
        file.write(b"$ " + " ".join(argv).encode() + b"\n")
        file.flush()
        path = f"{os.environ.get('PATH', '')}:{TOOLS}"
        begin = file.tell()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env={"PATH": path})
    try:
        end = time.monotonic() + within
        while time.monotonic() < end:
            with log.open("rb") as file:
                file.seek(begin)
                if BOOTED in file.read():
                    return True
            if process.poll() is not None:
                return False
            time.sleep(0.2)
        return False
    finally:
        process.kill()
        process.wait()
