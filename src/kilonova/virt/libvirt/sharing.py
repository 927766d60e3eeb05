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

Pair = tuple[str, str]
"""(volume, guest)"""


class Sharing:
    """Connects and disconnects volumes; a guest has a volume from before it is connected, until it lets go of it.

    While a volume is being disconnected, which may take minutes, only those wait that ask for the same one.
    """

    def __init__(self, connection: Connection, volumes: Volumes) -> None:
        self._connection = connection
        self._volumes = volumes
        self._changed = threading.Condition()
        self._leaving: set[str] = set()
        """Volumes whose connection may end now."""
        self._beginning: set[Pair] = set()
        """Of guests that no domain tells of yet."""
        self._ended: set[Pair] = set()
        """Of guests that let go, though a domain may tell of them still: else two that go at once wait for each other,
        and nobody ends the connection."""

    @contextlib.contextmanager
    def connected(self, uuid: str, volumes: Sequence[Volume]) -> Iterator[Mapping[str, Source]]:
        """The connected volumes by id; until the body ends, with the guest defined, they are known to be its own.

        Raises what `Volumes.connect` does.
        """
        shared = {each.volume_id for each in volumes if each.multiattach}
        pairs = {(volume_id, uuid) for volume_id in shared}
        with self._changed:
            self._changed.wait_for(lambda: not shared & self._leaving)
            self._beginning |= pairs
            self._ended -= pairs
        try:
            yield {each.volume_id: self._volumes.connect(each) for each in volumes}
        finally:
            with self._changed:
                self._beginning -= pairs

    def disconnect(self, uuid: str, volume: Volume, force: bool = True) -> None:
        """Unless another guest has it too. Raises what `Volumes.disconnect` does."""
        if not volume.multiattach:
            self._volumes.disconnect(volume, force)
            return
        with self._ending(uuid, volume.volume_id):
            if not self.held_by_another(uuid, volume):
                self._volumes.disconnect(volume, force)

    @contextlib.contextmanager
    def _ending(self, uuid: str, volume_id: str) -> Iterator[None]:
        """The guest lets go of it; nobody else begins with it, or lets go, before the body has ended."""
        with self._changed:
            self._changed.wait_for(lambda: volume_id not in self._leaving)
            self._leaving.add(volume_id)
            self._ended.add((volume_id, uuid))
        try:
            yield
        finally:
            with self._changed:
                self._leaving.discard(volume_id)
                self._changed.notify_all()

    def held_by_another(self, uuid: str, volume: Volume) -> bool:
        """Whether a guest of this host has it that is not `uuid`, or is about to."""
        domains = {domain.UUIDString(): domain for domain in self._connection.get().listAllDomains()}
        with self._changed:
            if any(held == volume.volume_id and guest != uuid for held, guest in self._beginning):
                return True
            self._ended = {(held, guest) for held, guest in self._ended if guest in domains}
            ended = {guest for held, guest in self._ended if held == volume.volume_id} | {uuid}
        return any(_may_have(domain, volume) for guest, domain in domains.items() if guest not in ended)


def _may_have(domain: libvirt.virDomain, volume: Volume) -> bool:
    """By its serial number. A LUN has none and may be the one: a connection too many does no harm."""
    try:
        disks = parse(domain.XMLDesc(0)).iterfind("devices/disk")
    except libvirt.libvirtError as failure:
        if failure.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
        return False
    return any(detach.is_lun(disk) or disk.findtext("serial") == volume.serial for disk in disks)
