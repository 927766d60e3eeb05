"""A compute service of which each program is ours or the peer's: control plane of the one, hosts of both."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from kilonova.cloud import ini
from kilonova.cloud.commands import run, run_each
from kilonova.cloud.daemons import Daemon, Supervisor
from kilonova.cloud.services.kilonova import Compute
from kilonova.cloud.services.peer import Peer
from kilonova.cloud.site import Site

Side = Literal["ours", "theirs"]


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute host: whose agent it runs and the class of its fake driver, without one the driver of the site."""

    name: str
    side: Side
    driver: str | None = None


OTHER: dict[Side, Side] = {"ours": "theirs", "theirs": "ours"}
BESIDE = "-beside"


class Mixed(Peer):
    """One cell. `control` is whose API, scheduler and conductors run and whose commands make the databases.

    `beside`: a scheduler and conductors of the other side work on the same queues, as host `beside`.
    """

    def __init__(
        self, site: Site, supervisor: Supervisor, control: Side, members: Sequence[Host], beside: bool = False
    ) -> None:
        super().__init__(site, supervisor)
        self.control_side = control
        self.beside = beside
        self.members = {host.name: host for host in members}
        if control == "ours":
            self.manage_entry = Compute.manage_entry

    @property
    def bin(self) -> Path:
        """Programs of the control plane."""
        return self.programs(self.control_side)

    @property
    def cells(self) -> list[str]:
        return ["cell1"]

    def programs(self, side: Side) -> Path:
        return Path(sys.executable).parent if side == "ours" else super().bin

    def hosts(self) -> dict[str, str]:
        return dict.fromkeys(self.members, "cell1")

    def set_up(self) -> None:
        """Hosts begin without guests."""
        for host in self.members:
            shutil.rmtree(self.data / host, ignore_errors=True)
        super().set_up()
        if self.beside and self.control_side == "theirs":
            self.make_our_tables()

    def make_our_tables(self) -> None:
        """What an operator does before our conductors start: Nova's tables stay as they are, ours come beside them."""
        for conf, *commands in (
            (self.conf, ["api_db", "sync"], ["db", "sync"]),
            (self.cell_conf("cell1"), ["db", "sync", "--local_cell"]),
        ):
            python = self.programs("ours") / "python"
            shared = ["nova-manage", "--config-file", conf]
            run(run_each(python, Compute.manage_entry, shared, *commands), self.set_up_log, self.foreign)

    def for_host(self, host: str) -> dict[str, dict[str, Any]]:
        sections = super().for_host(host)
        if driver := self.members[host].driver:
            sections["DEFAULT"]["compute_driver"] = f"fake.{driver}"
        return sections

    def configure(self) -> None:
        super().configure()
        ini.write(self.beside_conf, {"DEFAULT": {"host": "beside"}})

    @property
    def beside_conf(self) -> Path:
        return self.folder / "beside.conf"

    def conductors(self) -> list[Daemon]:
        return [*super().conductors(), *self.others("nova-conductor", self.conf, self.cell_conf("cell1"))]

    def agents(self) -> list[Daemon]:
        return [*super().agents(), *self.others("nova-scheduler", self.conf)]

    def others(self, program: str, *configurations: Path) -> list[Daemon]:
        """The other side's, one for each configuration."""
        listed = configurations if self.beside else ()
        return [
            self.program(f"{program}{BESIDE}-{number}", program, [each, self.beside_conf])
            for number, each in enumerate(listed)
        ]

    def apis(self) -> list[Daemon]:
        """Without metadata: fake guests do not ask."""
        made = Compute.apis(self) if self.control_side == "ours" else super().apis()
        return made[:1]

    def program(
        self, name: str, program: str, files: Sequence[Path], ready: Callable[[], bool] | None = None
    ) -> Daemon:
        daemon = super().program(name, program, files, ready)
        host = self.members.get(name.removeprefix("nova-compute-"))
        side = host.side if host else OTHER[self.control_side] if BESIDE in name else self.control_side
        says = Compute.says_ready if side == "ours" else Peer.says_ready
        return dataclasses.replace(
            daemon,
            argv=[self.programs(side) / program, *daemon.argv[1:]],
            ready=ready or (lambda: says(self, name)),
        )
