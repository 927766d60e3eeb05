"""Tap devices of ports whose network plugin only routes: it finds them by name."""

from __future__ import annotations

import os
import subprocess

from kilonova.virt.libvirt import privileged


@privileged.context.entrypoint
def create(name: str, multiqueue: bool, mtu: int | None) -> None:
    """Make the device unless it is there, and switch it on."""
    if not os.path.exists(f"/sys/class/net/{name}"):
        _ip("tuntap", "add", "dev", name, "mode", "tap", *(["multi_queue"] if multiqueue else []))
    if mtu:
        _ip("link", "set", "dev", name, "mtu", str(mtu))
    _ip("link", "set", "dev", name, "up")


@privileged.context.entrypoint
def delete(name: str) -> None:
    if os.path.exists(f"/sys/class/net/{name}"):
        _ip("link", "delete", "dev", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)
