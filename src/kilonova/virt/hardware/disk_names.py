"""Names of disk devices as guests are likely to see them: vda, vdb, ... vdz, vdaa."""

from __future__ import annotations

import re
import string
from collections.abc import Collection

PREFIXES = {"virtio": "vd", "scsi": "sd", "sata": "sd", "usb": "sd", "ide": "hd", "fdc": "fd", "lxc": "", "xen": "xvd"}


def first(bus: str | None) -> str:
    """The root disk's name by its bus; virtio when none is given."""
    return f"/dev/{PREFIXES.get(bus or 'virtio', 'vd')}a"


def following(like: str, taken: Collection[str]) -> str:
    """The first free name with the prefix of `like`. Names in `taken` count with or without /dev/."""
    match = re.fullmatch(r"/dev/(s|h|v|f|u|xv)d[a-z]+\d*", like)
    prefix = f"{match.group(1)}d" if match else "vd"
    used = {name.removeprefix("/dev/").rstrip(string.digits) for name in taken}
    number = 0
    while f"{prefix}{letters(number)}" in used:
        number += 1
    return f"/dev/{prefix}{letters(number)}"


def letters(number: int) -> str:
    """0 is a, 25 is z, 26 is aa."""
    text = ""
    while True:
        number, rest = divmod(number, 26)
        text = string.ascii_lowercase[rest] + text
        if number == 0:
            return text
        number -= 1
