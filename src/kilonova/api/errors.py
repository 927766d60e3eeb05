"""Which exceptions a client sees, and as what."""

from kilonova.clients.http import ServiceUnavailable
from kilonova.contract.exceptions import NovaException
from kilonova.wire.rpc.errors import RpcUnreachable

_UNSEEN = 500


def seen(error: Exception) -> tuple[int, str] | None:
    """The code and message of an error that is the client's business; None for a fault of the service."""
    if isinstance(error, NovaException) and error.code < _UNSEEN:
        return error.code, error.format_message()
    if isinstance(error, ServiceUnavailable):
        return 503, f"The service {error.service} does not answer; try again later."
    if isinstance(error, RpcUnreachable):
        return 503, "The message bus does not answer; try again later."
    return None
