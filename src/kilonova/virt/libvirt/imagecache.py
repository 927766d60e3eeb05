"""Images on the host: fetched once, checked, converted, and shared by all guests made from them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_log import log

from kilonova.base import wanted
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.virt import images
from kilonova.virt.driver import ImageFetcher
from kilonova.virt.libvirt.paths import Layout
from kilonova.virt.libvirt.qemu_img import ImageInfo, QemuImg

LOG = log.getLogger(__name__)

LOCK_PREFIX = "nova-"
"""Part of the lock files' names, which all agents that share the directory must agree on."""

FIRST_WAIT, LONGEST_WAIT = 0.01, 0.25
"""Seconds between two looks whether an image is free; they double."""


@dataclasses.dataclass(frozen=True)
class CachedImage:
    path: Path
    info: ImageInfo


class ImageCache:
    """`instances_path/_base`: a file per image, named by the SHA-1 of its id."""

    def __init__(self, conf: cfg.ConfigOpts, layout: Layout, fetcher: ImageFetcher, qemu_img: QemuImg) -> None:
        self._force_raw = conf.force_raw_images
        self._vmdk_types = tuple(conf.compute.vmdk_allowed_types)
        self._layout = layout
        self._fetcher = fetcher
        self._qemu_img = qemu_img

    def disk(
        self, ctxt: RequestContext, image_id: str, declared: str | None, largest: int | None = None
    ) -> CachedImage:
        """The image as a disk, fetched if it is not here yet. `declared` is its format in the image service.

        `largest` is the size in bytes of the disk to be made of it: an image that unpacks to more is not unpacked.
        Raises ImageUnacceptable, ImageNotFound, FlavorDiskSmallerThanImage.
        """
        path = self._layout.cached_image(image_id)
        with self.locked(path):
            if not path.exists():
                with self._staged(path) as part:
                    self._fetcher.fetch(ctxt, image_id, str(part))
                    self._admit(part, path, image_id, declared, largest)
            found = images.recheck(path, image_id, declared)
            os.utime(path)
        info = self._qemu_img.info(path, found)
        # It may have been fetched as a kernel, which nobody looks into, or under laxer rules.
        self._refuse_references(info, image_id)
        _check_size(info.virtual_size, largest)
        return CachedImage(path, info)

    def raw_file(self, ctxt: RequestContext, image_id: str) -> Path:
        """A kernel or ramdisk: bytes that nothing interprets. Raises ImageNotFound."""
        path = self._layout.cached_image(image_id)
        with self.locked(path):
            if not path.exists():
                with self._staged(path) as part:
                    self._fetcher.fetch(ctxt, image_id, str(part))
                    part.rename(path)
            os.utime(path)
        return path

    def generated(self, name: str, make: Callable[[Path], None]) -> Path:
        """A file of our own in the cache (a formatted empty disk), made when it is first needed."""
        path = self._layout.cache / name
        with self.locked(path):
            if not path.exists():
                with self._staged(path) as part:
                    make(part)
                    part.rename(path)
            os.utime(path)
        return path

    @contextlib.contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        """While another guest's image is fetched, which may take long, whoever waits for it may be deleted."""
        self._layout.locks.mkdir(parents=True, exist_ok=True)
        wait = FIRST_WAIT
        with contextlib.ExitStack() as stack:
            while not self._taken(path, stack):
                wanted.check()
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
            yield

    def _taken(self, path: Path, stack: contextlib.ExitStack) -> bool:
        folder = str(self._layout.locks)
        lock = lockutils.lock(path.name, LOCK_PREFIX, external=True, lock_path=folder, do_log=False, blocking=False)
        try:
            stack.enter_context(lock)
        except lockutils.AcquireLockFailedException:
            return False
        return True

    @contextlib.contextmanager
    def _staged(self, path: Path) -> Iterator[Path]:
        """A name beside the final one: what is half done never looks finished, and leaves nothing when it fails."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)

    def _admit(self, part: Path, path: Path, image_id: str, declared: str | None, largest: int | None) -> None:
        """Check what was fetched and put it, raw if so configured, in its place."""
        found = images.inspect(part, image_id, declared)
        info = self._qemu_img.info(part, found.format)
        self._refuse_references(info, image_id)
        _check_size(info.virtual_size, largest)
        if found.format == "raw" or not self._force_raw:
            part.rename(path)
            return
        LOG.info("Converting image %s from %s to raw", image_id, found.format)
        converted = path.with_name(path.name + ".converted")
        try:
            self._qemu_img.convert(part, converted, found.format, "raw", image_id)
            images.require_raw(converted, image_id)
            converted.rename(path)
        finally:
            converted.unlink(missing_ok=True)

    def _refuse_references(self, info: ImageInfo, image_id: str) -> None:
        """What the header check refused already, seen once more with the eyes of the tool that will use the file."""
        reason = None
        if info.backing_file is not None:
            reason = "Image has a backing file"
        elif info.data_file is not None:
            reason = "Image has a data file"
        elif info.format == "vmdk" and info.create_type not in self._vmdk_types:
            reason = f"Image has the VMDK type {info.create_type}"
        if reason:
            raise exceptions.ImageUnacceptable(image_id=image_id, reason=reason)


def _check_size(size: int, largest: int | None) -> None:
    if largest is not None and size > largest:
        raise exceptions.FlavorDiskSmallerThanImage(flavor_size=largest, image_size=size)
