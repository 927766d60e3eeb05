"""Stop: power off a running server."""

from typing import Final

from kilonova.contract.cards import Guard, Op, action
from kilonova.contract.states import VM, Action, Task

POLICY: Final = "os_compute_api:servers:stop"
STOP: Final = action("os-stop", POLICY, errors=(404, 409))
CARD: Final = Op(
    name="stop",
    routes=(STOP,),
    guards={"stop": Guard(vm=frozenset({VM.ACTIVE, VM.ERROR}), host_required=True)},
    task=Task.POWERING_OFF,
    action=Action.STOP,
    rpc=("stop_instance",),
)
