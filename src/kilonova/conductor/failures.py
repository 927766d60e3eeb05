"""Failures as data, and as the fault that a user reads."""

from __future__ import annotations

import traceback
from typing import Any

from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db.objects import fault as faults
from kilonova.flow.plan import DeadlineExceeded
from kilonova.wire.rpc.errors import RpcRemoteError

Failure = dict[str, Any]
"""{"class", "message", "code", "details"}: what flows keep under `failure`."""

_OWN_WORDS = (exceptions.NovaException, DeadlineExceeded)


def describe(exc: BaseException) -> Failure:
    """What is kept of an exception: our own messages are for users, of others only the class is."""
    kind = exc.kind if isinstance(exc, RpcRemoteError) else type(exc).__name__
    message = exc.for_users if isinstance(exc, ServiceError) else str(exc) if isinstance(exc, _OWN_WORDS) else kind
    return {
        "class": kind,
        "message": message,
        "code": getattr(exc, "code", 500),
        "details": _explanation(exc) + "".join(traceback.format_exception(exc)),
    }


def _explanation(exc: BaseException) -> str:
    """What the scheduler says host by host, where it found none."""
    explained = getattr(exc, "kwargs", {}).get("explanation")
    return f"{explained['text']}\n\n" if isinstance(explained, dict) and "text" in explained else ""


def record_fault(tx: Any, ctxt: RequestContext, uuid: str, failure: Failure, host: str | None) -> None:
    """Write an instance fault. Details are kept of internal errors only, as administrators alone read them."""
    fault = objects.InstanceFault(
        instance_uuid=uuid,
        code=failure["code"],
        message=failure["message"],
        details=failure["details"] if failure["code"] == 500 else "",
        host=host,
    )
    faults.create(tx, ctxt, fault)
