"""Making a guest's disks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.virt.driver import BlockDevices, GuestSpec, LocalDisk
from kilonova.virt.libvirt.imagecache import CachedImage, ImageCache
from kilonova.virt.libvirt.paths import InstanceFiles, Layout
from kilonova.virt.libvirt.qemu_img import QemuImg, ToolFailed, run

LOG = log.getLogger(__name__)

GIB = 1024**3
MIB = 1024**2

_FILESYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "ntfs", "vfat"})
_DEFAULT_FILESYSTEM = {"linux": "ext4", "windows": "ntfs"}
_ANY_SYSTEM_READS = "vfat"
"""For a guest whose image does not name its operating system."""
_FORCE = {"ext2": ["-F"], "ext3": ["-F"], "ext4": ["-F"], "xfs": ["-f"], "ntfs": ["-Q", "-F"]}
_MKFS_TIMEOUT = 600


class Storage:
    """Local disks as files: qcow2 overlays of cached images, or raw copies of them."""

    def __init__(self, conf: cfg.ConfigOpts, layout: Layout, cache: ImageCache, qemu_img: QemuImg) -> None:
        self._layout = layout
        self._cache = cache
        self._qemu_img = qemu_img
        self._overlay = conf.libvirt.images_type == "qcow2" or (
            conf.libvirt.images_type == "default" and conf.use_cow_images
        )
        self._preallocate = conf.preallocate_images == "space"
        self._ephemeral_format = conf.default_ephemeral_format

    @property
    def driver_io(self) -> str | None:
        """The I/O mode disks of this kind want."""
        return "native" if self._preallocate else None

    def make(self, ctxt: RequestContext, guest: GuestSpec) -> None:
        """All local disks that are not there yet. Raises ImageUnacceptable, FlavorDiskSmallerThanImage,
        InvalidDiskInfo, InvalidBDMFormat."""
        instance = guest.instance
        files = self._layout.instance(instance.uuid)
        files.directory.mkdir(parents=True, exist_ok=True)
        self._make_kernel(ctxt, guest, files)
        if guest.block_devices.boot_volume is None:
            self._make_root(ctxt, guest, files)
        self._make_ephemerals(guest, files)
        self._make_swap(guest.block_devices, instance.flavor.swap, files)

    def disk_format(self, files: InstanceFiles, path: Path) -> str:
        """The format a disk was made in, as recorded then; its own bytes are the guest's to write.

        Raises InvalidDiskInfo when nothing is recorded.
        """
        recorded = _recorded(files)
        if str(path) in recorded:
            return recorded[str(path)]
        raise exceptions.InvalidDiskInfo(reason=f"The format of {path.name} is not on record")

    def delete(self, uuid: str) -> None:
        """Remove everything of a guest's; repeating it is no error. Raises OSError."""
        files = self._layout.instance(uuid)
        # The rename is one step: a delete that is interrupted later is seen as such and finished next time.
        if files.directory.exists():
            if files.being_deleted.exists():
                shutil.rmtree(files.being_deleted)
            files.directory.rename(files.being_deleted)
        if files.being_deleted.exists():
            shutil.rmtree(files.being_deleted)

    def _make_kernel(self, ctxt: RequestContext, guest: GuestSpec, files: InstanceFiles) -> None:
        wanted = ((guest.instance.kernel_id, files.kernel), (guest.instance.ramdisk_id, files.ramdisk))
        for image_id, target in wanted:
            if image_id and not target.exists():
                _copy(self._cache.raw_file(ctxt, image_id), target)

    def _make_root(self, ctxt: RequestContext, guest: GuestSpec, files: InstanceFiles) -> None:
        if files.root.exists():
            return
        meta = guest.image_meta
        declared = meta.disk_format if "disk_format" in meta else None
        size = guest.instance.flavor.root_gb * GIB or None
        image = self._cache.disk(ctxt, str(guest.instance.image_ref), declared, size)
        self._from_image(image, files, files.root, size)

    def _from_image(self, image: CachedImage, files: InstanceFiles, path: Path, size: int | None) -> None:
        part = path.with_name(path.name + ".part")
        try:
            if self._overlay:
                options: dict[str, object] = {"backing_file": image.path, "backing_fmt": image.info.format}
                if image.info.cluster_size is not None and image.info.format == "qcow2":
                    options["cluster_size"] = image.info.cluster_size
                self._qemu_img.create(part, "qcow2", size, options)
                format = "qcow2"
            else:
                _copy(image.path, part)
                format = image.info.format
                if size is not None and size > image.info.virtual_size:
                    self._qemu_img.resize(part, format, size)
            self._finish(part, path, files, format, size or image.info.virtual_size)
        finally:
            part.unlink(missing_ok=True)

    def _make_ephemerals(self, guest: GuestSpec, files: InstanceFiles) -> None:
        asked = guest.block_devices.ephemerals
        if not asked and guest.instance.flavor.ephemeral_gb > 0:
            self._ephemeral(LocalDisk(guest.instance.flavor.ephemeral_gb), 0, files.local, files, guest)
        for index, disk in enumerate(asked):
            self._ephemeral(disk, index, files.ephemeral(index), files, guest)

    def _ephemeral(self, disk: LocalDisk, index: int, path: Path, files: InstanceFiles, guest: GuestSpec) -> None:
        filesystem = self._filesystem(disk.format, guest.instance.os_type)
        size = disk.size * GIB
        # The name tells sizes and file systems apart, as the cached disk is shared by all guests with such a one.
        kind = hashlib.md5(filesystem.encode(), usedforsecurity=False).hexdigest()[:7]
        self._blank(f"ephemeral_{disk.size}_{kind}", path, files, size, filesystem, f"ephemeral{index}")

    def _make_swap(self, block_devices: BlockDevices, flavor_mb: int, files: InstanceFiles) -> None:
        size = block_devices.swap.size if block_devices.swap else flavor_mb
        if size > 0:
            self._blank(f"swap_{size}", files.swap, files, size * MIB, "swap", None)

    def _blank(
        self, name: str, path: Path, files: InstanceFiles, size: int, filesystem: str, label: str | None
    ) -> None:
        if path.exists():
            return

        def make(target: Path) -> None:
            self._qemu_img.create(target, "raw", size)
            make_filesystem(target, filesystem, label)

        if self._overlay:
            info = self._qemu_img.info(base := self._cache.generated(name, make), "raw")
            self._from_image(CachedImage(base, info), files, path, size)
            return
        part = path.with_name(path.name + ".part")
        try:
            make(part)
            self._finish(part, path, files, "raw", size)
        finally:
            part.unlink(missing_ok=True)

    def _filesystem(self, asked: str | None, os_type: str | None) -> str:
        if asked and asked not in _FILESYSTEMS:
            raise exceptions.InvalidBDMFormat(details=f"{asked} format is not supported")
        return asked or self._ephemeral_format or _DEFAULT_FILESYSTEM.get(os_type or "", _ANY_SYSTEM_READS)

    def _finish(self, part: Path, path: Path, files: InstanceFiles, format: str, size: int) -> None:
        if self._preallocate:
            _run_fallocate(part, size)
        # The format is on record before the disk exists under its name: a disk without a record is never opened.
        _record(files, path, format)
        part.rename(path)


