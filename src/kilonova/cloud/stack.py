"""A whole cloud: which services it has, in which order they come up and go down."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kilonova.cloud import lvm, packages, steps
from kilonova.cloud.daemons import Daemon, Supervisor, stop_all
from kilonova.cloud.errors import CloudError
from kilonova.cloud.first_server import FirstServer
from kilonova.cloud.services.cinder import Cinder
from kilonova.cloud.services.glance import Glance
from kilonova.cloud.services.image import GuestImage
from kilonova.cloud.services.keystone import Keystone
from kilonova.cloud.services.kilonova import Compute
from kilonova.cloud.services.libvirt import Libvirt
from kilonova.cloud.services.mariadb import Mariadb
from kilonova.cloud.services.memcached import Memcached
from kilonova.cloud.services.neutron import Neutron
from kilonova.cloud.services.ovn import Ovn
from kilonova.cloud.services.peer import Peer
from kilonova.cloud.services.placement import Placement
from kilonova.cloud.services.rabbitmq import Rabbitmq
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import Site
from kilonova.cloud.status import Standing, standings
from kilonova.cloud.steps import Reporter, Step

LONGEST_STATE_PATH = 70
"""A socket's path has at most 107 bytes, and ours lie some folders deeper."""

LAST_TO_STOP = (
    "rabbitmq",
    "epmd",
    "memcached",
    "mariadb",
    "virtlogd",
    "ovs-vswitchd",
    "ovsdb-sb",
    "ovsdb-nb",
    "ovsdb-ovs",
)


@dataclasses.dataclass(frozen=True)
class Choice:
    """What of a cloud to run. The defaults are everything that the settings ask for."""

    compute: bool = True
    """Our own services; without them only what they need is started."""


