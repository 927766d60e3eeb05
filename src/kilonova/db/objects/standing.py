"""What a compute host has to do with a record of its cell: decides what conductors with strict_hosts do for it.

A record that is not there harms nobody: who asks for it hears that from the method itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from kilonova.contract.states import VM
from kilonova.db.cell.tables import (
    BLOCK_DEVICE_MAPPING,
    COMPUTE_NODES,
    INSTANCE_ACTIONS,
    INSTANCE_ACTIONS_EVENTS,
    INSTANCES,
    MIGRATIONS,
    SERVICES,
)
from kilonova.db.objects.migration import ENDED

COMPUTE = "nova-compute"


def has(tx: sa.Connection, host: str, uuid: str) -> bool:
    """Whether the server is on the host, or on none after the host worked on it. A deleted one stays where it was."""
    place = _place(tx, uuid)
    return place is None or place.host == host or (place.host is None and _worked(tx, host, uuid))


def may_change(tx: sa.Connection, host: str, uuid: str) -> bool:
    """Whether the host has the server, or is or may be an end of a move of it, or the one that builds it."""
    place = _place(tx, uuid)
    if place is None or place.host == host or (place.host is None and place.vm_state == VM.BUILDING):
        return True
    return (place.host is None and _worked(tx, host, uuid)) or _moves(tx, host, uuid)


def may_read(tx: sa.Connection, host: str, uuids: Collection[str]) -> bool:
    """Whether the host may change each of the servers, worked on it, or was an end of a move of it."""
    strangers = sa.select(INSTANCES.c.uuid, INSTANCES.c.host).where(INSTANCES.c.uuid.in_(list(uuids)))
    return all(
        _worked(tx, host, uuid) or _moves(tx, host, uuid, ended=True) or may_change(tx, host, uuid)
        for uuid, where in tx.execute(strangers).all()
        if where != host
    )


def began(tx: sa.Connection, host: str, uuid: str, event: str) -> bool:
    """Whether the host began an event of that name of the server's actions."""
    return _worked(tx, host, uuid, INSTANCE_ACTIONS_EVENTS.c.event == event)


def owns_service(tx: sa.Connection, host: str, number: int) -> bool:
    found = tx.execute(sa.select(SERVICES.c.host, SERVICES.c.binary).where(SERVICES.c.id == number)).first()
    return found is None or tuple(found) == (host, COMPUTE)


def owns_node(tx: sa.Connection, host: str, number: int) -> bool:
    found = tx.execute(sa.select(COMPUTE_NODES.c.host).where(COMPUTE_NODES.c.id == number)).first()
    return found is None or found.host == host


def has_node(tx: sa.Connection, host: str, name: str) -> bool:
    """Whether a node of that name is the host's."""
    found = sa.select(COMPUTE_NODES.c.host).where(
        COMPUTE_NODES.c.hypervisor_hostname == name, COMPUTE_NODES.c.deleted == 0
    )
    return host in tx.execute(found).scalars().all()


def server_of_mapping(tx: sa.Connection, number: int) -> str | None:
    """The server of a block device mapping."""
    table = BLOCK_DEVICE_MAPPING
    return tx.execute(sa.select(table.c.instance_uuid).where(table.c.id == number)).scalar()


def is_end_of(tx: sa.Connection, host: str, number: int) -> bool:
    """Whether the host is source or destination of the migration, or may become the latter: none is chosen yet."""
    table = MIGRATIONS
    found = tx.execute(sa.select(table.c.source_compute, table.c.dest_compute).where(table.c.id == number)).first()
    return found is None or host in found or found.dest_compute is None


def _place(tx: sa.Connection, uuid: str) -> Any:
    columns = (INSTANCES.c.host, INSTANCES.c.vm_state)
    return tx.execute(sa.select(*columns).where(INSTANCES.c.uuid == uuid)).first()


def _moves(tx: sa.Connection, host: str, uuid: str, ended: bool = False) -> bool:
    table = MIGRATIONS
    ends = sa.or_(table.c.source_compute == host, table.c.dest_compute == host, table.c.dest_compute.is_(None))
    going = [] if ended else [table.c.status.not_in(ENDED)]
    found = sa.select(table.c.id).where(table.c.instance_uuid == uuid, table.c.deleted == 0, ends, *going)
    return tx.execute(found.limit(1)).first() is not None


def _worked(tx: sa.Connection, host: str, uuid: str, *more: sa.ColumnElement[bool]) -> bool:
    """By the events of its actions. A conductor may bear the same name, but its events are called otherwise."""
    actions, events = INSTANCE_ACTIONS, INSTANCE_ACTIONS_EVENTS
    of = sa.select(actions.c.id).where(actions.c.instance_uuid == uuid)
    theirs = (events.c.action_id.in_(of), events.c.host == host, events.c.event.startswith("compute_", autoescape=True))
    return tx.execute(sa.select(events.c.id).where(*theirs, *more).limit(1)).first() is not None
