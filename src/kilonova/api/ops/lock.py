"""Lock: only an administrator, or whoever the policy names, acts on the server until it is unlocked."""

from typing import Any

from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract.ops import lock as contract
from kilonova.db.engine import Tx
from kilonova.db.objects import lock as locking
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import conflict

REASON_SINCE = 73
REASON = "locked_reason"


def lock(call: Call[Services], id: str) -> None:
    found = acting.locate(call, id, contract.POLICY)
    if found.cell is None:
        raise conflict(f"Instance {id} is not in a cell yet; lock it when it is.")
    given: Any = call.body["lock"] if call.version >= REASON_SINCE else None
    reason = given.get(REASON) if given else None
    owner = "owner" if call.context.project_id == found.record["project_id"] else "admin"
    found.cell.database.run(_lock, call, id, owner, reason)


def _lock(tx: Tx, call: Call[Services], uuid: str, owner: str, reason: str | None) -> None:
    locking.lock(tx, uuid, owner, reason)
    acting.record_action(tx, call, uuid, contract.CARD)


ROUTES = [Binding(contract.LOCK, lock)]
