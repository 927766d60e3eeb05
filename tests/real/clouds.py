"""Clouds started the way a user starts them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kilonova.cloud import library, site
from kilonova.cloud.services.ovn import datapath_taken
from kilonova.cloud.site import Site
from kilonova.cloud.stack import Cloud

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def bring_hypervisor(started: ExitStack) -> None:
    """A libvirt with a guest image, named to the tests by the environment unless it names one; for root alone."""
    if os.getuid() != 0 or "KILONOVA_LIBVIRT_URI" in os.environ:
        return
    root = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="kn-hv-", ignore_cleanup_errors=True)))
    hypervisor = started.enter_context(library.hypervisor(root))
    os.environ["KILONOVA_LIBVIRT_URI"] = hypervisor.uri
    os.environ["KILONOVA_GUEST_IMAGE"] = str(hypervisor.image)
    os.environ["KILONOVA_LIBVIRT_ROOT"] = str(hypervisor.root)


def real_guests_possible() -> bool:
    """Root, tap devices, the programs or a way to get them, and no other switch in user space."""
    programs = all(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in ("libvirtd", "ovs-vswitchd"))
    return os.getuid() == 0 and Path("/dev/net/tun").exists() and programs and not datapath_taken()


@dataclasses.dataclass
class Started:
    """A cloud under test and what `up` printed."""

    root: Path
    driver: str
    said: str

    @property
    def site(self) -> Site:
        place = site.load(self.root)
        assert place is not None
        return place

    @property
    def cloud(self) -> Cloud:
        return Cloud(self.site)

    @property
    def real(self) -> bool:
        return self.driver == "libvirt"

    def cli(self, *words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        return kilonova("cloud", words[0], "--state", str(self.root), *words[1:], timeout=timeout)

    def openstack(self, *words: str, user: str = "demo") -> str:
        """What python-openstackclient prints."""
        env = os.environ | {"OS_CLIENT_CONFIG_FILE": str(self.root / "clouds.yaml"), "OS_CLOUD": user}
        argv = [str(BIN / "openstack"), *words]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout


def kilonova(*words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    argv = [str(BIN / "python"), "-m", "kilonova.cmd.kilonova", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=timeout)


@contextmanager
def cloud_up(driver: str, port_offset: int, options: Sequence[str] = ()) -> Iterator[Started]:
    """A cloud in a folder of its own, wiped at the end; or the one in KILONOVA_TEST_CLOUD, which is left."""
    if given := os.environ.get("KILONOVA_TEST_CLOUD"):
        place = site.load(Path(given))
        assert place is not None, f"there is no cloud in {given}"
        said = kilonova("cloud", "up", "--state", given).stdout
        yield Started(Path(given), place.settings.driver, said)
        return
    root = Path(tempfile.mkdtemp(prefix="kn-"))
    words = ["--state", str(root), "--driver", driver, "--port-offset", str(port_offset), *options]
    try:
        done = kilonova("cloud", "up", *words, timeout=1200)
        assert done.returncode == 0, done.stdout + done.stderr
        yield Started(root, driver, done.stdout)
    finally:
        kilonova("cloud", "down", "--wipe", "--state", str(root))
        shutil.rmtree(root, ignore_errors=True)
