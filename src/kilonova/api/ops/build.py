"""Build, accepted: POST /servers.

Everything is checked before anything is changed. Then, in one transaction of the API database, the records of the
servers and the offer of the flow that builds them are committed, and the cast to the conductor follows; a lost cast is
made up for by the offer. Volumes are reserved before that transaction and given back when it fails.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any, Final

from kilonova.api import quota
from kilonova.api.servers.creation import names, record, repeats, resolve
from kilonova.api.servers.creation.record import Resolved, Server
from kilonova.api.servers.creation.repeats import Repeatable
from kilonova.api.servers.creation.wish import Wish, read
from kilonova.api.services import Services
from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions, objects
from kilonova.contract.ops import build as contract
from kilonova.db import flows
from kilonova.db.api import build_requests, instance_groups, instance_mappings, request_specs
from kilonova.db.cell import instances
from kilonova.db.cells import LOST, CellDown
from kilonova.db.engine import Tx
from kilonova.db.objects import build_request as build_request_rows
from kilonova.db.objects import request_spec as request_spec_rows
from kilonova.db.outcomes import DuplicateError
from kilonova.db.turns import Taken
from kilonova.flow.offers import build_offer
from kilonova.wire.http.call import Binding, Call, Reply
from kilonova.wire.http.faults import Fault, bad_request, conflict, forbidden

LOG = logging.getLogger(__name__)

_CONFLICTS: Final = (
    exceptions.PortInUse,
    exceptions.InstanceExists,
    exceptions.NetworkAmbiguous,
    exceptions.NoUniqueMatch,
)
# What a request can do about, though elsewhere the same exception is the service's own fault.
_BAD_REQUESTS: Final = (
    exceptions.Invalid,
    exceptions.NotFound,
    exceptions.NotSupported,
    exceptions.ImageNotActive,
    exceptions.ImageNotAuthorized,
    exceptions.FlavorDiskTooSmall,
    exceptions.FlavorMemoryTooSmall,
    exceptions.FixedIpAlreadyInUse,
    exceptions.CertificateValidationFailed,
    exceptions.InstanceUserDataMalformed,
    exceptions.DeviceProfileError,
)
_MESSAGES: Final[dict[type[Exception], str]] = {
    exceptions.ImageNotFound: "Can not find requested image",
    exceptions.KeypairNotFound: "Invalid key_name provided.",
}


def create(call: Call[Services]) -> Reply:
    wish = read(call.body, call.version)
    authorize(call, wish)
    again = repeats.of(call)
    answered = again and repeats.answered(call, again)
    if answered:
        return answered
    try:
        return _accept(call, wish, again)
    except (exceptions.NovaException, DuplicateError) as error:
        # The same request may have been accepted meanwhile, and be what this one stumbled over.
        answered = again and repeats.answered(call, again)
        if answered:
            return answered
        if isinstance(error, DuplicateError):
            raise
        raise _fault(error) from None


def authorize(call: Call[Services], wish: Wish) -> None:
    """Everything that a wish needs to be allowed."""
    target = {
        "project_id": call.context.project_id,
        "user_id": call.context.user_id,
        "availability_zone": wish.zone_text,
    }
    call.authorize(contract.CREATE_POLICY, target)
    needed = (
        (contract.TRUSTED_CERTS, bool(wish.trusted_certs)),
        (contract.FORCED_HOST, bool(wish.zone.host or wish.zone.node)),
        (contract.REQUESTED_DESTINATION, bool(wish.host or wish.node)),
        (contract.ATTACH_VOLUME, bool(wish.devices)),
        (contract.ATTACH_NETWORK, bool(wish.networks) and wish.networks != "none"),
    )
    for rule, asked in needed:
        if asked:
            call.authorize(rule, target)
    if (wish.host or wish.node) and (wish.zone.host or wish.zone.node):
        raise bad_request("A host can be asked for by host and hypervisor_hostname or by zone:host:node, not by both.")


def _fault(error: exceptions.NovaException) -> Fault:
    message = _MESSAGES.get(type(error), error.format_message())
    if isinstance(error, exceptions.OverQuota):
        return forbidden(message)
    if isinstance(error, exceptions.Forbidden):
        return forbidden(message)
    if isinstance(error, _CONFLICTS):
        return conflict(message)
    if isinstance(error, _BAD_REQUESTS):
        return bad_request(message)
    raise error


def _reply(call: Call[Services], wish: Wish, server: Server, password: str) -> Reply:
    if wish.wants_reservation_id:
        return Reply({"reservation_id": server.instance.reservation_id})
    path = f"/servers/{server.uuid}"
    shown: dict[str, Any] = {
        "id": server.uuid,
        "links": call.links(path),
        "OS-DCF:diskConfig": "AUTO" if server.instance.auto_disk_config else "MANUAL",
        "security_groups": call.body["server"].get("security_groups") or [{"name": "default"}],
    }
    if call.services.conf.api.enable_instance_password:
        shown["adminPass"] = password
    return Reply({"server": shown}, headers={"Location": call.url(path)})


# ---------------------------------------------------------------- acceptance


def _accept(call: Call[Services], wish: Wish, again: Repeatable | None) -> Reply:
    services = call.services
    _check_small_quotas(call, wish)
    found = resolve.everything(call, wish)
    most = resolve.servers_by_ports(call, found, wish.min_count, wish.max_count)
    uuids = [str(uuid.uuid4()) for _ in range(most)]
    counted, count = _servers_by_quota(call, found, wish.min_count, most)
    _check_group_quota(call, found, count)
    password = wish.admin_password
    if password is None:
        password = names.password(services.conf.password_length)
    reservation_id = names.reservation_id()
    reserved = _reserve(call, found, uuids[0])
    try:
        while True:
            servers = [
                record.server(
                    call.context, wish, found, uuid=one, index=index, count=count, reservation_id=reservation_id
                )
                for index, one in enumerate(uuids[:count])
            ]
            _check_names(call, servers)
            arguments = _arguments(wish, found, servers, password)
            reply = _reply(call, wish, servers[0], password)
            repeated = {} if again is None else {"flow_id": again.flow_id, "answer": again.kept(reply)}
            try:
                _commit(call, found, servers, arguments, repeated, counted)
                break
            except quota.OvertakenError:
                # Each time others were accepted, so this comes to an end: there is room, or there is none.
                counted, count = _servers_by_quota(call, found, wish.min_count, most)
    except BaseException:
        _give_back(call, reserved)
        raise
    _cast(call, servers, arguments)
    return reply


def _arguments(wish: Wish, found: Resolved, servers: Sequence[Server], password: str) -> dict[str, Any]:
    """What the conductor is told, beside the build requests."""
    first = servers[0].build_request
    return {
        "request_specs": [server.request_spec for server in servers],
        "image": found.image,
        "admin_password": password,
        "injected_files": wish.files,
        "requested_networks": found.networks,
        "block_device_mapping": first.block_device_mappings,
        "tags": objects.TagList(objects=[objects.Tag(tag=tag) for tag in wish.tags]),
    }


def _commit(
    call: Call[Services],
    found: Resolved,
    servers: Sequence[Server],
    arguments: dict[str, Any],
    repeated: dict[str, Any],
    counted: quota.Counted,
) -> None:
    """Record it in one transaction. Raises OvertakenError, and what a database raises that is away."""
    api = call.services.cells.api
    try:
        api.run(_record, call, found, servers, arguments, repeated, counted)
    except LOST:
        # Lost in its commit it may be there all the same: a conductor builds it then, with the volumes reserved for it.
        if api.query(instance_mappings.instance_mapping_get, servers[0].uuid) is None:
            raise
        LOG.warning("request %s: the commit was lost and had been made", call.context.request_id)


def _record(
    tx: Tx,
    call: Call[Services],
    found: Resolved,
    servers: Sequence[Server],
    arguments: dict[str, Any],
    repeated: dict[str, Any],
    counted: quota.Counted,
) -> None:
    """All records and the offer, or nothing. Raises OvertakenError."""
    conf = call.services.conf
    quota.take_servers(tx, call.context, counted, _size(found, len(servers)))
    request_specs.request_spec_create_many(
        tx,
        [{"instance_uuid": server.uuid, "spec": request_spec_rows.text(server.request_spec)} for server in servers],
    )
    build_requests.build_request_create_many(
        tx, [build_request_rows.values(server.build_request) for server in servers]
    )
    owner = {"project_id": call.context.project_id, "user_id": call.context.user_id}
    instance_mappings.instance_mapping_create_many(tx, [{"instance_uuid": server.uuid, **owner} for server in servers])
    if found.group is not None:
        _join_group(tx, call, found.group, [server.uuid for server in servers])
    offer = build_offer(
        call.services.seal,
        call.context,
        grace=conf.kilonova.flow_grace,
        deadline=conf.kilonova.build_deadline,
        cast=True,
        **arguments,
        **repeated,
    )
    flows.offer(tx, offer)


def _size(found: Resolved, count: int) -> Taken:
    return Taken(count, count * found.flavor.vcpus, count * found.flavor.memory_mb)


def _join_group(tx: Tx, call: Call[Services], group: objects.InstanceGroup, uuids: list[str]) -> None:
    instance_groups.instance_group_members_add(tx, group.id, uuids)
    quota.check_group_members(tx, call.services.conf, call.context, group.id, 0)


def _cast(call: Call[Services], servers: Sequence[Server], arguments: dict[str, Any]) -> None:
    sent = {name: value for name, value in arguments.items() if name != "request_specs"}
    try:
        call.services.conductor().schedule_and_build_instances(
            call.context,
            build_requests=objects.BuildRequestList(objects=[server.build_request for server in servers]),
            request_specs=arguments["request_specs"],
            **sent,
        )
    except Exception:
        # The servers are recorded and the flow is offered: a conductor takes it without the cast.
        LOG.exception("request %s: the cast to the conductor failed; its flow is offered", call.context.request_id)


# ---------------------------------------------------------------- checks


def _check_small_quotas(call: Call[Services], wish: Wish) -> None:
    """Metadata and files of one server. Raises MetadataLimitExceeded, OnsetFileLimitExceeded and its kin."""
    if not wish.metadata and not wish.files:
        return
    limits = call.services.cells.api.query(quota.limits, call.services.conf, call.context.project_id or "")
    if quota.exceeds(limits["metadata_items"], len(wish.metadata)):
        raise exceptions.MetadataLimitExceeded(allowed=limits["metadata_items"])
    if quota.exceeds(limits["injected_files"], len(wish.files)):
        raise exceptions.OnsetFileLimitExceeded()
    for path, contents in wish.files:
        if quota.exceeds(limits["injected_file_path_bytes"], len(path)):
            raise exceptions.OnsetFilePathLimitExceeded(allowed=limits["injected_file_path_bytes"])
        if quota.exceeds(limits["injected_file_content_bytes"], len(contents)):
            raise exceptions.OnsetFileContentLimitExceeded(allowed=limits["injected_file_content_bytes"])


def _servers_by_quota(call: Call[Services], found: Resolved, low: int, high: int) -> tuple[quota.Counted, int]:
    counted = quota.count_servers(call.services.cells, call.services.conf, call.context)
    each = {"cores": found.flavor.vcpus, "ram": found.flavor.memory_mb}
    return counted, quota.servers_allowed(counted.rooms, each, low, high)


def _check_group_quota(call: Call[Services], found: Resolved, count: int) -> None:
    """Before anything is asked of other services; in its turn it is looked at once more."""
    if found.group is not None:
        call.services.cells.api.query(
            quota.check_group_members, call.services.conf, call.context, found.group.id, count
        )


def _check_names(call: Call[Services], servers: Sequence[Server]) -> None:
    """Host names that must differ by configuration. Raises InstanceExists."""
    scope = call.services.conf.osapi_compute_unique_server_name_scope
    if not scope:
        return
    project_id = call.context.project_id if scope == "project" else None

    def taken(tx: Tx) -> list[str]:
        wanted = [server.instance.hostname for server in servers]
        return [name for name in wanted if instances.instance_name_taken(tx, name, project_id)]

    for answer in call.services.cells.scatter(lambda cell: cell.database.query(taken)).values():
        if not isinstance(answer, CellDown) and answer:
            raise exceptions.InstanceExists(name=answer[0])


# ---------------------------------------------------------------- volumes


def _reserve(call: Call[Services], found: Resolved, server_uuid: str) -> list[str]:
    """Reserve the volumes of the (only) server; ids of the attachments."""
    made: list[str] = []
    cinder = call.services.clients.cinder
    try:
        for device in found.devices:
            if device["volume_id"]:
                attachment = cinder.attachment_create(call.context, device["volume_id"], server_uuid)
                made.append(attachment["id"])
                device["attachment_id"] = attachment["id"]
    except BaseException:
        _give_back(call, made)
        raise
    return made


def _give_back(call: Call[Services], attachments: Sequence[str]) -> None:
    for attachment_id in attachments:
        try:
            call.services.clients.cinder.attachment_delete(call.context, attachment_id)
        except (exceptions.NovaException, ServiceError):
            # What no record explains is found and removed by reconciliation.
            LOG.exception("attachment %s of a refused server is left behind", attachment_id)


ROUTES = [Binding(contract.CREATE, create)]
