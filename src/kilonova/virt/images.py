"""Declared-format check: what a tenant's bytes are, before any tool opens them.

A disk image can name other files (a backing file, a data file, VMDK extents). A tool that follows such a name reads
files of the host for the tenant. So the bytes are inspected here first, by code that only looks at headers, and refused
when they are not what the image service declares or when they refer to anything outside of themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from oslo_utils.imageutils import format_inspector

from kilonova.contract import exceptions

KERNEL_FORMATS = frozenset({"ami", "aki", "ari"})
"""Declared formats that say how an image is used, not what it is."""

_RAW_KINDS = frozenset({"raw", "iso", "gpt"})
"""What inspectors tell apart but a hypervisor reads sector by sector all the same."""

_CHUNK = 64 * 1024


@dataclasses.dataclass(frozen=True)
class Inspection:
    """`format` is the one qemu-img must find too; `virtual_size` in bytes."""

    format: str
    virtual_size: int


def inspect(path: str | Path, image_id: str, declared: str | None) -> Inspection:
    """Check the file at `path` against the format the image service declares.

    Raises ImageUnacceptable when the content is of another or of no supported kind, is ambiguous, or refers to other
    files.
    """
    if declared not in KERNEL_FORMATS and format_inspector.get_inspector(declared or "") is None:
        raise exceptions.ImageUnacceptable(image_id=image_id, reason=f"Image format {declared} is not supported")
    found = _detect(path, image_id)
    _require_safe(found, image_id)
    name = str(found)
    if declared not in KERNEL_FORMATS and not _agrees(declared, name):
        raise exceptions.ImageUnacceptable(
            image_id=image_id, reason=f"Image content does not match disk_format: declared {declared}, found {name}"
        )
    if declared in KERNEL_FORMATS or name in _RAW_KINDS:
        return Inspection("raw", Path(path).stat().st_size)
    return Inspection(name, found.virtual_size)


def recheck(path: str | Path, image_id: str, declared: str | None) -> str:
    """The format of a cached image, checked again before use: the rules may have become stricter since it was fetched.

    A cached image is raw (fetched so or converted) or still what was declared. Raises ImageUnacceptable.
    """
    found = _detect(path, image_id)
    _require_safe(found, image_id)
    name = str(found)
    if name in _RAW_KINDS or declared in KERNEL_FORMATS:
        return "raw"
    if name != declared:
        raise exceptions.ImageUnacceptable(
            image_id=image_id, reason=f"Cached image is {name}, the image service declares {declared}"
        )
    return name


def require_raw(path: str | Path, image_id: str) -> None:
    """Refuse a converted image whose guest-visible bytes are themselves an image with a header.

    Were it kept, a later look at the file could take the inner image for the outer one and follow its references.
    Raises ImageUnacceptable.
    """
    name = str(_detect(path, image_id))
    if name not in _RAW_KINDS:
        raise exceptions.ImageUnacceptable(image_id=image_id, reason=f"Converted to raw, but format is now {name}")


def _agrees(declared: str | None, found: str) -> bool:
    # A partition table at the start of a disk does not make it another format.
    return declared == found or (declared == "raw" and found == "gpt")


def _require_safe(inspector: format_inspector.FileInspector, image_id: str) -> None:
    try:
        inspector.safety_check()
    except format_inspector.SafetyCheckFailed as failure:
        raise exceptions.ImageUnacceptable(
            image_id=image_id, reason=f"Image does not pass the safety check ({', '.join(failure.failures)})"
        ) from failure


def _chunks(source: format_inspector.InspectWrapper) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _detect(path: str | Path, image_id: str) -> format_inspector.FileInspector:
    with open(path, "rb") as file:
        wrapper = format_inspector.InspectWrapper(file)
        for _ in _chunks(wrapper):
            if wrapper.formats:
                break
        wrapper.close()
    found = {str(each): each for each in wrapper.formats or ()}
    if set(found) == {"iso", "gpt"}:
        # A CD-ROM that also boots as a disk.
        return found["iso"]
    if len(found) != 1:
        raise exceptions.ImageUnacceptable(
            image_id=image_id, reason=f"Image content is ambiguous: {', '.join(sorted(found)) or 'nothing recognised'}"
        )
    return next(iter(found.values()))
