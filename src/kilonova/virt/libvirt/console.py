"""The serial console: what the guest printed, kept by virtlogd in a file."""

from __future__ import annotations

from pathlib import Path

from kilonova.contract import exceptions
from kilonova.virt.libvirt import privileged
from kilonova.virt.libvirt.config.devices import SerialPort
from kilonova.virt.libvirt.guest import Guest

TAIL = 100 * 1024
"""Bytes of a log that can be read back."""


def device(log: Path) -> SerialPort:
    return SerialPort(str(log))


def log_path(guest: Guest) -> Path:
    """Where the log of the guest's serial port is written. Raises ConsoleNotAvailable, InstanceNotFound."""
    domain = guest.xml()
    for kind in ("serial", "console"):
        log = domain.find(f"devices/{kind}/log[@file]")
        if log is not None:
            return Path(log.get("file", ""))
    raise exceptions.ConsoleNotAvailable()


def tail(log: Path, limit: int = TAIL) -> bytes:
    """The last `limit` bytes, across the files virtlogd rotated out (log.0 is the newest of them).

    A log that does not exist yet is empty.
    """
    data = b""
    for path in (log, *(log.with_name(f"{log.name}.{number}") for number in range(10))):
        if len(data) >= limit:
            break
        try:
            part = _last_bytes(path, limit - len(data))
        except FileNotFoundError:
            break
        data = part + data
    return data


def _last_bytes(path: Path, limit: int) -> bytes:
    """virtlogd's own files are root's; those we made before it came are ours."""
    try:
        return privileged.read_end(path, limit)
    except PermissionError:
        return privileged.last_bytes(str(path), limit)
