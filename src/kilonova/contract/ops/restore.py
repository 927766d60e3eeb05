"""Restore: bring back a soft-deleted server."""

from typing import Final

from kilonova.contract.cards import Guard, Op, action
from kilonova.contract.states import VM, Action, Task

POLICY: Final = "os_compute_api:os-deferred-delete:restore"
RESTORE: Final = action("restore", POLICY, errors=(403, 404, 409))
CARD: Final = Op(
    name="restore",
    routes=(RESTORE,),
    guards={"restore": Guard(vm=frozenset({VM.SOFT_DELETED}))},
    task=Task.RESTORING,
    action=Action.RESTORE,
    rpc=("restore_instance",),
)
