"""The operations of this host: RPC method -> how it is performed. Adding a verb begins here."""

from __future__ import annotations

from collections.abc import Mapping

from kilonova.compute.lanes import BOOT_KIND, BUILD_KIND, DELETE_KIND, GUEST_KIND
from kilonova.compute.ops import delete, reboot, start, stop
from kilonova.compute.ops.build import recover, run
from kilonova.compute.runner import Operation

_ALL = (
    Operation(
        "build_and_run_instance",
        event="compute__do_build_and_run_instance",
        perform=run.perform,
        recover=recover.perform,
        repeat=recover.repeat,
        kind=BUILD_KIND,
        retryable=False,
        reverts=False,
    ),
    Operation(
        "terminate_instance",
        event="compute_terminate_instance",
        perform=delete.perform,
        kind=DELETE_KIND,
        preempts=True,
        frees=True,
        reverts=False,
    ),
    Operation(
        "stop_instance",
        event="compute_stop_instance",
        perform=stop.perform,
        recover=stop.recover,
        kind=GUEST_KIND,
    ),
    Operation(
        "start_instance",
        event="compute_start_instance",
        perform=start.perform,
        recover=start.recover,
        kind=BOOT_KIND,
    ),
    Operation(
        "reboot_instance",
        event="compute_reboot_instance",
        perform=reboot.perform,
        recover=reboot.recover,
        kind=BOOT_KIND,
    ),
)

OPERATIONS: Mapping[str, Operation] = {operation.method: operation for operation in _ALL}
