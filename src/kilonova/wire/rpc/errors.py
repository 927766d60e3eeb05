"""Errors of the bus, and how exceptions cross it.

On the wire an exception carries its class, module, message and keyword arguments. Ours travel under the module
`nova.exception`, where every peer looks for them; what arrives under a name of the contract becomes that exception.
"""

from __future__ import annotations

from typing import Any

from kilonova.contract import exceptions

WIRE_MODULE = "nova.exception"


class RpcError(Exception):
    """A call could not be carried out for a reason of the bus, not of the method."""


class RpcTimeout(RpcError):
    """No answer came in time. The call may have been carried out all the same."""


class RpcUnreachable(RpcError):
    """The message could not be handed over to the bus."""


class RpcUnsupported(RpcError):
    """The server does not know the method, or only an older or newer version of it."""


class RpcRemoteError(RpcError):
    """The method raised something that is no exception of the contract; `kind` is its class name there."""

    def __init__(self, kind: str, message: str, traceback: str = "") -> None:
        self.kind = kind
        self.traceback = traceback
        super().__init__(f"{kind}: {message}")


RPC_LOST = (RpcTimeout, RpcUnreachable)
"""What may be tried again: nobody said no."""

_twins: dict[str, Any] = {}
_BUILTIN: dict[str, type[Exception]] = {
    "NotImplementedError": NotImplementedError,
    "ValueError": ValueError,
    "TypeError": TypeError,
}


def for_wire(exc: Exception) -> Exception:
    """The same exception, with its class as peers know it."""
    if isinstance(exc, exceptions.NovaException) and type(exc).__module__ != WIRE_MODULE:
        kind = type(exc)
        exc.__class__ = _twins.setdefault(kind.__name__, type(kind.__name__, (kind,), {"__module__": WIRE_MODULE}))
    return exc


def from_wire(kind: str, message: str, traceback: str = "", values: dict[str, object] | None = None) -> Exception:
    """The exception that a server raised, by its class name there; `values` are its keyword arguments if they came."""
    found = getattr(exceptions, kind, None) or _BUILTIN.get(kind)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return RpcRemoteError(kind, message, traceback)
    if found is exceptions.InstanceFaultRollback or not issubclass(found, exceptions.NovaException):
        made: Exception = found(message)
    else:
        made = found(message, **{str(k): v for k, v in (values or {}).items() if k != "message"})
    if traceback:
        made.add_note(f"Raised remotely:\n{traceback}")
    return made
