"""An operation's context and arguments as JSON data, so that a later run of the agent can take it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.contract.context import RequestContext
from kilonova.wire.rpc.serializer import Decoder, encode


def pack(ctxt: RequestContext, args: Mapping[str, Any]) -> dict[str, Any]:
    return {"context": ctxt.to_dict(), "args": encode(dict(args))}


def unpack(payload: Mapping[str, Any]) -> tuple[RequestContext, dict[str, Any]]:
    ctxt = RequestContext.from_dict(payload["context"])
    return ctxt, Decoder().decode(ctxt, dict(payload["args"]))
