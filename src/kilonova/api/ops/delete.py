"""Delete, accepted."""

from kilonova.api.servers import deletion
from kilonova.api.services import Services
from kilonova.contract.ops import delete as contract
from kilonova.wire.http.call import Binding, Call
from kilonova.wire.http.faults import Fault


def delete(call: Call[Services], id: str) -> None:
    if call.services.conf.reclaim_instance_interval > 0:
        # Deleting at once what the configuration wants kept would lose data.
        raise Fault(501, "Not built yet: deferred deletion (reclaim_instance_interval); forceDelete deletes at once.")
    deletion.delete(call, id, contract.POLICY, contract.CARD, contract.CARD.guards["delete"])


ROUTES = [Binding(contract.DELETE, delete)]
