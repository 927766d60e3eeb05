"""The cloud as a library, for tests and measurements: start what is needed, get addresses and credentials, stop it.

with surroundings(Path("/tmp/kn"), profile="full", port_offset=10000) as lab:
    with lab.compute() as ours: ...
    with lab.compute(peer=Path("/opt/nova")) as theirs: ...
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from kilonova.cloud import addresses, packages, site, steps
from kilonova.cloud.rest import Rest
from kilonova.cloud.services.image import GuestImage
from kilonova.cloud.services.kilonova import Compute
from kilonova.cloud.services.libvirt import Libvirt
from kilonova.cloud.services.mariadb import COMPUTE_DATABASES, Mariadb
from kilonova.cloud.services.peer import Peer
from kilonova.cloud.site import Driver, Network, Profile, Settings, Site
from kilonova.cloud.stack import Choice, Cloud


@dataclasses.dataclass(frozen=True)
class Running:
    """A compute service under test."""

    site: Site
    service: Compute
    compute_url: str
    """Base of the API with the version."""
    metadata_url: str
    api_database: str
    cell_database: str
    pids: Mapping[str, int]
    """First process of each daemon."""
    started_in: Mapping[str, float]
    """Seconds from the start of a daemon until it answered."""

    def stop(self, name: str) -> None:
        self.service.supervisor.stop(name)

    def start(self) -> None:
        """Start again what does not run."""
        self.service.start()


class Surroundings:
    """Everything around a compute service."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.site = cloud.site

    def pids(self) -> dict[str, int]:
        """First process of each daemon that runs, by name."""
        supervisor = self.cloud.supervisor
        return {name: pid for name in supervisor.names() if (pid := supervisor.pid(name))}

    def rest(self, user: str = "admin", project: str = "admin") -> Rest:
        """A client with a token."""
        client = Rest(self.site, user, project)
        client.login()
        return client

    @contextlib.contextmanager
    def compute(self, peer: Path | None = None, keep: bool = False) -> Iterator[Running]:
        """Our service, or the peer of that environment, on fresh databases; ended afterwards."""
        place = dataclasses.replace(self.site, peer=peer)
        if peer is not None and not self.site.bus:
            raise ValueError("the peer's services need a bus between them: use profile full")
        with self.running((Peer if peer else Compute)(place, self.cloud.supervisor), keep) as started:
            yield started

    @contextlib.contextmanager
    def running(self, service: Compute, keep: bool = False) -> Iterator[Running]:
        """That compute service on fresh databases, or on those that it had with `keep`; ended afterwards."""
        if not keep:
            self.forget_compute(service)
        try:
            plan = service.steps()
            names = {step.name for step in plan}
            # What the other steps wait for runs already.
            own = [
                dataclasses.replace(step, needs=tuple(need for need in step.needs if need in names)) for step in plan
            ]
            steps.run(own)
            yield self.described(service.site, service)
        finally:
            for daemon in reversed(service.daemons()):
                self.cloud.supervisor.stop(daemon.name)

    def described(self, place: Site, service: Compute) -> Running:
        names = [daemon.name for daemon in service.daemons()]
        supervisor = self.cloud.supervisor
        return Running(
            site=place,
            service=service,
            compute_url=place.url("compute", "/v2.1"),
            metadata_url=place.url("metadata"),
            api_database=service.database_url("nova_api"),
            cell_database=service.database_url("nova_cell1"),
            pids={name: pid for name in names if (pid := supervisor.pid(name))},
            started_in={name: supervisor.started_in[name] for name in names if name in supervisor.started_in},
        )

    def forget_compute(self, service: Compute) -> None:
        """Databases and stamps of a compute service that ran before, and its hosts in Placement."""
        for stamp in self.site.done.glob(f"{service.name}.*"):
            stamp.unlink()
        if self.site.full:
            Mariadb(self.site, self.cloud.supervisor).recreate(COMPUTE_DATABASES)
        for file in (self.site.data / "sqlite").glob("nova_*"):
            file.unlink()
        admin = self.rest()
        base = self.site.url("placement")
        version = {"OpenStack-API-Version": "placement 1.36"}
        for provider in admin.get(f"{base}/resource_providers", **version)["resource_providers"]:
            held = admin.get(f"{base}/resource_providers/{provider['uuid']}/allocations", **version)
            for consumer in held["allocations"]:
                admin.call("DELETE", f"{base}/allocations/{consumer}", headers=version)
            admin.call("DELETE", f"{base}/resource_providers/{provider['uuid']}", headers=version)


@dataclasses.dataclass(frozen=True)
class Hypervisor:
    """A private libvirt and the guest image."""

    uri: str
    image: Path
    root: Path
    """The file system as libvirt sees it, with the folders that are its own."""


@contextlib.contextmanager
def hypervisor(root: Path) -> Iterator[Hypervisor]:
    """libvirt alone, without any network or service, for as long as the block lasts. Needs root."""
    place = site.load(root) or site.create(root, Settings(network="bind-all", volumes=False, first_server=False))
    cloud = Cloud(place, Choice(compute=False))
    libvirt = Libvirt(place, cloud.supervisor)
    place.prepare()
    try:
        packages.install(place)
        GuestImage(place, cloud.supervisor).build()
        libvirt.prepare()
        libvirt.start()
        seen = Path(f"/proc/{cloud.supervisor.pid('libvirtd')}/root")
        yield Hypervisor(libvirt.uri, place.data / "image" / "guest.qcow2", seen)
    finally:
        cloud.down(wipe=True)


@contextlib.contextmanager
def surroundings(
    root: Path,
    *,
    profile: Profile = "embedded",
    driver: Driver = "fake",
    network: Network = "bind-all",
    volumes: bool = False,
    computes: int = 1,
    port_offset: int = 10000,
    access_logs: bool = False,
    keep: bool = False,
) -> Iterator[Surroundings]:
    """Keystone, Glance, Placement and Neutron, and Cinder with `volumes`, for as long as the block lasts.

    `root` is the state folder; with `keep` it is left, so that a next time only the processes have to be started.
    """
    place = site.load(root)
    if place is None:
        settings = Settings(
            profile=profile,
            driver=driver,
            network=network,
            volumes=volumes,
            computes=computes,
            port_offset=port_offset,
            first_server=False,
            access_logs=access_logs,
            number=addresses.free_number() if network == "ovn" else 0,
        )
        place = site.create(root, settings)
    cloud = Cloud(place, Choice(compute=False))
    try:
        cloud.up()
        yield Surroundings(cloud)
    finally:
        cloud.down(wipe=not keep)
