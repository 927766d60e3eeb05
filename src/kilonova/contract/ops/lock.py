"""Lock: a locked server takes operations of administrators only."""

from typing import Final

from kilonova.contract.cards import LEGACY_ONLY, Op, action
from kilonova.contract.fields import ByVersion, Field, Object
from kilonova.contract.microversions import ALL, since, until
from kilonova.contract.states import Action

POLICY: Final = "os_compute_api:os-lock-server:lock"
_REASON: Final = Object(
    Field("locked_reason", {"type": "string", "minLength": 1, "maxLength": 255}, since(73)), nullable=True
)
LOCK: Final = action(
    "lock",
    POLICY,
    errors=(404,),
    value=ByVersion((until(72), {}), (ALL, _REASON)),
    unchecked=LEGACY_ONLY,
)
CARD: Final = Op(name="lock", routes=(LOCK,), action=Action.LOCK)
