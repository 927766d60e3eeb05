"""Volumes that several guests of this host have: they share one connection, which the last of them ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence

import libvirt

from kilonova.virt.driver import Volume
from kilonova.virt.libvirt import detach
from kilonova.virt.libvirt.config.element import parse
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.volumes import Source, Volumes


class Sharing:
    """Connects and disconnects volumes; a guest has a volume from before it is connected."""

    def __init__(self, connection: Connection, volumes: Volumes) -> None:
        self._connection = connection
        self._volumes = volumes
        self._lock = threading.Lock()
        self._beginning: set[tuple[str, str]] = set()
        """(volume, guest) of guests that no domain tells of yet."""

    @contextlib.contextmanager
    def connected(self, uuid: str, volumes: Sequence[Volume]) -> Iterator[Mapping[str, Source]]:
        """The connected volumes by id; until the body ends, with the guest defined, they are known to be its own.

        Raises what `Volumes.connect` does.
        """
        pairs = {(each.volume_id, uuid) for each in volumes if each.multiattach}
        with self._lock:
            self._beginning |= pairs
        try:
            yield {each.volume_id: self._volumes.connect(each) for each in volumes}
        finally:
            with self._lock:
                self._beginning -= pairs

    def disconnect(self, uuid: str, volume: Volume, force: bool = True) -> None:
        """Unless another guest has it too. Raises what `Volumes.disconnect` does."""
        if not volume.multiattach:
            self._volumes.disconnect(volume, force)
            return
        with self._lock:
            if not self.held_by_another(uuid, volume):
                self._volumes.disconnect(volume, force)

    def held_by_another(self, uuid: str, volume: Volume) -> bool:
        """Whether a guest of this host has it that is not `uuid`, or is about to."""
        if any(held == volume.volume_id and guest != uuid for held, guest in self._beginning):
            return True
        others = (domain for domain in self._connection.get().listAllDomains() if domain.UUIDString() != uuid)
        return any(_may_have(domain, volume) for domain in others)


def _may_have(domain: libvirt.virDomain, volume: Volume) -> bool:
    """By its serial number. A LUN has none and may be the one: a connection too many does no harm."""
    try:
        disks = parse(domain.XMLDesc(0)).iterfind("devices/disk")
    except libvirt.libvirtError as failure:
        if failure.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
        return False
    return any(detach.is_lun(disk) or disk.findtext("serial") == volume.serial for disk in disks)
