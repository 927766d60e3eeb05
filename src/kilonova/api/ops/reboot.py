"""Reboot, accepted: soft or hard, each with states of its own."""

from kilonova.api.servers import acting
from kilonova.api.services import Services
from kilonova.contract.ops import reboot as contract
from kilonova.wire.http.call import Binding, Call

_KINDS = {
    contract.SOFT: (contract.SOFT_GUARD, contract.SOFT_TASK),
    contract.HARD: (contract.HARD_GUARD, contract.HARD_TASK),
}


def reboot(call: Call[Services], id: str) -> None:
    kind = call.body["reboot"]["type"].upper()
    guard, task = _KINDS[kind]
    chosen = acting.target(call, id, contract.POLICY, contract.CARD, guard)
    with acting.taken(call, chosen, contract.CARD, guard, task) as instance:
        call.services.compute(chosen.cell).reboot_instance(
            call.context, instance=instance, block_device_info=None, reboot_type=kind
        )


ROUTES = [Binding(contract.REBOOT, reboot)]
