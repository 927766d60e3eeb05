"""Services: who runs where, and when it was last heard of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db.cell import services
from kilonova.db.cell.tables import COMPUTE_NODES, SERVICES
from kilonova.db.objects import hydrate
from kilonova.db.objects.hydrate import Row
from kilonova.db.outcomes import DuplicateError

NOT_COLUMNS = {"compute_node", "availability_zone"}


def from_row(row: Row) -> objects.Service:
    return hydrate.fill(objects.Service(), row, skip=NOT_COLUMNS)


def _list(rows: Iterable[Row]) -> objects.ServiceList:
    return objects.ServiceList(objects=[from_row(row) for row in rows])


def _rows(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    query = hydrate.select_alive(SERVICES, *conditions).order_by(SERVICES.c.id)
    return list(tx.execute(query).mappings())


def rows_by_hosts(tx: sa.Connection, hosts: Collection[str]) -> list[Row]:
    return _rows(tx, SERVICES.c.host.in_(list(hosts)))


def _first(tx: sa.Connection, *conditions: sa.ColumnElement[bool]) -> objects.Service | None:
    rows = _rows(tx, *conditions)
    return from_row(rows[0]) if rows else None


def get_by_id(tx: sa.Connection, ctxt: Any, service_id: int) -> objects.Service:
    """Raises ServiceNotFound."""
    found = _first(tx, SERVICES.c.id == service_id)
    if found is None:
        raise exceptions.ServiceNotFound(service_id=service_id)
    return found


def get_by_uuid(tx: sa.Connection, ctxt: Any, service_uuid: str) -> objects.Service:
    """Raises ServiceNotFound."""
    found = _first(tx, SERVICES.c.uuid == service_uuid)
    if found is None:
        raise exceptions.ServiceNotFound(service_id=service_uuid)
    return found


def get_by_args(tx: sa.Connection, ctxt: Any, host: str, binary: str) -> objects.Service | None:
    return _first(tx, SERVICES.c.host == host, SERVICES.c.binary == binary)


def get_by_host_and_topic(tx: sa.Connection, ctxt: Any, host: str, topic: str) -> objects.Service | None:
    return _first(tx, SERVICES.c.host == host, SERVICES.c.topic == topic, SERVICES.c.disabled.is_(False))


def get_by_compute_host(tx: sa.Connection, ctxt: Any, host: str, use_slave: bool = False) -> objects.Service:
    """Raises ComputeHostNotFound."""
    found = get_by_args(tx, ctxt, host, "nova-compute")
    if found is None:
        raise exceptions.ComputeHostNotFound(host=host)
    return found


def get_minimum_version(tx: sa.Connection, ctxt: Any, binary: str, use_slave: bool = False) -> int:
    return get_minimum_version_multi(tx, ctxt, [binary])


def get_minimum_version_multi(tx: sa.Connection, ctxt: Any, binaries: Collection[str], use_slave: bool = False) -> int:
    """The lowest of any of these kinds, 0 without any."""
    found = services.service_minimum_version(tx, binaries).values()
    return min((version for version in found if version is not None), default=0)


def create(tx: sa.Connection, ctxt: Any, service: objects.Service) -> None:
    """Raises ServiceBinaryExists, ObjectActionError."""
    if service.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    values = hydrate.changed_columns(service, SERVICES)
    try:
        row = services.service_create(tx, values)
    except DuplicateError as err:
        raise exceptions.ServiceBinaryExists(host=values.get("host"), binary=values.get("binary")) from err
    hydrate.fill(service, row, skip=NOT_COLUMNS)


def save(tx: sa.Connection, ctxt: Any, service: objects.Service) -> None:
    """Write the changes; a report count that grows means that the service was seen. Raises ServiceNotFound."""
    values = hydrate.changed_columns(service, SERVICES, skip={"id"})
    if "report_count" in values:
        values["last_seen_up"] = clock.naive_now()
    if values:
        same = (SERVICES.c.id == service.id, SERVICES.c.deleted == 0)
        if not tx.execute(sa.update(SERVICES).where(*same).values(**values)).rowcount:
            raise exceptions.ServiceNotFound(service_id=service.id)
    row = tx.execute(sa.select(SERVICES).where(SERVICES.c.id == service.id)).mappings().one()
    hydrate.fill(service, row, skip=NOT_COLUMNS)


def destroy(tx: sa.Connection, ctxt: Any, service: objects.Service) -> None:
    """The service, and with a compute service its nodes."""
    hydrate.soft_delete(tx, SERVICES, SERVICES.c.id == service.id)
    if service.obj_attr_is_set("binary") and service.binary == "nova-compute":
        hydrate.soft_delete(tx, COMPUTE_NODES, COMPUTE_NODES.c.host == service.host)
    service.obj_reset_changes()


def get_by_topic(tx: sa.Connection, ctxt: Any, topic: str) -> objects.ServiceList:
    return _list(_rows(tx, SERVICES.c.topic == topic, SERVICES.c.disabled.is_(False)))


def get_by_binary(tx: sa.Connection, ctxt: Any, binary: str, include_disabled: bool = False) -> objects.ServiceList:
    only = [] if include_disabled else [SERVICES.c.disabled.is_(False)]
    return _list(_rows(tx, SERVICES.c.binary == binary, *only))


def get_by_host(tx: sa.Connection, ctxt: Any, host: str) -> objects.ServiceList:
    return _list(_rows(tx, SERVICES.c.host == host))


def get_all(tx: sa.Connection, ctxt: Any, disabled: bool | None = None, set_zones: bool = False) -> objects.ServiceList:
    return _list(_rows(tx, *([] if disabled is None else [SERVICES.c.disabled.is_(disabled)])))


def get_all_computes_by_hv_type(tx: sa.Connection, ctxt: Any, hv_type: str) -> objects.ServiceList:
    hosts = sa.select(COMPUTE_NODES.c.host).where(
        COMPUTE_NODES.c.hypervisor_type == hv_type, COMPUTE_NODES.c.deleted == 0
    )
    enabled = (SERVICES.c.binary == "nova-compute", SERVICES.c.disabled.is_(False))
    return _list(_rows(tx, SERVICES.c.host.in_(hosts), *enabled))
