"""What every service of the cloud offers to the one who puts the cloud together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from kilonova.cloud.daemons import Daemon, Supervisor
from kilonova.cloud.packages import foreign_path, services_venv
from kilonova.cloud.site import Site
from kilonova.cloud.steps import Step


class Service:
    """A service with up to three steps: set-up (once for good), start, and filling with data (once for good).

    The names of the steps are `NAME set-up`, `NAME` and `NAME data`; other steps wait for them by these names.
    """

    name: ClassVar[str]
    set_up_needs: ClassVar[Sequence[str]] = ("environment",)
    start_needs: ClassVar[Sequence[str]] = ()
    data_needs: ClassVar[Sequence[str]] = ("identity",)

    def __init__(self, site: Site, supervisor: Supervisor) -> None:
        self.site = site
        self.supervisor = supervisor

    @property
    def folder(self) -> Path:
        """Where the service's configuration lies."""
        return self.site.etc / self.name

    @property
    def data(self) -> Path:
        return self.site.data / self.name

    @property
    def venv(self) -> Path:
        return services_venv()

    @property
    def log(self) -> Path:
        return self.site.log / f"{self.name}.log"

    @property
    def foreign(self) -> dict[str, str]:
        """Environment in which the other services find our plug-ins."""
        return {"PYTHONPATH": str(foreign_path())}

    def configure(self) -> None:
        """Write the configuration; repeated at every start."""

    def set_up(self) -> None:
        """Make databases, keys and the like. May be repeated after a failure."""

    def daemons(self) -> list[Daemon]:
        raise NotImplementedError

    def fill(self) -> None:
        """Register what users of a fresh cloud expect to find. May be repeated after a failure."""

    def needs(self, names: Sequence[str], present: set[str]) -> list[str]:
        return [name for name in names if name in present]

    def start(self) -> None:
        self.configure()
        for daemon in self.daemons():
            self.supervisor.start(daemon)

    def prepare(self) -> None:
        self.configure()
        self.set_up()

    def steps(self) -> list[Step]:
        set_up = f"{self.name} set-up"
        steps = [
            Step(
                set_up, self.prepare, self.set_up_needs, self.site.log / f"{self.name}-setup.log", self.stamp("set-up")
            ),
            Step(self.name, self.start, (set_up, *self.start_needs), self.log),
        ]
        if type(self).fill is not Service.fill:
            steps.append(
                Step(f"{self.name} data", self.fill, (self.name, *self.data_needs), self.log, self.stamp("data"))
            )
        return steps

    def stamp(self, what: str) -> Path:
        return self.site.done / f"{self.name}.{what}"

    @property
    def set_up_log(self) -> Path:
        return self.site.log / f"{self.name}-setup.log"

    def database(self, name: str) -> dict[str, Any]:
        """The `[database]` section."""
        section: dict[str, Any] = {"connection": self.site.database(name)}
        if self.site.full:
            section |= {"max_pool_size": 10, "max_overflow": 40}
        return section
