"""Which exceptions a client sees, and as what."""

from kilonova.contract.exceptions import NovaException

_UNSEEN = 500


def seen(error: Exception) -> tuple[int, str] | None:
    """The code and message of an error that is the client's business; None for a fault of the service."""
    if isinstance(error, NovaException) and error.code < _UNSEEN:
        return error.code, error.format_message()
    return None
