"""Which failures of a host's operation only say that something else is away for now."""

from __future__ import annotations

from kilonova.clients.http import ServiceError
from kilonova.wire.rpc.errors import RPC_LOST, DBConnectionError


def passes(exc: BaseException) -> bool:
    """Another service, the bus, or the database behind the conductor is away."""
    return exc.passes if isinstance(exc, ServiceError) else isinstance(exc, (*RPC_LOST, DBConnectionError))
