"""A volume group on a loop file, for machines that have device-mapper."""

from __future__ import annotations

from pathlib import Path

from kilonova.cloud.commands import ok, run
from kilonova.cloud.site import Site

SIZE = "100G"
"""Of the sparse file; only what guests write takes room."""


def usable() -> bool:
    """Whether volume groups can be made here: device-mapper, LVM's tools, and the target that exports volumes."""
    return Path("/dev/mapper/control").exists() and ok(["lvm", "version"]) and ok(["targetcli", "version"])


def volume_group(site: Site) -> str | None:
    """The cloud's volume group, if it was made."""
    marker = site.data / "cinder" / "volume-group"
    return marker.read_text().strip() if marker.exists() else None


def set_up(site: Site, log: Path) -> None:
    """Make the group, unless the machine cannot have one or it is there."""
    if volume_group(site) is not None or not usable():
        return
    folder = site.data / "cinder"
    disk = folder / "volumes.img"
    if not disk.exists():
        run(["truncate", "-s", SIZE, disk], log)
    loop = run(["losetup", "--find", "--show", disk], log).strip()
    name = f"kilonova-volumes-{site.settings.number}"
    run(["vgcreate", name, loop], log)
    (folder / "volume-group").write_text(name)


def activate(site: Site, log: Path) -> None:
    """Attach the loop file again, after a reboot of the machine or `down`."""
    name = volume_group(site)
    disk = site.data / "cinder" / "volumes.img"
    if name and not run(["losetup", "-j", disk], log).strip():
        run(["losetup", "--find", disk], log)
        run(["vgchange", "-ay", name], log)


def deactivate(site: Site, log: Path, remove: bool) -> None:
    """Let go of the loop file; with `remove`, of the group too."""
    name = volume_group(site)
    if name is None:
        return
    if remove:
        run(["vgremove", "-f", name], log, check=False)
    else:
        run(["vgchange", "-an", name], log, check=False)
    attached = run(["losetup", "-j", site.data / "cinder" / "volumes.img"], log, check=False)
    for line in attached.splitlines():
        run(["losetup", "-d", line.split(":")[0]], log, check=False)