class Cloud:
    """The services of one site."""

    def __init__(self, site: Site, choice: Choice | None = None) -> None:
        self.site = site
        self.choice = choice or Choice()
        self.supervisor = Supervisor(site)

    def services(self) -> list[Service]:
        site = self.site
        kinds: list[type[Service]] = []
        if site.full:
            kinds += [Mariadb, Memcached]
        if site.bus:
            kinds += [Rabbitmq]
        kinds += [Keystone, Placement, Glance]
        if site.settings.network == "ovn":
            kinds += [Ovn]
        kinds += [Neutron]
        if site.settings.volumes:
            kinds += [Cinder]
        if site.settings.driver == "libvirt":
            kinds += [GuestImage, Libvirt]
        if self.choice.compute:
            kinds += [Peer if site.peer else Compute]
        return [kind(site, self.supervisor) for kind in kinds]

    def steps(self) -> list[Step]:
        """Every step, each with only those needs that this cloud has."""
        site = self.site
        plan = [
            Step(
                "packages",
                lambda: packages.install(site),
                log=site.log / "apt.log",
                note="what is missing on this machine is installed with apt",
            ),
            Step(
                "environment",
                self.environment,
                ("packages",),
                site.log / "environment.log",
                note="the first time, the other services are fetched from PyPI and uWSGI is compiled; some minutes",
            ),
        ]
        services = self.services()
        for service in services:
            plan += service.steps()
        if self.choice.compute and site.settings.first_server:
            needs = ("compute data", "glance data", "neutron data", "host port", "hosts")
            plan.append(Step("first server", FirstServer(site).boot, needs, services[-1].log))
        present = {step.name for step in plan}
        extra = self.extra_needs(present)
        return [
            dataclasses.replace(step, needs=tuple(need for need in (*step.needs, *extra(step.name)) if need in present))
            for step in plan
        ]

    def extra_needs(self, present: set[str]) -> Callable[[str], Sequence[str]]:
        """Waits between services: databases before who uses them, the network before who plugs into it."""
        infrastructure = [name for name in ("mariadb", "memcached", "rabbitmq") if name in present]
        needs: dict[str, Sequence[str]] = {
            "neutron": (*infrastructure, "ovn"),
            "neutron data": ("ovn",),
            "libvirt": ("ovn",),
            "compute": (*infrastructure, "libvirt", "hypervisor", "keystone", "identity"),
        }
        for name in ("keystone", "placement", "glance", "cinder"):
            needs[name] = infrastructure
        if "mariadb" in present:
            for name in ("keystone", "placement", "glance", "neutron", "cinder", "compute"):
                needs[f"{name} set-up"] = ("mariadb",)
        return lambda name: needs.get(name, ())

    def environment(self) -> None:
        packages.ensure_services_venv(self.site.log / "environment.log")

    def up(self, reporter: Reporter | None = None) -> dict[str, float]:
        """Bring everything up; returns seconds by step. Doing it again repeats only what is not done."""
        if len(str(self.site.root)) > LONGEST_STATE_PATH:
            raise CloudError(f"{self.site.root} is too long for the sockets in it; choose a shorter --state")
        self.site.prepare()
        lvm.activate(self.site, self.site.log / "cinder-setup.log")
        return steps.run(self.steps(), reporter)

    def daemon_names(self) -> list[str]:
        return [daemon.name for daemon in self.daemons()]

    def complete(self) -> bool:
        """Whether everything is set up, runs and answers."""
        if not all(step.once is None or step.once.exists() for step in self.steps()):
            return False
        return all(standing.good for standing in self.standings())

    def daemons(self) -> list[Daemon]:
        return [daemon for service in self.services() for daemon in service.daemons()]

    def standings(self) -> list[Standing]:
        """How every daemon is: each is asked."""
        return standings(self.supervisor, self.daemons())

    def restart(self, name: str, told: Callable[[str], None] = lambda name: None) -> None:
        """End the daemon of that name, or all those of that service, and start them with a fresh configuration."""
        services = self.services()
        for service in services:
            chosen = [daemon for daemon in service.daemons() if name in (daemon.name, service.name)]
            if not chosen:
                continue
            for daemon in reversed(chosen):
                if self.supervisor.stop(daemon.name, daemon.stop_within, daemon.stop_signal):
                    told(daemon.name)
            service.start()
            return
        known = ", ".join(daemon.name for daemon in self.daemons())
        raise CloudError(f"there is no daemon {name}; there are {known}")

    def down(self, told: Callable[[str], None] = lambda name: None, wipe: bool = False) -> None:
        """Stop guests, then services, then what they stand on; only processes that this cloud started."""
        site = self.site
        libvirt = Libvirt(site, self.supervisor)
        for name in libvirt.domains():
            told(f"guest {name}")
        compute = [name for name in self.supervisor.names() if name.startswith(("kilonova", "nova-"))]
        self.stop(compute, told)
        libvirt.power_off()
        ovn = Ovn(site, self.supervisor)
        plugged = ovn.devices() if site.settings.network == "ovn" else []
        others = [name for name in self.supervisor.names() if name not in LAST_TO_STOP]
        self.stop(others, told)
        self.stop([name for name in LAST_TO_STOP if name in self.supervisor.names()], told)
        for name in libvirt.end_orphans():
            told(f"guest {name}")
        if site.settings.network == "ovn":
            ovn.clean(plugged)
        lvm.deactivate(site, site.log / "cinder-setup.log", remove=wipe)
        if wipe:
            self.wipe()

    def stop(self, names: Sequence[str], told: Callable[[str], None]) -> None:
        with concurrent.futures.ThreadPoolExecutor(8, "stop") as pool:
            for stopped in pool.map(lambda name: stop_all(self.supervisor, [name]), names):
                for name in stopped:
                    told(name)

    def wipe(self) -> None:
        """Remove the state folder; a guest's file system that still goes away is waited for."""
        for _ in range(5):
            shutil.rmtree(self.site.root, ignore_errors=True)
            if not self.site.root.exists():
                return
            time.sleep(0.5)
        raise CloudError(f"{self.site.root} could not be removed wholly")

    def logs(self, name: str | None = None) -> list[Path]:
        """Log files, the newest last; with a name, those of that service."""
        found = [file for file in self.site.log.glob("*") if file.is_file() and file.stat().st_size]
        if name is not None:
            found = [file for file in found if file.name.startswith(name)]
        with contextlib.suppress(OSError):
            found.sort(key=lambda file: file.stat().st_mtime)
        return found
