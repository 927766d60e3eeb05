"""Start: power on a stopped server."""

from typing import Final

from kilonova.contract.cards import Guard, Op, action
from kilonova.contract.states import VM, Action, Task

POLICY: Final = "os_compute_api:servers:start"
START: Final = action("os-start", POLICY, errors=(404, 409))
CARD: Final = Op(
    name="start",
    routes=(START,),
    guards={"start": Guard(vm=frozenset({VM.STOPPED}), host_required=True)},
    task=Task.POWERING_ON,
    action=Action.START,
    rpc=("start_instance",),
)
