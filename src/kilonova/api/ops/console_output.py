"""Console output: asked of the host, the only read that is not in a database."""

import re
from typing import Any

from kilonova.api import numbers
from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract import exceptions
from kilonova.contract.ops import console_output as contract
from kilonova.contract.states import Task
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import Fault, conflict, not_found
from kilonova.wire.rpc.errors import RPC_LOST

# XML and terminals choke on them; JSON has no need of them.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def console_output(call: Call[Services], id: str) -> dict[str, Any]:
    chosen = acting.target(call, id, contract.POLICY, contract.CARD)
    if chosen.record["task_state"] == Task.DELETING:
        raise conflict(f"Instance {id} is being deleted")
    length = call.body["os-getConsoleOutput"].get("length")
    tail = None if length is None else numbers.whole("length", length)
    try:
        output = call.services.compute(chosen.cell).get_console_output(
            call.context, instance=chosen.load(), tail_length=tail
        )
    except (exceptions.ConsoleNotAvailable, exceptions.ConsoleLogOutputException) as error:
        raise not_found(error.format_message()) from None
    except exceptions.InstanceNotReady as error:
        raise conflict(error.format_message()) from None
    except NotImplementedError:
        raise Fault(501, "The hypervisor of this server keeps no console output.") from None
    except RPC_LOST:
        raise conflict(f"The host of instance {id} does not answer") from None
    return {"output": _CONTROL.sub("", output or "")}


ROUTES = [Binding(contract.CONSOLE_OUTPUT, console_output)]
