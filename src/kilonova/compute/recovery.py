"""What an instance's own states say was interrupted, and the operation that puts it right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.contract import objects
from kilonova.contract.states import VM, Power, Task

Remedy = tuple[str | None, Mapping[str, Any]]
"""(RPC method to carry out, its arguments besides the instance); (None, {}) when nothing is open."""


def judge(instance: objects.Instance, power_state: int, resume: bool = False) -> Remedy:
    """Pure. `power_state`: what the hypervisor says. `resume`: start a guest that ran when the host went down."""
    if instance.vm_state in (VM.SOFT_DELETED, VM.DELETED):
        return None, {}
    if instance.vm_state == VM.ERROR and instance.task_state != Task.DELETING:
        return None, {}
    if instance.vm_state == VM.BUILDING:
        return ("terminate_instance", {}) if instance.task_state == Task.DELETING else ("build_and_run_instance", {})
    if found := BY_TASK.get(instance.task_state):
        return found
    if resume and instance.power_state == Power.RUNNING and power_state in (Power.SHUTDOWN, Power.PENDING):
        return "reboot_instance", {"reboot_type": "HARD", "resume": True}
    return None, {}


BY_TASK: Mapping[str | None, tuple[str, Mapping[str, Any]]] = {
    Task.DELETING: ("terminate_instance", {}),
    Task.POWERING_OFF: ("stop_instance", {"clean_shutdown": True}),
    Task.POWERING_ON: ("start_instance", {}),
    Task.REBOOTING: ("reboot_instance", {"reboot_type": "SOFT"}),
    Task.REBOOT_PENDING: ("reboot_instance", {"reboot_type": "SOFT"}),
    Task.REBOOT_STARTED: ("reboot_instance", {"reboot_type": "SOFT"}),
    Task.REBOOTING_HARD: ("reboot_instance", {"reboot_type": "HARD"}),
    Task.REBOOT_PENDING_HARD: ("reboot_instance", {"reboot_type": "HARD"}),
    Task.REBOOT_STARTED_HARD: ("reboot_instance", {"reboot_type": "HARD"}),
}
