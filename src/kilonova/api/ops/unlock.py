"""Unlock: what an administrator has locked needs a policy of its own."""

from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract.ops import unlock as contract
from kilonova.db.engine import Tx
from kilonova.db.objects import lock as locking
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import conflict


def unlock(call: Call[Services], id: str) -> None:
    found = acting.locate(call, id, contract.POLICY)
    if found.cell is None:
        raise conflict(f"Instance {id} is not in a cell yet.")
    if found.record["locked"] and found.record["locked_by"] == "admin":
        owner = {"project_id": found.record["project_id"], "user_id": found.record["user_id"]}
        call.authorize(contract.OVERRIDE_POLICY, owner)
    found.cell.database.run(_unlock, call, id)


def _unlock(tx: Tx, call: Call[Services], uuid: str) -> None:
    locking.unlock(tx, uuid)
    acting.record_action(tx, call, uuid, contract.CARD)


ROUTES = [Binding(contract.UNLOCK, unlock)]
