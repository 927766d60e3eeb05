"""Reset state: the administrator's word against the record's."""

from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract.ops import reset_state as contract
from kilonova.db.cell import instances
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import conflict


def reset_state(call: Call[Services], id: str) -> None:
    found = acting.locate(call, id, contract.POLICY)
    if found.cell is None:
        raise conflict(f"Instance {id} is not in a cell yet; it has no state to reset.")
    found.cell.database.run(_reset, call, id, call.body["os-resetState"]["state"])


def _reset(tx: Tx, call: Call[Services], uuid: str, state: str) -> None:
    instances.instance_update(tx, uuid, {"vm_state": state, "task_state": None})
    acting.record_action(tx, call, uuid, contract.CARD)


ROUTES = [Binding(contract.RESET_STATE, reset_state)]
