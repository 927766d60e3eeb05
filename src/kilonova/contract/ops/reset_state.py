"""Reset state: an administrator says that a server is well or broken."""

from typing import Final

from kilonova.contract.cards import Op, action
from kilonova.contract.fields import Field, Object
from kilonova.contract.states import VM, Action

POLICY: Final = "os_compute_api:os-admin-actions:reset_state"
RESET_STATE: Final = action(
    "os-resetState",
    POLICY,
    errors=(404,),
    value=Object(Field("state", {"type": "string", "enum": [VM.ACTIVE, VM.ERROR]}, required=True)),
)
CARD: Final = Op(name="reset_state", routes=(RESET_STATE,), action=Action.RESET_STATE)
