"""What has to be read to show servers: parts of their records, and the scene for a whole page at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from kilonova.api import hosts
from kilonova.api.servers import view
from kilonova.api.services import Services
from kilonova.clients.http import ServiceError
from kilonova.contract import exceptions
from kilonova.contract.fields import Object
from kilonova.contract.nouns import servers as contract
from kilonova.contract.objects.image_meta_props import ImageMetaProps
from kilonova.contract.states import VM
from kilonova.db.api import instance_groups, request_specs
from kilonova.db.cell import instances
from kilonova.db.engine import Tx
from kilonova.wire.http.call import Call

LOG = logging.getLogger(__name__)


class _Asked(msgspec.Struct):
    """What is shown of a request spec."""

    availability_zone: str | None = None
    scheduler_hints: dict[str, list[str]] | None = None


class _Spec(msgspec.Struct, rename={"data": "nova_object.data"}):
    data: _Asked


_spec_of = msgspec.json.Decoder(_Spec).decode
WHOLE_METADATA_SINCE: Final = 98
"""Since when a server is shown with the properties of its image, which are in its system metadata."""

_LONG_TEXTS: Final = ("key_data", "launched_on")
COLUMNS: Final = tuple(name for name in instances.COLUMNS if name not in _LONG_TEXTS)


_PARTS: Final = {
    "metadata": "metadata",
    "addresses": "info_cache",
    "flavor": "flavor",
    "fault": "fault",
    "os-extended-volumes:volumes_attached": "volumes",
    "host_status": "services",
    "tags": "tags",
    "trusted_image_certificates": "trusted_certs",
    "locked_reason": "locked_reason",
}
"""What of a record has to be read for a member of a server."""


def parts(call: Call[Services], shape: Object, *, host_status: bool = True) -> list[str]:
    """The parts of a record that the shape shows in the asked version; ``host_status`` False leaves it out."""
    members = view.names(shape, call.version)
    wanted = [part for member, part in _PARTS.items() if member in members]
    if not host_status and "services" in wanted:
        wanted.remove("services")
    if call.version < WHOLE_METADATA_SINCE:
        return wanted
    return ["system_metadata" if part == "locked_reason" else part for part in wanted]


def sight(call: Call[Services], shape: Object, project_id: str | None = None) -> view.Scene:
    """The scene as far as policy and URL make it; ``project_id`` is that of the one server to be shown."""
    target = None if project_id is None else {"project_id": project_id}
    host_status = only_unknown = False
    if "host_status" in view.names(shape, call.version):
        host_status = call.allows(contract.HOST_STATUS, target)
        only_unknown = not host_status and call.allows(contract.HOST_STATUS_UNKNOWN, target)
    conf = call.services.conf
    return view.Scene(
        self_url=call.url(""),
        bookmark_url=f"{call.root}{call.project}",
        version=call.version,
        instance_name_template=conf.instance_name_template,
        default_zone=conf.default_availability_zone,
        is_admin=call.context.is_admin,
        extended=call.allows(contract.EXTENDED_ATTRIBUTES, target),
        extra_specs=call.version >= 47 and call.allows(contract.FLAVOR_EXTRA_SPECS, target),
        host_status=host_status or only_unknown,
        only_unknown_status=only_unknown,
        image_properties=_known_properties() if call.version >= WHOLE_METADATA_SINCE else frozenset(),
    )


_PROPERTIES: list[frozenset[str]] = []


def _known_properties() -> frozenset[str]:
    if not _PROPERTIES:
        legacy = getattr(ImageMetaProps, "LEGACY_NAMES", {})
        _PROPERTIES.append(frozenset(ImageMetaProps.fields) | frozenset(legacy))
    return _PROPERTIES[0]


def furnish(call: Call[Services], scene: view.Scene, records: Sequence[view.Record], shape: Object) -> view.Scene:
    """Fetch what the records lack for the shape: zones, host states, request specs, groups of servers and of rules."""
    members = view.names(shape, call.version)
    uuids = [record["uuid"] for record in records]

    def known(tx: Tx) -> None:
        scene.zones = hosts.zones(tx, {record["host"] for record in records if record["host"]})
        if "pinned_availability_zone" in members and uuids:
            scene.specs = {row["instance_uuid"]: _spec(row) for row in request_specs.request_spec_list(tx, uuids)}
            _drop_ended_groups(tx, scene.specs.values())
            if shape is not contract.IN_DETAIL:
                # A server alone whose spec is gone is shown without hints, one in a list with none: as in Nova.
                for uuid in uuids:
                    scene.specs.setdefault(uuid, {"availability_zone": None, "scheduler_hints": {}})
        if "server_groups" in members and uuids:
            scene.groups = instance_groups.instance_group_uuids_by_member(tx, uuids)

    call.services.cells.api.query(known)
    if scene.host_status:
        scene.host_statuses = {
            record["host"]: hosts.status(call.services.conf, record["services"])
            for record in records
            if record["host"] and not record["deleted"]
        }
    if "security_groups" in members:
        scene.security_groups = security_groups(call, records)
    return scene


def _spec(row: view.Record) -> dict[str, Any]:
    asked = _spec_of(row["spec"]).data
    return {"availability_zone": asked.availability_zone, "scheduler_hints": asked.scheduler_hints}


def _drop_ended_groups(tx: Tx, specs: Iterable[view.Record]) -> None:
    """A hint of a server group is shown as long as there is the group."""
    hints = [hints for spec in specs if (hints := spec["scheduler_hints"]) and hints.get("group")]
    there = instance_groups.instance_group_uuids_there(tx, {uuid for each in hints for uuid in each["group"]})
    for each in hints:
        if not there.issuperset(each["group"]):
            del each["group"]


# ---------------------------------------------------------------- security groups


def security_groups(call: Call[Services], records: Sequence[view.Record]) -> dict[str, list[str]]:
    """Names of the groups of each server's ports; none where Neutron does not answer."""
    ports = {
        record["uuid"]: [vif.id for vif in view.interfaces(record)]
        for record in records
        if record["vm_state"] != VM.BUILDING and not record["deleted"]
    }
    wanted = [port for of_server in ports.values() for port in of_server]
    if not wanted:
        return {}

    def ask(missing: list[str]) -> dict[str, list[str]]:
        found = call.services.clients.neutron.security_groups_for(call.context, missing)
        return {port: [group.get("name") or group["id"] for group in groups] for port, groups in found.items()}

    try:
        names = call.services.group_names.get(_visibility(call), wanted, ask)
    except (exceptions.NovaException, ServiceError) as error:
        LOG.warning("security groups of %d ports are not shown: %s", len(wanted), error)
        return {}
    # Once for each port that has the group, as in Nova.
    return {uuid: [name for port in mine for name in names.get(port, [])] for uuid, mine in ports.items()}


def _visibility(call: Call[Services]) -> tuple[Any, ...]:
    """What Neutron's policies decide by: callers who are equal in this see the same."""
    context = call.context
    scope = context.project_id, context.domain_id, context.system_scope
    return (context.user_id, *scope, *sorted(context.roles))
