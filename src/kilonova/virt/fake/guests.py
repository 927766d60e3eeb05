"""The fake hypervisor's guests: one small file each, so that they outlive the agent as real guests do."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import threading
from typing import Any

from kilonova.base import clock
from kilonova.contract.states import Power


@dataclasses.dataclass(frozen=True)
class Guest:
    uuid: str
    name: str
    power_state: int = Power.RUNNING
    boots: int = 1
    started_at: float = dataclasses.field(default_factory=clock.seconds)
    vifs: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    disks: bool = True
    """False once the guest was destroyed but its disks were kept."""
    config_drive: bool = False


class Guests:
    """Thread-safe; every change is on disk when the call returns."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._guests: dict[str, Guest] = {}
        directory.mkdir(parents=True, exist_ok=True)
        for path in directory.glob("*.json"):
            guest = _load(json.loads(path.read_text()))
            self._guests[guest.uuid] = guest

    def __len__(self) -> int:
        return len(self._guests)

    def all(self) -> dict[str, Guest]:
        with self._lock:
            return dict(self._guests)

    def get(self, uuid: str) -> Guest | None:
        return self._guests.get(uuid)

    def put(self, guest: Guest) -> None:
        path = self._path(guest.uuid)
        draft = path.with_suffix(f".{threading.get_ident()}.draft")
        draft.write_text(json.dumps(dataclasses.asdict(guest)))
        with self._lock:
            os.replace(draft, path)
            self._guests[guest.uuid] = guest

    def drop(self, uuid: str) -> None:
        with self._lock:
            self._guests.pop(uuid, None)
            self._path(uuid).unlink(missing_ok=True)

    def _path(self, uuid: str) -> pathlib.Path:
        return self._directory / f"{uuid}.json"


def _load(data: dict[str, Any]) -> Guest:
    return Guest(**{**data, "vifs": tuple(data["vifs"]), "volumes": tuple(data["volumes"])})
