"""Availability zones in REST."""

from typing import Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import NOTHING, TEXT, Field, Object, array, query
from kilonova.contract.microversions import until

LIST_POLICY: Final = "os_compute_api:os-availability-zone:list"
DETAIL_POLICY: Final = "os_compute_api:os-availability-zone:detail"
_QUERY: Final = query(lenient=until(101))
_STATE: Final = {"type": "object", "properties": {"available": {"type": "boolean"}}}
_SERVICE: Final = Object(
    Field("active", {"type": "boolean"}, required=True),
    Field("available", {"type": "boolean"}, required=True),
    Field("updated_at", {"type": ["string", "null"], "format": "date-time"}, required=True),
)
_HOSTS: Final = Object(patterns={"^.+$": Object(patterns={"^.+$": _SERVICE})}, nullable=True)


def _zones(hosts: object) -> Object:
    zone = Object(
        Field("hosts", hosts, required=True),
        Field("zoneName", TEXT, required=True),
        Field("zoneState", _STATE, required=True),
    )
    return Object(Field("availabilityZoneInfo", array(zone), required=True))


LIST: Final = Route(
    method="GET", path="/os-availability-zone", policies=(LIST_POLICY,), query=_QUERY, response=_zones(NOTHING)
)
DETAIL: Final = Route(
    method="GET", path="/os-availability-zone/detail", policies=(DETAIL_POLICY,), query=_QUERY, response=_zones(_HOSTS)
)
