"""External events: what other services tell about a server's ports and volumes."""

from typing import Any, Final

from kilonova.contract.cards import Op, Route
from kilonova.contract.fields import INTEGER, UUID, ByVersion, Field, Object, Shape, array
from kilonova.contract.microversions import ALL, until

POLICY: Final = "os_compute_api:os-server-external-events:create"
_NETWORK_EVENTS: Final = ["network-changed", "network-vif-deleted", "network-vif-plugged", "network-vif-unplugged"]
_LATER_EVENTS: Final = ((51, "volume-extended"), (76, "power-update"), (82, "accelerator-request-bound"))
_LATEST_EVENT: Final = (93, "volume-reimaged")
STATUSES: Final = ["failed", "completed", "in-progress"]


def _names() -> ByVersion:
    names, cases = list(_NETWORK_EVENTS), []
    for since, name in (*_LATER_EVENTS, _LATEST_EVENT):
        cases.append((until(since - 1), {"type": "string", "enum": list(names)}))
        names.append(name)
    return ByVersion(*cases, (ALL, {"type": "string", "enum": names}))


def _events(*more: Field, status_required: bool, **limits: Any) -> Shape:
    event = Object(
        Field("name", _names(), required=True),
        Field("server_uuid", UUID, required=True),
        Field("status", {"type": "string", "enum": STATUSES}, required=status_required),
        Field("tag", {"type": "string", "maxLength": 255}),
        *more,
    )
    return Object(Field("events", array(event, **limits), required=True))


EXTERNAL_EVENTS: Final = Route(
    method="POST",
    path="/os-server-external-events",
    errors=(403,),
    policies=(POLICY,),
    body=_events(status_required=False, minItems=1),
    response=_events(Field("code", {**INTEGER, "enum": [200, 400, 404, 422]}, required=True), status_required=True),
)
CARD: Final = Op(name="external_event", routes=(EXTERNAL_EVENTS,), rpc=("external_instance_event",))
