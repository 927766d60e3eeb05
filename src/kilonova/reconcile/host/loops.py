"""Which loops a host runs, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kilonova.reconcile.host.host import Host
from kilonova.reconcile.host.interrupted import Interrupted
from kilonova.reconcile.host.leftover_files import LeftoverFiles
from kilonova.reconcile.host.missing_guests import MissingGuests
from kilonova.reconcile.host.network_info import NetworkInfo
from kilonova.reconcile.host.overdue_builds import OverdueBuilds
from kilonova.reconcile.host.power_sync import PowerSync
from kilonova.reconcile.host.unknown_guests import UnknownGuests
from kilonova.reconcile.loop import Loop, Pass, Report
from kilonova.virt.driver import GuestEvent

NEVER = -1.0


class HostLoop(Protocol):
    """As the agent runs it; `spacing` in seconds, 0 for the agent's default, below 0 for never."""

    name: str
    spacing: float

    def run(self) -> object: ...

    def on_guest_event(self, event: GuestEvent) -> None: ...


class Patient:
    """A loop that acts on what it has seen in every pass for the grace time."""

    def __init__(self, loop: Loop, spacing: float, grace: float, dry_run: bool) -> None:
        self.name = loop.name
        self.spacing = spacing
        self._pass = Pass(loop, grace, dry_run)

    def run(self) -> Report:
        return self._pass.run()

    def on_guest_event(self, event: GuestEvent) -> None:
        """Such loops look at their own time."""


def make(host: Host) -> Sequence[HostLoop]:
    """All loops that the configuration does not switch off."""
    conf = host.conf
    grace, dry_run = conf.kilonova.reconcile_grace, conf.kilonova.reconcile_dry_run
    usual: float = conf.kilonova.reconcile_interval
    overdue = usual if conf.instance_build_timeout else NEVER
    made: list[HostLoop] = [
        PowerSync(host),
        NetworkInfo(host),
        Patient(UnknownGuests(host), _at_least(conf.running_deleted_instance_poll_interval, usual), grace, dry_run),
        Patient(LeftoverFiles(host), conf.instance_delete_interval, grace, dry_run),
        Patient(MissingGuests(host), usual, grace, dry_run),
        Patient(Interrupted(host), usual, grace, dry_run),
        Patient(OverdueBuilds(host), overdue, 0.0, dry_run),
    ]
    return [loop for loop in made if loop.name not in conf.kilonova.reconcile_disabled]


def _at_least(asked: float, usual: float) -> float:
    """As often as asked, and as other loops: a second sighting should not take another long interval."""
    return asked if asked < 0 else min(asked or usual, usual)
