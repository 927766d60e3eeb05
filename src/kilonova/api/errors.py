"""Which exceptions a client sees, and as what."""

import logging
from typing import Final

from kilonova.clients.http import ServiceError
from kilonova.contract.exceptions import CinderConnectionFailed, NovaException
from kilonova.wire.http.faults import Fault
from kilonova.wire.rpc.errors import RpcUnreachable

LOG = logging.getLogger(__name__)
__all__ = ["no_answer", "seen"]
_UNSEEN: Final = 500
_BUSY: Final = 429


def no_answer() -> Fault:
    """What is asked for may be in a cell that does not answer: nobody knows, which is not the same as no."""
    return Fault(500, "A cell that may know does not answer; try again later.")


def seen(error: Exception) -> tuple[int, str] | None:
    """The code and message of an error that is the client's business; None for a fault of the service."""
    if isinstance(error, NovaException) and error.code < _UNSEEN:
        return error.code, error.format_message()
    if isinstance(error, ServiceError):
        LOG.warning("another service is in the way: %s", error)
        passing = error.status is None or error.status >= _UNSEEN or error.status == _BUSY
        return (503, f"{error.for_users} Try again later.") if passing else (500, error.for_users)
    if isinstance(error, CinderConnectionFailed):
        LOG.warning("another service is in the way: %s", error)
        return 503, "The service cinder does not answer. Try again later."
    if isinstance(error, RpcUnreachable):
        return 503, "The message bus does not answer; try again later."
    return None
