"""Switching guests off, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable

from oslo_log import log

from kilonova.base import clock
from kilonova.contract import exceptions
from kilonova.virt.libvirt.guest import Guest

LOG = log.getLogger(__name__)

_LOOK = 0.5


def shut_down(
    guest: Guest,
    timeout: float,
    retry_interval: float,
    now: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> bool:
    """Ask the guest to shut down for `timeout` seconds, again every `retry_interval` (it may still have been booting
    the first time). True when it is down."""
    deadline = now() + timeout
    next_ask = now()
    while True:
        try:
            if guest.is_down():
                return True
            if now() >= next_ask:
                guest.ask_to_shut_down()
                next_ask = now() + (retry_interval or timeout)
        except exceptions.InstanceNotFound:
            return True
        if now() >= deadline:
            LOG.info("Guest %s did not shut down in %d s", guest.uuid, timeout)
            return False
        sleep(_LOOK)


def off(guest: Guest, timeout: float, retry_interval: float, sleep: Callable[[float], object] = time.sleep) -> None:
    """Ask for `timeout` seconds (0: do not ask), then cut the power. A guest that is not there is off."""
    try:
        if timeout <= 0 or not shut_down(guest, timeout, retry_interval, sleep=sleep):
            guest.cut_power()
    except exceptions.InstanceNotFound:
        LOG.debug("Guest %s is not defined here", guest.uuid)