def record_config_drive(files: InstanceFiles) -> None:
    _record(files, files.config_drive, "raw")


def make_filesystem(path: Path, filesystem: str, label: str | None) -> None:
    """Raises InvalidDiskInfo."""
    if filesystem == "swap":
        command = ["mkswap", str(path)]
    else:
        name = ["-n" if filesystem == "vfat" else "-L", label] if label else []
        command = [f"mkfs.{filesystem}", *_FORCE.get(filesystem, ()), *name, str(path)]
    try:
        run(command, timeout=_MKFS_TIMEOUT)
    except ToolFailed as failure:
        raise exceptions.InvalidDiskInfo(reason=f"No {filesystem} file system could be made: {failure}") from failure


@dataclasses.dataclass(frozen=True)
class Space:
    """Of a file system, in bytes. `free` is what is left for us: less than total - used where some is set aside."""

    total: int
    used: int
    free: int


def disk_space(path: Path) -> Space:
    """Of the file system that holds `path` or will hold it."""
    existing = next(each for each in (path, *path.parents) if each.exists())
    numbers = os.statvfs(existing)
    unit = numbers.f_frsize
    return Space(unit * numbers.f_blocks, unit * (numbers.f_blocks - numbers.f_bfree), unit * numbers.f_bavail)


def _recorded(files: InstanceFiles) -> dict[str, str]:
    try:
        found = json.loads(files.formats.read_text() or "{}")
    except FileNotFoundError:
        return {}
    except ValueError as failure:
        raise exceptions.InvalidDiskInfo(reason=f"The record of disk formats cannot be read: {failure}") from failure
    return {str(path): str(format) for path, format in found.items()}


def _record(files: InstanceFiles, path: Path, format: str) -> None:
    staged = files.formats.with_name(files.formats.name + ".tmp")
    staged.write_text(json.dumps({**_recorded(files), str(path): format}) + "\n")
    staged.rename(files.formats)


def _copy(source: Path, target: Path) -> None:
    """A copy that keeps holes, and shares blocks where the file system can."""
    part = target.with_name(target.name + ".copy")
    try:
        subprocess.run(
            ["cp", "--sparse=always", "--reflink=auto", str(source), str(part)], check=True, capture_output=True
        )
        part.rename(target)
    except subprocess.CalledProcessError as failure:
        said = failure.stderr.decode(errors="replace").strip()
        LOG.warning("%s could not be copied: %s", source, said)
        reason = f"The image could not be copied: {without_paths(said)}"
        raise exceptions.InvalidDiskInfo(reason=reason) from failure
    finally:
        part.unlink(missing_ok=True)


def _run_fallocate(path: Path, size: int) -> None:
    try:
        run(["fallocate", "-n", "-l", str(size), str(path)])
    except ToolFailed as failure:
        # Space on a file system that cannot reserve it is the operator's wish unfulfilled, not a reason to fail.
        LOG.warning("%s was not preallocated: %s", path, failure)
