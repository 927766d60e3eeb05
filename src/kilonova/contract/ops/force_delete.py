"""Force delete: delete at once, whatever the state, and what is waiting to be reclaimed."""

from typing import Final

from kilonova.contract.cards import Guard, Op, action
from kilonova.contract.states import Action, Task

POLICY: Final = "os_compute_api:os-deferred-delete:force"
FORCE_DELETE: Final = action("forceDelete", POLICY, errors=(404, 409))
CARD: Final = Op(
    name="force_delete",
    routes=(FORCE_DELETE,),
    guards={"force_delete": Guard(task=None, must_have_launched=False)},
    task=Task.DELETING,
    action=Action.DELETE,
    rpc=("terminate_instance",),
)
