"""Which failures of a flow's stage only say that something else is away for now.

Flows wait for these until their deadline; an accepted delete, which has none, waits until it is carried out.
"""

from __future__ import annotations

from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions
from kilonova.db.away import is_away
from kilonova.wire.rpc.errors import DBConnectionError, RpcUnreachable


def passes(exc: BaseException) -> bool:
    """Another service, a database or the bus is away, be it that the scheduler says so of those that it asked."""
    if isinstance(exc, ServiceError):
        return exc.passes
    if isinstance(exc, exceptions.NoValidHost):
        return bool(exc.kwargs.get("away"))
    return isinstance(exc, (DBConnectionError, RpcUnreachable)) or is_away(exc)
