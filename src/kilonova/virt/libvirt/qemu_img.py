"""Running qemu-img: always with a named format, and with limits where a tenant's bytes are read."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_log import log

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions

LOG = log.getLogger(__name__)

_GIB = 1024**3
_TIMEOUT = 3600


@dataclasses.dataclass(frozen=True)
class ImageInfo:
    """What qemu-img says of a file; sizes in bytes."""

    format: str
    virtual_size: int
    backing_file: str | None = None
    data_file: str | None = None
    cluster_size: int | None = None
    create_type: str | None = None
    """VMDK only."""


class QemuImg:
    """Processor time and address space bound the inspection of an image; its conversion may take what it needs."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        space = conf.libvirt.images_address_space_limit * _GIB
        self._limited = ["prlimit", f"--cpu={conf.libvirt.images_cpu_time_limit}", f"--as={space}"]
        self._environment = {**os.environ, "LC_ALL": "C", "LANG": "C"}

    def info(self, path: str | Path, format: str) -> ImageInfo:
        """Raises DiskNotFound, InvalidDiskInfo."""
        if not os.path.exists(path):
            LOG.warning("%s is not there", path)
            raise exceptions.DiskNotFound(location=os.path.basename(path))
        command = ["qemu-img", "info", "--force-share", "--output=json", "-f", format, str(path)]
        try:
            output = self._run([*self._limited, *command])
        except ToolFailed as failure:
            raise exceptions.InvalidDiskInfo(reason=str(failure)) from failure
        return _info(json.loads(output))

    def create(self, path: Path, format: str, size: int | None, options: Mapping[str, object] | None = None) -> None:
        """A new disk; `size` in bytes, None where a backing file gives it. Raises InvalidDiskInfo."""
        joined = ",".join(f"{name}={_escaped(value)}" for name, value in (options or {}).items())
        command = ["qemu-img", "create", "-q", "-f", format, *(["-o", joined] if joined else []), str(path)]
        try:
            self._run([*command, *([str(size)] if size is not None else [])])
        except ToolFailed as failure:
            raise exceptions.InvalidDiskInfo(reason=str(failure)) from failure

    def convert(self, source: Path, target: Path, source_format: str, target_format: str, image_id: str) -> None:
        """Raises ImageUnacceptable."""
        # The target must be on disk when the command ends: a half-written cached image would be used for ever.
        cache = "none" if supports_direct_io(target.parent) else "writeback"
        command = ["qemu-img", "convert", "-t", cache, "-f", source_format, "-O", target_format]
        try:
            self._run([*command, str(source), str(target)])
        except ToolFailed as failure:
            reason = f"Unable to convert image to {target_format}: {failure}"
            raise exceptions.ImageUnacceptable(image_id=image_id, reason=reason) from failure

    def resize(self, path: Path, format: str, size: int) -> None:
        """Raises ResizeError."""
        try:
            self._run(["qemu-img", "resize", "-q", "-f", format, str(path), str(size)])
        except ToolFailed as failure:
            raise exceptions.ResizeError(reason=str(failure)) from failure

    def _run(self, command: Sequence[str]) -> bytes:
        return run(command, environment=self._environment)


class ToolFailed(Exception):
    """A command ended badly; the message is its own, without the paths in it."""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, timeout: float = _TIMEOUT) -> bytes:
    """The command's standard output. Raises ToolFailed."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, timeout=timeout, env=environment)
    except FileNotFoundError as failure:
        raise ToolFailed(f"{command[0]} is not installed") from failure
    except subprocess.TimeoutExpired as failure:
        raise ToolFailed(f"{command[0]} took more than {timeout} s") from failure
    except subprocess.CalledProcessError as failure:
        error = failure.stderr.decode(errors="replace").strip()
        LOG.warning("%s ended with code %d: %s", " ".join(command), failure.returncode, error)
        raise ToolFailed(without_paths(error) or f"{command[0]} ended with code {failure.returncode}") from failure
    return done.stdout


def _escaped(value: object) -> str:
    """qemu-img separates options by commas; a comma in a value is written twice."""
    return str(value).replace(",", ",,")


def _info(document: Mapping[str, Any]) -> ImageInfo:
    specific = (document.get("format-specific") or {}).get("data") or {}
    return ImageInfo(
        format=document["format"],
        virtual_size=int(document["virtual-size"]),
        backing_file=document.get("backing-filename"),
        data_file=specific.get("data-file"),
        cluster_size=document.get("cluster-size"),
        create_type=specific.get("create-type"),
    )


def supports_direct_io(directory: Path) -> bool:
    """Whether the file system takes O_DIRECT (tmpfs does not)."""
    probe = directory / f".directio.{os.getpid()}"
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True
