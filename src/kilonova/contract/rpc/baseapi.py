"""What every service answers."""

from __future__ import annotations

from kilonova.contract.rpc.table import Api, Method, Sent, Served

_METHODS = (
    Method(
        "get_backdoor_port",
        "host",
        host="host",
        call=True,
        sent=(Sent("1.1", ""),),
    ),
    Method(
        "ping",
        "arg, timeout=None",
        call=True,
        sent=(Sent("1.0", "arg"),),
    ),
)

_SERVED = (
    Served("get_backdoor_port", ""),
    Served("ping", "arg"),
)

API = Api(
    name="baseapi",
    topic="*",
    version="1.1",
    namespace="baseapi",
    methods=_METHODS,
    served=_SERVED,
)
