"""Which loops a host runs, and how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kilonova.reconcile.host.host import Host
from kilonova.reconcile.host.interrupted import Interrupted
from kilonova.reconcile.host.leftover_files import LeftoverFiles
from kilonova.reconcile.host.leftover_plugs import LeftoverPlugs
from kilonova.reconcile.host.missing_guests import MissingGuests
from kilonova.reconcile.host.network_info import NetworkInfo
from kilonova.reconcile.host.overdue_builds import OverdueBuilds
from kilonova.reconcile.host.power_sync import PowerSync
from kilonova.reconcile.host.unknown_guests import UnknownGuests
from kilonova.reconcile.host.unreleased_volumes import UnreleasedVolumes
from kilonova.reconcile.loop import Loop, Pass, Report, Settings
from kilonova.virt.driver import GuestEvent

NEVER = -1.0


class HostLoop(Protocol):
    """As the agent runs it; `spacing` in seconds, 0 for the agent's default, below 0 for never."""

    name: str

    @property
    def spacing(self) -> float: ...

    def run(self) -> object: ...

    def on_guest_event(self, event: GuestEvent) -> None: ...


class Patient:
    """A loop that acts on what it has seen in every pass for the grace time."""

    def __init__(
        self, loop: Loop, spacing: Callable[[], float], settings: Settings, grace: float | None = None
    ) -> None:
        self.name = loop.name
        self._spacing = spacing
        self._pass = Pass(loop, settings, grace)

    @property
    def spacing(self) -> float:
        return self._spacing()

    def run(self) -> Report:
        return self._pass.run()

    def on_guest_event(self, event: GuestEvent) -> None:
        """Such loops look at their own time."""


def make(host: Host) -> Sequence[HostLoop]:
    """All loops; one that the configuration switches off rests."""
    conf, settings = host.conf, host.conf.kilonova

    def usual() -> float:
        return float(settings.reconcile_interval)

    def unknown() -> float:
        return _at_least(conf.running_deleted_instance_poll_interval, usual())

    def overdue() -> float:
        return usual() if conf.instance_build_timeout else NEVER

    return [
        PowerSync(host),
        NetworkInfo(host),
        Patient(UnknownGuests(host), unknown, settings),
        Patient(LeftoverFiles(host), lambda: float(conf.instance_delete_interval), settings),
        Patient(LeftoverPlugs(host), usual, settings),
        Patient(MissingGuests(host), usual, settings),
        Patient(Interrupted(host), usual, settings),
        Patient(UnreleasedVolumes(host), usual, settings),
        Patient(OverdueBuilds(host), overdue, settings, grace=0.0),
    ]


def _at_least(asked: float, usual: float) -> float:
    """As often as asked, and as other loops: a second sighting should not take another long interval."""
    return asked if asked < 0 else min(asked or usual, usual)
