"""Errors that a client sees: ``{"itemNotFound": {"code": 404, "message": "..."}}``."""

from collections.abc import Mapping
from typing import Any, Final

NAMES: Final[Mapping[int, str]] = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
_DEFAULT_NAME: Final = "computeFault"


class Fault(Exception):
    """Ends a request with an HTTP error. The message goes to the client as it is."""

    def __init__(self, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def document(code: int, message: str) -> dict[str, Any]:
    """The body of an error."""
    return {NAMES.get(code, _DEFAULT_NAME): {"code": code, "message": message}}


def bad_request(message: str) -> Fault:
    return Fault(400, message)


def forbidden(message: str) -> Fault:
    return Fault(403, message)


def not_found(message: str) -> Fault:
    return Fault(404, message)


def conflict(message: str) -> Fault:
    return Fault(409, message)
