"""Delete, accepted."""

from kilonova.api.servers import acting, deletion
from kilonova.api.services import Services
from kilonova.contract.ops import delete as contract
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import Fault


def delete(call: Call[Services], id: str) -> None:
    if call.services.conf.reclaim_instance_interval > 0:
        _check_is_not_kept(call, id)
    deletion.delete(call, id, contract.POLICY, contract.CARD, contract.CARD.guards["delete"])


def _check_is_not_kept(call: Call[Services], id: str) -> None:
    """Deleting at once what the configuration wants kept would lose data. A server that never ran has none to lose."""
    found = acting.locate(call, id, contract.POLICY)
    acting.check(call, found, contract.CARD, contract.CARD.guards["delete"])
    if found.cell is not None and found.record["host"] and found.record["launched_at"]:
        raise Fault(501, "Not built yet: deferred deletion (reclaim_instance_interval); forceDelete deletes at once.")


ROUTES = [Binding(contract.DELETE, delete)]
