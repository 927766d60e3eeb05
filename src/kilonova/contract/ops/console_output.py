"""Console output: the last lines that the guest wrote to its serial console."""

from typing import Final

from kilonova.contract.cards import Guard, Op, action
from kilonova.contract.fields import TEXT, Field, Object

POLICY: Final = "os_compute_api:os-console-output"
CONSOLE_OUTPUT: Final = action(
    "os-getConsoleOutput",
    POLICY,
    errors=(404, 409, 501),
    success=200,
    value=Object(Field("length", {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$", "minimum": -1})),
    response=Object(Field("output", TEXT, required=True)),
)
CARD: Final = Op(
    name="console_output",
    routes=(CONSOLE_OUTPUT,),
    guards={"get_console_output": Guard(any_state=True, lock_checked=False, host_required=True)},
    rpc=("get_console_output",),
)
