"""Start, accepted."""

from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract.ops import start as contract
from kilonova.wire.http.call import Binding, Call


def start(call: Call[Services], id: str) -> None:
    chosen = acting.target(call, id, contract.POLICY, contract.CARD)
    with acting.taken(call, chosen, contract.CARD, contract.CARD.guard) as instance:
        call.services.compute(chosen.cell).start_instance(call.context, instance=instance)


ROUTES = [Binding(contract.START, start)]
