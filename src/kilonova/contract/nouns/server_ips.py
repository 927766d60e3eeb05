"""Addresses of a server in REST."""

from typing import Final

from kilonova.contract.cards import Route
from kilonova.contract.fields import Field, Object, array
from kilonova.contract.nouns.server_metadata import NO_QUERY

INDEX_POLICY: Final = "os_compute_api:ips:index"
SHOW_POLICY: Final = "os_compute_api:ips:show"
_ADDRESS: Final = Object(
    Field("addr", {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}, required=True),
    Field("version", {"enum": [4, 6]}, required=True),
)
_BY_NETWORK: Final = Object(patterns={"^.+$": array(_ADDRESS)})

LIST: Final = Route(
    method="GET",
    path="/servers/{server_id}/ips",
    errors=(404,),
    policies=(INDEX_POLICY,),
    query=NO_QUERY,
    response=Object(Field("addresses", _BY_NETWORK, required=True)),
)
SHOW: Final = Route(
    method="GET",
    path="/servers/{server_id}/ips/{id}",
    errors=(404,),
    policies=(SHOW_POLICY,),
    query=NO_QUERY,
    response=_BY_NETWORK,
)
