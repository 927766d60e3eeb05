"""The life cycle of one domain."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as ET

import libvirt
from oslo_log import log

from kilonova.contract import exceptions
from kilonova.contract.states import Power
from kilonova.virt.driver import GuestInfo
from kilonova.virt.libvirt.config.element import parse
from kilonova.virt.libvirt.connection import Connection

LOG = log.getLogger(__name__)

POWER_STATES: Final[Mapping[int, int]] = {
    libvirt.VIR_DOMAIN_NOSTATE: Power.PENDING,
    libvirt.VIR_DOMAIN_RUNNING: Power.RUNNING,
    # A domain waiting for I/O is running as far as anybody outside can tell.
    libvirt.VIR_DOMAIN_BLOCKED: Power.RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: Power.PAUSED,
    # Shutting down but not down yet.
    libvirt.VIR_DOMAIN_SHUTDOWN: Power.SHUTDOWN,
    libvirt.VIR_DOMAIN_SHUTOFF: Power.SHUTDOWN,
    libvirt.VIR_DOMAIN_CRASHED: Power.CRASHED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: Power.SUSPENDED,
}

_DOWN = frozenset({libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_CRASHED})
_DESTROY_ATTEMPTS = 3
_DESTROY_PAUSE = 1.0


class Guest:
    """A guest by its instance uuid; every method raises InstanceNotFound when there is no such domain."""

    def __init__(self, connection: Connection, uuid: str) -> None:
        self._connection = connection
        self.uuid = uuid

    def exists(self) -> bool:
        try:
            with self._connection.domain(self.uuid):
                return True
        except exceptions.InstanceNotFound:
            return False

    def info(self) -> GuestInfo:
        with self._connection.domain(self.uuid) as domain:
            return info(domain)

    def is_down(self) -> bool:
        with self._connection.domain(self.uuid) as domain:
            return domain.state()[0] in _DOWN

    def domain_id(self) -> int:
        """libvirt's number of this run of the guest; -1 when it does not run."""
        with self._connection.domain(self.uuid) as domain:
            return int(domain.ID())

    def xml(self, inactive: bool = False) -> ET.Element:
        with self._connection.domain(self.uuid) as domain:
            return parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE if inactive else 0))

    def launch(self, paused: bool = False) -> None:
        with self._connection.domain(self.uuid) as domain:
            domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED if paused else 0)

    def resume(self) -> None:
        with self._connection.domain(self.uuid) as domain:
            domain.resume()

    def ask_to_shut_down(self) -> None:
        """Press the power button; what the guest makes of it is its own affair."""
        with self._connection.domain(self.uuid) as domain:
            try:
                domain.shutdown()
            except libvirt.libvirtError as failure:
                if failure.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                    raise
                LOG.debug("Guest %s does not take the shutdown request: %s", self.uuid, failure)

    def cut_power(self) -> None:
        """Stop the guest now. Raises InstancePowerOffFailure when its process does not end."""
        for attempt in range(1, _DESTROY_ATTEMPTS + 1):
            with self._connection.domain(self.uuid) as domain:
                try:
                    domain.destroy()
                    return
                except libvirt.libvirtError as failure:
                    if self._is_already_off(domain, failure):
                        return
                    if failure.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN or not _is_stubborn(failure):
                        raise
                    LOG.warning("Guest %s does not stop (attempt %d): %s", self.uuid, attempt, failure)
            time.sleep(_DESTROY_PAUSE)
        raise exceptions.InstancePowerOffFailure(reason="the hypervisor process does not end")

    def is_persistent(self) -> bool:
        with self._connection.domain(self.uuid) as domain:
            return bool(domain.isPersistent())

    def detach(self, device: ET.Element, running: bool) -> None:
        """Ask the running guest for a device, or take it from the definition; it may be gone or going already."""
        flags = libvirt.VIR_DOMAIN_AFFECT_LIVE if running else libvirt.VIR_DOMAIN_AFFECT_CONFIG
        with self._connection.domain(self.uuid) as domain:
            try:
                domain.detachDeviceFlags(ET.tostring(device, encoding="unicode"), flags)
            except libvirt.libvirtError as failure:
                if not _is_leaving(failure):
                    raise
                LOG.debug("Guest %s: %s", self.uuid, failure)

    def undefine(self, keep_firmware_state: bool = False) -> None:
        """Forget the domain; with `keep_firmware_state` the NVRAM (and TPM) files stay for its next definition."""
        flags = libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
        kept = libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM
        flags |= kept if keep_firmware_state else libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
        with self._connection.domain(self.uuid) as domain:
            domain.undefineFlags(flags)

    @staticmethod
    def _is_already_off(domain: libvirt.virDomain, failure: libvirt.libvirtError) -> bool:
        if failure.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:
            return False
        return domain.state()[0] in _DOWN


def _is_stubborn(failure: libvirt.libvirtError) -> bool:
    """The process is there but does not die yet: stuck in the kernel, or the machine is very busy."""
    return failure.get_error_code() in (libvirt.VIR_ERR_OPERATION_TIMEOUT, libvirt.VIR_ERR_SYSTEM_ERROR)


def _is_leaving(failure: libvirt.libvirtError) -> bool:
    """The device is gone, or was asked for before; libvirt has several codes for either."""
    code, words = failure.get_error_code(), failure.get_error_message() or ""
    return (
        code == libvirt.VIR_ERR_DEVICE_MISSING
        or (code == libvirt.VIR_ERR_OPERATION_FAILED and "not found" in words)
        or "already in the process of unplug" in words
    )


def info(domain: libvirt.virDomain) -> GuestInfo:
    number = domain.ID()
    return GuestInfo(
        uuid=domain.UUIDString(),
        power_state=POWER_STATES[domain.state()[0]],
        internal_id=number if number != -1 else None,
    )


def define(connection: Connection, xml: str, uuid: str) -> Guest:
    """Make the domain known, or change it."""
    with connection.errors(uuid):
        connection.get().defineXML(xml)
    return Guest(connection, uuid)
