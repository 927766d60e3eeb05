"""Force delete, accepted."""

from kilonova.api.servers import deletion
from kilonova.api.services import Services
from kilonova.contract.ops import force_delete as contract
from kilonova.wire.http.call import Binding, Call


def force_delete(call: Call[Services], id: str) -> None:
    deletion.delete(call, id, contract.POLICY, contract.CARD, contract.CARD.guard)


ROUTES = [Binding(contract.FORCE_DELETE, force_delete)]
