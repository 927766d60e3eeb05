"""Delete: at once, or after ``reclaim_instance_interval`` seconds in which it can be restored."""

from typing import Final

from kilonova.contract.cards import Guard, Op, Route
from kilonova.contract.fields import NOTHING
from kilonova.contract.states import Action, Task

POLICY: Final = "os_compute_api:servers:delete"
DELETE: Final = Route(
    method="DELETE",
    path="/servers/{id}",
    success=204,
    errors=(404, 409),
    policies=(POLICY,),
    response=NOTHING,
)
CARD: Final = Op(
    name="delete",
    routes=(DELETE,),
    guards={
        "delete": Guard(task=None, must_have_launched=False),
        "soft_delete": Guard(task=None),
    },
    task=Task.DELETING,
    action=Action.DELETE,
    rpc=("terminate_instance", "soft_delete_instance"),
)
SOFT_TASK: Final = Task.SOFT_DELETING
