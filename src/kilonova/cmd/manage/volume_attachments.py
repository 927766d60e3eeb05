"""`nova-manage volume_attachment show|get_connector|refresh`: how volumes are reached by the hosts of their servers.

A host without databases tells its connector; what needs them is imported by the actions that do.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kilonova.cmd.manage.actions import Action, Refused, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.contract import exceptions, objects
from kilonova.contract.context import admin

if TYPE_CHECKING:
    from kilonova.cmd.manage import servers


def show(session: Session, instance_uuid: str, volume_id: str, connection_info: bool, json: bool) -> int:
    from kilonova.cmd.manage import servers, volume_refresh

    server = servers.find(session, instance_uuid, missing=2)
    found = _mapping(server, volume_id, missing=3)
    if not connection_info:
        _print(session, {name: found[name] for name in found.fields if found.obj_attr_is_set(name)}, json)
    elif json:
        session.say(found.connection_info)
    else:
        session.properties(volume_refresh.connection_of(found))
    return 0


def get_connector(session: Session, json: bool) -> int:
    try:
        from kilonova.virt.libvirt import privileged, volumes

        privileged.prepare(session.conf)
        # One that leaves out paths would be kept for as long as the volume is attached.
        connector = volumes.Volumes(session.conf, session.conf.host).connector(enforce_multipath=True)
    except ImportError as exc:
        raise Refused(1, f"This needs os-brick, which kilonova[libvirt] brings: {exc}") from exc
    _print(session, connector, json)
    return 0


def refresh(session: Session, instance_uuid: str, volume_id: str, connector_path: str) -> int:
    from kilonova.cmd.manage import servers, volume_refresh

    connector = _connector(Path(connector_path))
    server = servers.find(session, instance_uuid, missing=4)
    found = _mapping(server, volume_id, missing=6)
    if connector["host"] != server.row["host"]:
        raise Refused(
            7,
            f"The connector is host {connector['host']}'s, the server is on {server.row['host']}: "
            "`nova-manage volume_attachment get_connector` has to run there.",
        )
    try:
        volume_refresh.refresh(session, server, found, connector)
    finally:
        session.bus.close()
    session.say(f"Volume {volume_id} is attached anew to server {instance_uuid}.")
    return 0


def _mapping(server: servers.Server, volume_id: str, *, missing: int) -> objects.BlockDeviceMapping:
    from kilonova.db.objects import bdm as mappings

    try:
        return server.cell.database.query(
            mappings.get_by_volume_and_instance, admin(), volume_id, str(server.row["uuid"])
        )
    except exceptions.VolumeBDMNotFound as exc:
        raise Refused(missing, f"Volume {volume_id} is not attached to server {server.row['uuid']}.") from exc


def _connector(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise Refused(2, f"There is no file {path}.")
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise Refused(3, f"{path} cannot be read as JSON: {exc}") from exc
    if not isinstance(found, dict) or not found.get("host"):
        raise Refused(3, f"{path} is no connector: it names no host.")
    return found


def _print(session: Session, values: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        session.say(json.dumps(values, default=_written))
    else:
        session.properties(values)


def _written(moment: datetime.datetime) -> str:
    """A time as Nova writes it into JSON: UTC, without saying so."""
    return moment.replace(tzinfo=None).isoformat()


_SERVER = argument("instance_uuid", metavar="<instance_uuid>", help="UUID of the server.")
_VOLUME = argument("volume_id", metavar="<volume_id>", help="UUID of the volume.")
_JSON = switch("--json", help="As JSON.")

ACTIONS = (
    Action(
        "volume_attachment",
        "show",
        "Show what is recorded of a volume that a server has.",
        show,
        (_SERVER, _VOLUME, switch("--connection_info", help="Only how its host reaches the volume."), _JSON),
        {
            0: "shown",
            1: "something unforeseen happened",
            2: "there is no such server",
            3: "the server does not have the volume",
        },
        unforeseen=1,
    ),
    Action(
        "volume_attachment",
        "get_connector",
        "Show this host's connector: by it the volume service knows to whom it exports a volume.",
        get_connector,
        (_JSON,),
        {0: "shown", 1: "something unforeseen happened"},
        unforeseen=1,
    ),
    Action(
        "volume_attachment",
        "refresh",
        "Attach a volume of a stopped server anew, so that the server reaches it as the volume service has it now.",
        refresh,
        (
            _SERVER,
            _VOLUME,
            argument("connector_path", metavar="<connector_path>", help="JSON file with its host's connector."),
        ),
        {
            0: "done",
            1: "something unforeseen happened",
            2: "the connector's file does not exist",
            3: "the connector's file cannot be read",
            4: "there is no such server",
            5: "the server is not stopped",
            6: "the server does not have the volume",
            7: "the connector is another host's",
        },
        unforeseen=1,
    ),
)
