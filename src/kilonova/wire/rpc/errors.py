"""Errors of the bus, and how exceptions cross it.

On the wire an exception carries its class, module, message and keyword arguments. Ours travel under the module
`nova.exception`, where every peer looks for them; what arrives under a name of the contract becomes that exception.
"""

from __future__ import annotations

import json
from typing import Any

from kilonova.contract import exceptions

WIRE_MODULE = "nova.exception"
_VALUES = "Arguments: "


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


class DBConnectionError(RpcError):
    """The method could not be carried out because its database is away. Services of Nova say so by the same name."""


RPC_LOST = (RpcTimeout, RpcUnreachable)
"""What may be tried again: nobody said no."""

_twins: dict[str, Any] = {}
_BY_NAME: dict[str, type[Exception]] = {
    "DBConnectionError": DBConnectionError,
    "NotImplementedError": NotImplementedError,
    "ValueError": ValueError,
    "TypeError": TypeError,
}


def for_wire(exc: Exception) -> Exception:
    """The same exception, with its class as peers know it.

    Its keyword arguments are noted on it too: notes are part of the traceback that travels, and oslo.messaging gives a
    receiver that cannot import `nova.exception` class, message and traceback, but not the arguments.
    """
    _note_values(exc)
    if isinstance(exc, exceptions.NovaException) and type(exc).__module__ != WIRE_MODULE:
        kind = type(exc)
        exc.__class__ = _twins.setdefault(kind.__name__, type(kind.__name__, (kind,), {"__module__": WIRE_MODULE}))
    return exc


def _note_values(exc: Exception) -> None:
    values = {k: v for k, v in getattr(exc, "kwargs", {}).items() if k != "code"}
    noted = any(note.startswith(_VALUES) for note in getattr(exc, "__notes__", ()))
    if isinstance(exc, exceptions.NovaException) and values and not noted:
        exc.add_note(_VALUES + json.dumps(values, default=str))


def noted_values(traceback: list[str]) -> dict[str, object]:
    """The keyword arguments that the sender noted in a traceback."""
    for line in reversed(traceback):
        if line.startswith(_VALUES):
            found: dict[str, object] = json.loads(line.removeprefix(_VALUES))
            return found
    return {}


def from_wire(kind: str, message: str, traceback: str = "", values: dict[str, object] | None = None) -> Exception:
    """The exception that a server raised, by its class name there; `values` are its keyword arguments if they came."""
    found = getattr(exceptions, kind, None) or _BY_NAME.get(kind)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return RpcRemoteError(kind, message, traceback)
    if found is exceptions.InstanceFaultRollback or not issubclass(found, exceptions.NovaException):
        made: Exception = found(message)
    else:
        made = found(message, **{str(k): v for k, v in (values or {}).items() if k != "message"})
    if traceback:
        made.add_note(f"Raised remotely:\n{traceback}")
    return made
