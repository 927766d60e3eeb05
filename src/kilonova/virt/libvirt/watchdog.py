"""A device that acts when the guest's operating system hangs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.contract import exceptions
from kilonova.virt.libvirt.config.devices import Watchdog

ACTIONS = frozenset({"none", "pause", "poweroff", "reset", "disabled"})


def device(arch: str, properties: Mapping[str, Any], extra_specs: Mapping[str, str]) -> Watchdog | None:
    """The image's action wins over the flavor's; `disabled` is none. Raises InvalidWatchdogAction."""
    action = str(properties.get("hw_watchdog_action") or extra_specs.get("hw:watchdog_action") or "disabled")
    if action not in ACTIONS:
        raise exceptions.InvalidWatchdogAction(action=action)
    if action == "disabled":
        return None
    return Watchdog(action, "diag288" if arch.startswith("s390") else "i6300esb")
