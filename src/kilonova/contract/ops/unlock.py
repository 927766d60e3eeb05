"""Unlock: a server takes operations of its project again."""

from typing import Final

from kilonova.contract.cards import LEGACY_ONLY, Op, action
from kilonova.contract.microversions import since
from kilonova.contract.states import Action

POLICY: Final = "os_compute_api:os-lock-server:unlock"
OVERRIDE_POLICY: Final = "os_compute_api:os-lock-server:unlock:unlock_override"
# The body is free from 2.73 on, as it is on the legacy endpoint.
UNLOCK: Final = action("unlock", POLICY, OVERRIDE_POLICY, errors=(404,), unchecked=LEGACY_ONLY | since(73))
CARD: Final = Op(name="unlock", routes=(UNLOCK,), action=Action.UNLOCK)
