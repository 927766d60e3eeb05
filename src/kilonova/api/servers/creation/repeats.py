"""Requests that are sent again by a client that got no answer: with an ``Idempotency-Key`` they make servers once.

The key, the project and the user give the id of the flow that builds, which is unique; the flow keeps the answer. So a
key is remembered as long as its flow is ([kilonova] flow_keep_days). Only the password is not told a second time.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kilonova.api.services import Services
from kilonova.db import flows
from kilonova.wire.http.call import Call, Reply
from kilonova.wire.http.faults import bad_request, conflict

LONGEST: Final = 255
_NAMESPACE: Final = uuid.UUID("5f0f8a3e-6a0c-5d0e-9d52-0c1f0c6b7a11")


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A request that may come again: the id of its flow, and what the request is known by."""

    flow_id: str
    fingerprint: str

    def kept(self, reply: Reply) -> dict[str, Any]:
        """What the flow keeps of the answer."""
        server = {name: value for name, value in reply.body.get("server", {}).items() if name != "adminPass"}
        body = {"server": server} if server else reply.body
        return {"fingerprint": self.fingerprint, "body": body, "headers": reply.headers}


def of(call: Call[Services]) -> Repeatable | None:
    """None for a request without a key. Raises `Fault` 400 for a key that is none."""
    key = call.idempotency_key
    if key is None:
        return None
    if not key.strip() or len(key) > LONGEST or not key.isprintable():
        raise bad_request(f"An Idempotency-Key has 1 to {LONGEST} printable characters.")
    owner = msgspec.json.encode([call.context.project_id, call.context.user_id, key])
    asked = msgspec.json.encode([call.version, call.body], order="deterministic")
    return Repeatable(str(uuid.uuid5(_NAMESPACE, owner.decode())), hashlib.sha256(asked).hexdigest())


def answered(call: Call[Services], request: Repeatable) -> Reply | None:
    """The answer that the request got before. Raises `Fault` 409 when another request had the key."""
    flow = call.services.cells.api.query(flows.find, request.flow_id)
    if flow is None:
        return None
    kept: Mapping[str, Any] = flow.frame["answer"]
    if kept["fingerprint"] != request.fingerprint:
        raise conflict("The Idempotency-Key belongs to another request.")
    return Reply(kept["body"], headers=dict(kept["headers"]))
