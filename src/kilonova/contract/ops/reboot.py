"""Reboot: soft asks the guest, hard cuts its power."""

from typing import Final

from kilonova.contract.cards import Guard, Op, action
from kilonova.contract.fields import Field, Object
from kilonova.contract.states import TASK_STATE_LISTS, VM_STATE_LISTS, Action, Task

POLICY: Final = "os_compute_api:servers:reboot"
SOFT: Final = "SOFT"
HARD: Final = "HARD"
_TYPES: Final = [word for kind in (SOFT, HARD) for word in (kind, kind.title(), kind.lower())]
REBOOT: Final = action(
    "reboot",
    POLICY,
    errors=(404, 409),
    value=Object(Field("type", {"type": "string", "enum": _TYPES}, required=True)),
)
# The route's own guard leaves the states to the kind of reboot.
CARD: Final = Op(
    name="reboot",
    routes=(REBOOT,),
    guards={"reboot": Guard(any_state=True)},
    action=Action.REBOOT,
    rpc=("reboot_instance",),
)
SOFT_GUARD: Final = Guard(vm=frozenset(VM_STATE_LISTS["ALLOW_SOFT_REBOOT"]))
HARD_GUARD: Final = Guard(
    vm=frozenset(VM_STATE_LISTS["ALLOW_HARD_REBOOT"]), task=frozenset(TASK_STATE_LISTS["ALLOW_REBOOT"])
)
SOFT_TASK: Final = Task.REBOOTING
HARD_TASK: Final = Task.REBOOTING_HARD
