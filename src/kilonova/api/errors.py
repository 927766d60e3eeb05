"""Which exceptions a client sees, and as what."""

import logging
from typing import Final

from kilonova.clients import refusals
from kilonova.clients.http import ServiceError
from kilonova.contract.exceptions import NovaException
from kilonova.wire.http.faults import Fault
from kilonova.wire.rpc.errors import RpcUnreachable

LOG = logging.getLogger(__name__)
__all__ = ["no_answer", "seen"]
_UNSEEN: Final = 500


def no_answer() -> Fault:
    """What is asked for may be in a cell that does not answer: nobody knows, which is not the same as no."""
    return Fault(500, "A cell that may know does not answer; try again later.")


def seen(error: Exception) -> tuple[int, str] | None:
    """The code and message of an error that is the client's business; None for a fault of the service."""
    if isinstance(error, NovaException) and error.code < _UNSEEN:
        return error.code, error.format_message()
    if isinstance(error, NovaException) and isinstance(error.__cause__, ServiceError):
        # One of ours with another service's refusal behind it.
        code = refusals.code_of(error.__cause__)
        return (code, error.format_message()) if code else None
    if isinstance(error, ServiceError):
        LOG.warning("another service is in the way: %s", error)
        if error.passes or (error.status or 0) >= _UNSEEN:
            return 503, f"{error.for_users} Try again later."
        return refusals.code_of(error) or _UNSEEN, error.for_users
    if isinstance(error, RpcUnreachable):
        return 503, "The message bus does not answer; try again later."
    return None
