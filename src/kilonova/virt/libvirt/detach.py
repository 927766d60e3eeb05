"""Taking the disk of a volume from a guest."""

from __future__ import annotations

import time
from collections.abc import Callable
from xml.etree import ElementTree as ET

from oslo_log import log

from kilonova.base import clock
from kilonova.contract import exceptions
from kilonova.virt.driver import Volume
from kilonova.virt.libvirt.guest import Guest

LOG = log.getLogger(__name__)

_LOOK = 0.2


def disk_of(domain: ET.Element, volume: Volume) -> ET.Element | None:
    """The volume's disk: the one with its serial number; only LUNs have none, they go by their device name."""
    name = (volume.mount_device or "").rpartition("/")[2]
    for disk in domain.iterfind("devices/disk"):
        if is_lun(disk):
            target = disk.find("target")
            if name and target is not None and target.get("dev") == name:
                return disk
        elif disk.findtext("serial") == volume.serial:
            return disk
    return None


def is_lun(disk: ET.Element) -> bool:
    return disk.get("device") == "lun"


Sleep = Callable[[float], object]


def take(guest: Guest, volume: Volume, attempts: int, timeout: float, sleep: Sleep = time.sleep) -> None:
    """Take it from the running guest, then from its definition.

    A running guest is asked `attempts` times and has `timeout` seconds each time. Raises DeviceDetachFailed when it
    keeps the disk (its definition then keeps it too), InstanceNotFound.
    """
    if not guest.is_down():
        _from_running(guest, volume, attempts, timeout, sleep)
    if guest.is_persistent() and (disk := disk_of(guest.xml(inactive=True), volume)) is not None:
        guest.detach(disk, running=False)


def _from_running(guest: Guest, volume: Volume, attempts: int, timeout: float, sleep: Sleep) -> None:
    for attempt in range(1, attempts + 1):
        disk = disk_of(guest.xml(), volume)
        if disk is None:
            return
        guest.detach(disk, running=True)
        if _goes(guest, volume, timeout, sleep):
            return
        LOG.warning("Guest %s keeps volume %s (attempt %d)", guest.uuid, volume.volume_id, attempt)
    reason = f"the guest did not let go of it, asked {attempts} times within {attempts * timeout:g} s"
    raise exceptions.DeviceDetachFailed(device=volume.mount_device, reason=reason)


def _goes(guest: Guest, volume: Volume, timeout: float, sleep: Sleep) -> bool:
    """Whether the running guest has let go of it, or stopped running, within `timeout` seconds."""
    deadline = clock.monotonic() + timeout
    while not guest.is_down() and disk_of(guest.xml(), volume) is not None:
        if clock.monotonic() >= deadline:
            return False
        sleep(_LOOK)
    return True
