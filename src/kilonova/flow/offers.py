"""The flows that the API puts down in its own transactions, and that a conductor makes of a peer's cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kilonova.base import clock, ids
from kilonova.contract.context import RequestContext
from kilonova.flow.seal import Seal
from kilonova.flow.store import FlowRow, NewFlow

BUILD_BATCH = "build_batch"
"""Chooses hosts for all servers of one request; then each server has its own `build`. Lives in the API database."""

BUILD = "build"
RESCHEDULE = "reschedule"
"""Builds a server on one of its alternates after a host gave it back. Lives in the server's cell."""

WATCH = "watch"
"""Sees a build to its end that nobody drives. Lives in the server's cell."""

DELETE = "delete"
"""Lives in the server's cell."""


def context_part(ctxt: RequestContext) -> dict[str, Any]:
    """The context as it may be stored in clear: without the token."""
    return {**ctxt.to_dict(), "auth_token": None}


def context_of(frame: dict[str, Any], secrets: dict[str, Any]) -> RequestContext:
    """The context that :func:`context_part` stored, with its token if the secrets still have it."""
    return RequestContext.from_dict({**frame["context"], "auth_token": secrets.get("auth_token")})


def asked_by(row: FlowRow) -> RequestContext:
    """Whose request a flow carries out, for its log lines."""
    if "context" in row.frame:
        return context_of(row.frame, {})
    return RequestContext(request_id=row.request_id, project_id=row.project_id)


def build_offer(
    seal: Seal,
    ctxt: RequestContext,
    *,
    request_specs: Sequence[Any],
    image: dict[str, Any] | None,
    admin_password: str | None,
    injected_files: Sequence[Any] | None,
    requested_networks: Any | None,
    block_device_mapping: Any | None,
    tags: Any | None,
    grace: float,
    deadline: float,
    flow_id: str | None = None,
    answer: dict[str, Any] | None = None,
    cast: bool = False,
) -> NewFlow:
    """The flow that builds what `schedule_and_build_instances` is cast for; the arguments are that call's, as objects.

    Put down in the API database in the transaction that stores build requests, request specs and instance mappings
    (`db.flows.offer(tx, ...)`); then the same arguments are cast, which `cast` says: conductors of Nova's may get them.
    `grace` is [kilonova] flow_grace, `deadline` is [kilonova] build_deadline (both in seconds). A request that may be
    repeated gives the flow an id of its own and has its `answer` kept.
    """
    first = request_specs[0]
    frame = {
        "context": context_part(ctxt),
        "request_specs": [spec.obj_to_primitive() for spec in request_specs],
        "image": image,
        "requested_networks": _primitive(requested_networks),
        "block_device_mapping": _primitive(block_device_mapping),
        "tags": _primitive(tags),
        **({} if answer is None else {"answer": answer}),
        **({"cast": True} if cast else {}),
    }
    secrets = {"auth_token": ctxt.auth_token, "admin_password": admin_password, "injected_files": injected_files}
    return NewFlow(
        BUILD_BATCH,
        first.instance_uuid,
        frame,
        grace=grace,
        deadline=deadline,
        request_id=ctxt.request_id,
        project_id=ctxt.project_id,
        sealed=seal.close(secrets),
        id=flow_id or ids.new_uuid(),
    )


def burial_offer(ctxt: RequestContext, *, instance_uuid: str, project_id: str | None, reason: str) -> NewFlow:
    """The flow that ends a build request which nobody drives: the server is shown in ERROR, with the reason."""
    spec = {"nova_object.data": {"instance_uuid": instance_uuid}}
    frame = {"context": context_part(ctxt), "request_specs": [spec], "given_up": reason, "tags": None}
    frame["block_device_mapping"] = None
    return NewFlow(BUILD_BATCH, instance_uuid, frame, request_id=ctxt.request_id, project_id=project_id)


def watch_offer(
    ctxt: RequestContext, *, instance_uuid: str, project_id: str | None, host: str | None, deadline_at: float
) -> NewFlow:
    """The flow that watches a build from now on. `deadline_at`: seconds since 1970-01-01 UTC."""
    frame = {
        "context": context_part(ctxt),
        "requested_networks": None,
        "sent": {"host": host, "at": clock.seconds(), "times": 1},
        "deadline_at": deadline_at,
    }
    return NewFlow(WATCH, instance_uuid, frame, request_id=ctxt.request_id, project_id=project_id)


def delete_offer(
    seal: Seal, ctxt: RequestContext, *, instance_uuid: str, cast: bool, grace: float, force: bool = False
) -> NewFlow:
    """The flow that sees a server's end.

    Put down in the cell database in the transaction that sets task_state `deleting` (or `soft-deleting` finally).
    `cast` says whether terminate_instance is then cast to its host; without it the flow starts at once and deletes the
    server without its host if need be.
    """
    return NewFlow(
        DELETE,
        instance_uuid,
        {"context": context_part(ctxt), "cast": cast, "force": force},
        grace=grace if cast else 0.0,
        request_id=ctxt.request_id,
        project_id=ctxt.project_id,
        sealed=seal.close({"auth_token": ctxt.auth_token}),
    )


def _primitive(value: Any) -> Any:
    return None if value is None else value.obj_to_primitive()
