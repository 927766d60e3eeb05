"""Roots of the hierarchy and errors of no particular noun."""

from __future__ import annotations

from typing import Any, ClassVar


class NovaException(Exception):
    """What went wrong, under a name that peers on the bus know.

    The message is made from `msg_fmt` and the keyword arguments, or given whole. `code` is the HTTP status when it
    reaches a user; only the message of a `safe` one may be shown to users who are not administrators.
    """

    msg_fmt: ClassVar[str] = "An error without a description occurred."
    code: int = 500
    safe: ClassVar[bool] = False
    refusal: ClassVar[bool] = False
    """Says no to a request although its code is that of a failure."""
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, message: object = None, **kwargs: Any) -> None:
        self.kwargs = {"code": self.code} | kwargs
        self.code = self.kwargs["code"]
        self.message = str(message) if message else self._formatted(kwargs)
        super().__init__(self.message)

    @property
    def ordinary(self) -> bool:
        """Whether it refuses what was asked, in words that say all: nothing inside a service is wrong."""
        return self.code < 500 or self.refusal

    def _formatted(self, kwargs: dict[str, Any]) -> str:
        try:
            return self.msg_fmt % kwargs
        except (KeyError, TypeError, ValueError):
            # The original error must not be lost to an incomplete call: show what there is.
            details = ", ".join(f"{name}={value}" for name, value in sorted(kwargs.items()))
            return f"{type(self).__name__}: {details}" if details else type(self).__name__

    def format_message(self) -> str:
        """The message as users see it."""
        return self.message


class Forbidden(NovaException):
    msg_fmt = "Not allowed."
    code = 403


class AdminRequired(Forbidden):
    msg_fmt = "Only an administrator may do this."


class InternalError(NovaException):
    msg_fmt = "%(err)s"


class Invalid(NovaException):
    msg_fmt = "Bad request."
    code = 400


class InvalidInput(Invalid):
    msg_fmt = "Invalid input received: %(reason)s"


class InvalidUUID(Invalid):
    msg_fmt = "Expected a uuid but received %(uuid)s."


class NotFound(NovaException):
    msg_fmt = "Resource could not be found."
    code = 404


class MarkerNotFound(NotFound):
    msg_fmt = "Marker %(marker)s could not be found."


class NotSupported(NovaException):
    msg_fmt = "Not supported."
    code = 400


class OverQuota(NovaException):
    msg_fmt = "Quota exceeded for resources: %(overs)s"
    code = 413
    safe = True


class PolicyNotAuthorized(Forbidden):
    msg_fmt = "Policy doesn't allow %(action)s to be performed."


class ServiceUnavailable(Invalid):
    msg_fmt = "Service unavailable."


class Unauthorized(NovaException):
    msg_fmt = "Not authorised."
    code = 401


class ValidationError(Invalid):
    msg_fmt = "%(detail)s"
