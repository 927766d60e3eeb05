"""What is plugged into this host for each guest: ports on its switch, volumes on its storage network.

The cloud's record forgets an interface as soon as its port is deleted, and a volume as soon as its attachment is; the
host has both until they are unplugged. So the host keeps its own note, from before it plugs until it has unplugged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_log import log

from kilonova.virt.driver import Vif, Volume
from kilonova.virt.libvirt.network import Owner

LOG = log.getLogger(__name__)


@dataclasses.dataclass
class Note:
    """Of one guest; ports and volumes by their ids."""

    owner: Owner
    vifs: dict[str, Vif] = dataclasses.field(default_factory=dict)
    volumes: dict[str, Volume] = dataclasses.field(default_factory=dict)


class Plugged:
    """A file for each guest, for its owner's eyes only: what volumes are reached by may be secret. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()

    def note(self, owner: Owner, vifs: Sequence[Vif], volumes: Iterable[Volume]) -> None:
        """Before they are plugged."""
        with self._lock:
            kept = self._read(owner.uuid) or Note(owner)
            kept.vifs |= {vif["id"]: vif for vif in vifs}
            kept.volumes |= {volume.volume_id: volume for volume in volumes}
            self._write(kept)

    def of(self, uuid: str) -> Note | None:
        with self._lock:
            return self._read(uuid)

    def forget(self, uuid: str, *ids: str) -> None:
        """These ports and volumes are unplugged. On a full disk the note may keep them: they are unplugged again."""
        with self._lock:
            self._drop(uuid, *ids)

    def guests(self) -> set[str]:
        """Guests for which something is plugged."""
        if not self._directory.is_dir():
            return set()
        return {path.stem for path in self._directory.glob("*.json")}

    def left_to_another(self, uuid: str, ident: str) -> bool:
        """Whether the port or volume is plugged for another guest by now, which alone has to unplug it then."""
        with self._lock:
            others = [self._read(each) for each in self.guests() - {uuid}]
            if not any(ident in note.vifs or ident in note.volumes for note in others if note is not None):
                return False
            self._drop(uuid, ident)
            return True

    def _drop(self, uuid: str, *ids: str) -> None:
        if (kept := self._read(uuid)) is None:
            return
        for each in ids:
            kept.vifs.pop(each, None)
            kept.volumes.pop(each, None)
        try:
            self._write(kept)
        except OSError as exc:
            LOG.warning("what is plugged for guest %s is not noted: %s", uuid, exc)

    def _path(self, uuid: str) -> Path:
        return self._directory / f"{uuid}.json"

    def _read(self, uuid: str) -> Note | None:
        try:
            text = self._path(uuid).read_text()
        except FileNotFoundError:
            return None
        kept = json.loads(text)
        volumes = {ident: Volume(**each) for ident, each in kept["volumes"].items()}
        return Note(Owner(**kept["owner"]), kept["vifs"], volumes)

    def _write(self, note: Note) -> None:
        path = self._path(note.owner.uuid)
        if not note.vifs and not note.volumes:
            path.unlink(missing_ok=True)
            return
        with _replaced(path) as file:
            json.dump(dataclasses.asdict(note), file, default=_plain)


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Any]:
    """Written whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def _plain(value: Any) -> Any:
    """Of a VIF's parts that are no plain JSON."""
    return dict(value) if isinstance(value, Mapping) else list(value)
