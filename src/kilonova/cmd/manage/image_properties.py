"""`nova-manage image_property show|set`: the image properties that are recorded with a server."""

from __future__ import annotations

from collections.abc import Mapping

from kilonova.cmd.manage import servers
from kilonova.cmd.manage.actions import Action, Refused, argument
from kilonova.cmd.manage.session import Session
from kilonova.compute.guest import image_meta
from kilonova.contract.context import admin
from kilonova.contract.objects.image_meta_props import ImageMetaProps
from kilonova.db.engine import Tx
from kilonova.db.objects import instance as instance_objects
from kilonova.db.objects import request_spec as request_spec_objects

TRAIT = "trait:"
LONGEST = 255
"""Bytes that a recorded value may have."""


def show(session: Session, instance_uuid: str, image_property: str) -> int:
    server = servers.find(session, instance_uuid, missing=2, parts=("system_metadata",))
    found = servers.image_property(server, image_property)
    session.say(found or f"No image property {image_property} is recorded with server {instance_uuid}.")
    return 0 if found else 3


def set_(session: Session, instance_uuid: str, image_properties: list[str] | None) -> int:
    server = servers.find(session, instance_uuid, missing=2)
    servers.in_state(server.row, servers.AT_REST, wrong_state=3)
    given = _checked(image_properties or [])
    # Read before anything is written: without one, nothing is.
    spec = session.cells.api.query(request_spec_objects.get_by_instance_uuid, admin(), instance_uuid)
    # The cell first: what is in the API database is derived from it, and a second run repairs it.
    spec.image = server.cell.database.run(_record, instance_uuid, given)
    session.cells.api.run(request_spec_objects.save, admin(), spec)
    return 0


def _record(tx: Tx, uuid: str, properties: Mapping[str, str]) -> object:
    """Write the properties; the image with them, for the scheduler."""
    servers.hold(tx, uuid, missing=2, states=servers.AT_REST, wrong_state=3)
    servers.record(tx, uuid, properties)
    try:
        return image_meta(instance_objects.load(tx, uuid, ("system_metadata",)))
    except ValueError as exc:
        # Only the whole shows it: some properties are read together.
        raise Refused(6, str(exc)) from exc


def _checked(words: list[str]) -> Mapping[str, str]:
    """Properties by name. Raises Refused: 4 for the form, 5 for a name, 6 for a value."""
    if not words or not all("=" in word for word in words):
        raise Refused(4, "Give --property NAME=VALUE, once or several times.")
    given = {name: value for name, _, value in (word.partition("=") for word in words)}
    for name in given:
        if not name.startswith(TRAIT) and name not in ImageMetaProps.fields:
            raise Refused(5, f"There is no image property {name}.")
    try:
        ImageMetaProps.from_dict(given)
    except ValueError as exc:
        raise Refused(6, str(exc)) from exc
    for name, value in given.items():
        if len(value.encode()) > LONGEST:
            raise Refused(6, f"The value of {name} is longer than {LONGEST} bytes.")
    return given


_UUID = argument("instance_uuid", metavar="<instance_uuid>", help="UUID of the server.")

ACTIONS = (
    Action(
        "image_property",
        "show",
        "Show an image property that is recorded with a server.",
        show,
        (_UUID, argument("image_property", metavar="<image_property>", help="Its name, as hw_disk_bus.")),
        {
            0: "shown",
            1: "something unforeseen happened",
            2: "there is no such server",
            3: "the property is not recorded",
        },
        unforeseen=1,
    ),
    Action(
        "image_property",
        "set",
        "Record image properties with a server, which has to be stopped or shelved. They count from its next start.",
        set_,
        (
            _UUID,
            argument(
                "--property",
                dest="image_properties",
                metavar="<image_property>",
                action="append",
                help="NAME=VALUE, as hw_disk_bus=virtio; may be repeated.",
            ),
        ),
        {
            0: "recorded",
            1: "something unforeseen happened",
            2: "there is no such server",
            3: "the server is neither stopped nor shelved",
            4: "a property is not NAME=VALUE, or none is given",
            5: "there is no property of that name (a value that does not fit: 6)",
        },
        unforeseen=1,
    ),
)
