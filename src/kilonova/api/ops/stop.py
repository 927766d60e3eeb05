"""Stop, accepted."""

from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract.ops import stop as contract
from kilonova.wire.http.call import Binding, Call


def stop(call: Call[Services], id: str) -> None:
    chosen = acting.target(call, id, contract.POLICY, contract.CARD)
    with acting.taken(call, chosen, contract.CARD, contract.CARD.guard, progress=0) as instance:
        call.services.compute(chosen.cell).stop_instance(call.context, instance=instance, clean_shutdown=True)


ROUTES = [Binding(contract.STOP, stop)]
