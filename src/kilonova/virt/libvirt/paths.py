"""Where things lie on a host's disk.

The layout is the one operators and the peer's agent know, so that a host can change hands with its guests running.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class InstanceFiles:
    """The files of one guest."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory / "disk"

    @property
    def config_drive(self) -> Path:
        return self.directory / "disk.config"

    @property
    def swap(self) -> Path:
        return self.directory / "disk.swap"

    @property
    def local(self) -> Path:
        """The flavor's ephemeral disk where the request lists none."""
        return self.directory / "disk.local"

    def ephemeral(self, index: int) -> Path:
        return self.directory / f"disk.eph{index}"

    @property
    def formats(self) -> Path:
        """JSON: path -> format of each disk, written when it is made and never guessed again."""
        return self.directory / "disk.info"

    @property
    def console_log(self) -> Path:
        return self.directory / "console.log"

    @property
    def kernel(self) -> Path:
        return self.directory / "kernel"

    @property
    def ramdisk(self) -> Path:
        return self.directory / "ramdisk"

    @property
    def being_deleted(self) -> Path:
        return self.directory.with_name(self.directory.name + "_del")


@dataclasses.dataclass(frozen=True)
class Layout:
    """The host's instance directory."""

    instances: Path
    cache_name: str

    def instance(self, uuid: str) -> InstanceFiles:
        return InstanceFiles(self.instances / uuid)

    @property
    def cache(self) -> Path:
        return self.instances / self.cache_name

    @property
    def locks(self) -> Path:
        """File locks, shared with other hosts where the directory is."""
        return self.instances / "locks"

    def cached_image(self, image_id: str) -> Path:
        return self.cache / hashlib.sha1(image_id.encode(), usedforsecurity=False).hexdigest()

    def instance_ids(self) -> Iterator[str]:
        """Names of the directories that look like a guest's."""
        if self.instances.is_dir():
            yield from (entry.name for entry in self.instances.iterdir() if len(entry.name) == 36 and entry.is_dir())
