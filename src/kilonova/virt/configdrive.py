"""Config drive: a small disk that carries the metadata documents into the guest.

The guest finds it by the volume label `config-2`, as ISO 9660 with Joliet and Rock Ridge names or as FAT.
"""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

import pycdlib
from oslo_config import cfg

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions, objects

LOG = logging.getLogger(__name__)

LABEL = "config-2"
VFAT_SIZE = 64 * 1024 * 1024
"""FAT drives all have this size, so that a migrated one is the same everywhere."""

_TOOL_TIMEOUT = 60


def required(conf: cfg.ConfigOpts, instance: objects.Instance, image_meta: objects.ImageMeta) -> bool:
    """Whether the guest gets a config drive: asked for by the user, the image, or the operator for new servers.

    A server that was once launched without one keeps going without: it got its data from the metadata service.
    """
    if instance.config_drive:
        return True
    properties = image_meta.properties
    if "img_config_drive" in properties and properties.img_config_drive == "mandatory":
        return True
    return bool(conf.force_config_drive) and not instance.launched_at


def device_type(drive_format: str) -> str:
    """How the guest sees a drive of this format: cdrom or disk."""
    return "disk" if drive_format == "vfat" else "cdrom"


def write(path: str | Path, files: Mapping[str, bytes], drive_format: str) -> None:
    """Make the drive at `path` (replaced whole or not at all) with `files` (path -> content) in it.

    Raises ConfigDriveUnknownFormat, ConfigDriveMountFailed when the FAT tools fail.
    """
    makers = {"iso9660": _write_iso, "vfat": _write_vfat}
    if drive_format not in makers:
        raise exceptions.ConfigDriveUnknownFormat(format=drive_format)
    with _replacing(Path(path)) as staged:
        makers[drive_format](staged, files)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    staged = path.with_name(path.name + ".part")
    try:
        yield staged
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def _directories(files: Mapping[str, bytes]) -> list[str]:
    """All parent directories, parents before children."""
    found: set[str] = set()
    for name in files:
        parent = posixpath.dirname(name.strip("/"))
        while parent:
            found.add(parent)
            parent = posixpath.dirname(parent)
    return sorted(found)


class _IsoNames:
    """ISO 9660 level 1 paths (8.3, upper case), made unique; guests read the Joliet or Rock Ridge names instead."""

    def __init__(self) -> None:
        self._paths = {"": ""}

    def directory(self, path: str) -> str:
        self._paths[path] = f"{self._parent(path)}/D{len(self._paths):07d}"
        return self._paths[path]

    def file(self, path: str) -> str:
        self._paths[path] = f"{self._parent(path)}/F{len(self._paths):07d}.;1"
        return self._paths[path]

    def _parent(self, path: str) -> str:
        return self._paths[posixpath.dirname(path)]


def _write_iso(path: Path, files: Mapping[str, bytes]) -> None:
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=1, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    names = _IsoNames()
    for directory in _directories(files):
        base = posixpath.basename(directory)
        iso.add_directory(names.directory(directory), rr_name=base, joliet_path=f"/{directory}", file_mode=0o040555)
    for name, content in sorted(files.items()):
        clean = name.strip("/")
        iso.add_fp(
            BytesIO(content),
            len(content),
            names.file(clean),
            rr_name=posixpath.basename(clean),
            joliet_path=f"/{clean}",
            file_mode=0o100444,
        )
    try:
        iso.write(str(path))
    finally:
        iso.close()


def _write_vfat(path: Path, files: Mapping[str, bytes]) -> None:
    with open(path, "wb") as file:
        file.truncate(VFAT_SIZE)
    _run("mkfs.vfat", "-n", LABEL, str(path))
    with tempfile.TemporaryDirectory() as tree:
        for name, content in files.items():
            target = Path(tree, name.strip("/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        entries = sorted(os.path.join(tree, entry) for entry in os.listdir(tree))
        if entries:
            _run("mcopy", "-s", "-m", "-i", str(path), *entries, "::/")


def _run(*command: str) -> None:
    environment = {**os.environ, "MTOOLS_SKIP_CHECK": "1", "LC_ALL": "C"}
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_TOOL_TIMEOUT, env=environment)
    except FileNotFoundError as failure:
        raise exceptions.ConfigDriveMountFailed(operation=command[0], error="not installed") from failure
    except subprocess.TimeoutExpired as failure:
        raise exceptions.ConfigDriveMountFailed(operation=command[0], error="timed out") from failure
    except subprocess.CalledProcessError as failure:
        error = failure.stderr.decode(errors="replace").strip()
        LOG.warning("%s ended with code %d: %s", " ".join(command), failure.returncode, error)
        raise exceptions.ConfigDriveMountFailed(operation=command[0], error=without_paths(error)) from failure
