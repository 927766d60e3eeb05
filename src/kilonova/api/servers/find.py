"""Finding a server: its mapping says whether it is a build request or in which cell its record is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from kilonova.api.services import Services
from kilonova.base import clock
from kilonova.contract import exceptions
from kilonova.db.api import build_requests, instance_mappings
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, CellDown
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import Fault

_json = msgspec.json.Decoder().decode
_TIMES = ("created_at", "updated_at", "launched_at", "terminated_at", "deleted_at")
_EXTRA = ("flavor", "trusted_certs")


@dataclass(frozen=True, slots=True)
class Found:
    """A server's record. ``cell`` is None while it is only a build request; then the record is made of that."""

    record: dict[str, Any]
    cell: Cell | None


class Unreachable(Exception):
    """The server is in a cell that does not answer. ``mapping`` is its row among the instance mappings."""

    def __init__(self, mapping: dict[str, Any], reason: str) -> None:
        super().__init__(reason)
        self.mapping = mapping


def server(
    call: Call[Services],
    uuid: str,
    parts: Iterable[str] = (),
    *,
    columns: Iterable[str] = instances.COLUMNS,
    deleted_too: bool = False,
    of_others: bool = False,
) -> Found:
    """The server that the caller may know of, or with ``of_others`` any. Raises InstanceNotFound, `Unreachable`."""
    for _ in range(2):
        mapping = _mapping(call, uuid, of_others)
        if mapping["cell_uuid"] is not None:
            return _in_cell(call, uuid, mapping, parts, columns, deleted_too)
        request = call.services.cells.api.query(build_requests.build_request_get, uuid)
        if request is not None:
            return Found(of_build_request(request), None)
        # Between the two looks the build request may have become a record in a cell.
    raise exceptions.InstanceNotFound(instance_id=uuid)


def permitted(
    call: Call[Services],
    uuid: str,
    rule: str,
    parts: Iterable[str] = (),
    *,
    columns: Iterable[str] = instances.COLUMNS,
    deleted_too: bool = False,
    of_others: bool = False,
) -> Found:
    """The server, in a cell or not, for whoever passes ``rule``. Raises `Fault` 403, 500, InstanceNotFound.

    A server of another project does not exist for its caller, unless ``of_others`` leaves that to the rule.
    """
    try:
        found = server(call, uuid, parts, columns=columns, deleted_too=deleted_too, of_others=of_others)
    except Unreachable as lost:
        call.authorize(rule, _owner(lost.mapping))
        raise Fault(500, "The cell of this server does not answer; try again later.") from None
    except exceptions.InstanceNotFound:
        if of_others:
            # Deleted: it is for the rule to say whether the caller may know even that.
            call.authorize(rule, _owner(_mapping(call, uuid, of_others)))
        raise
    call.authorize(rule, _owner(found.record))
    return found


def _owner(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"project_id": row["project_id"], "user_id": row["user_id"]}


def _mapping(call: Call[Services], uuid: str, of_others: bool) -> dict[str, Any]:
    mapping = call.services.cells.api.query(instance_mappings.instance_mapping_get, uuid)
    if mapping is None:
        raise exceptions.InstanceNotFound(instance_id=uuid)
    found: dict[str, Any] = mapping if of_others else _seen(call, mapping)
    return found


def _seen(call: Call[Services], row: dict[str, Any]) -> dict[str, Any]:
    """A server of another project does not exist for whoever is not an administrator."""
    if not call.context.is_admin and row["project_id"] != call.context.project_id:
        raise exceptions.InstanceNotFound(instance_id=row.get("instance_uuid") or row.get("uuid"))
    return row


def _in_cell(
    call: Call[Services],
    uuid: str,
    mapping: dict[str, Any],
    parts: Iterable[str],
    columns: Iterable[str],
    deleted_too: bool,
) -> Found:
    cells = call.services.cells
    cell = cells.cell(mapping["cell_uuid"])
    wanted = list(parts)

    def read(asked: Cell) -> dict[str, Any] | None:
        return asked.database.query(instances.instance_get, uuid, wanted, columns=columns, deleted_too=deleted_too)

    answer = cells.ask(read, cell)
    if isinstance(answer, CellDown):
        raise Unreachable(mapping, answer.reason)
    if answer is None:
        raise exceptions.InstanceNotFound(instance_id=uuid)
    return Found(answer, cell)


def of_build_request(row: dict[str, Any]) -> dict[str, Any]:
    """A record as a cell would have it, from the instance that a build request carries."""
    data = _json(row["instance"])["nova_object.data"]
    record: dict[str, Any] = dict.fromkeys(instances.COLUMNS) | {
        name: data[name] for name in instances.COLUMNS if name in data
    }
    for name in _TIMES:
        if isinstance(record[name], str):
            record[name] = clock.naive(clock.parse(record[name]))
    flavor, certs = data.get("flavor"), data.get("trusted_certs")
    return record | {
        "id": None,
        "uuid": row["instance_uuid"],
        "project_id": row["project_id"],
        "deleted": 0,
        "created_at": record["created_at"] or row["created_at"],
        "updated_at": record["updated_at"] or row["updated_at"],
        "metadata": data.get("metadata") or {},
        "system_metadata": data.get("system_metadata") or {},
        "tags": _tags(row),
        "extra": {
            "flavor": _text({"cur": flavor}) if flavor else None,
            "trusted_certs": _text(certs) if certs else None,
        },
        "info_cache": None,
        "fault": None,
        "services": [],
        "volumes": [],
    }


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _tags(row: dict[str, Any]) -> list[str]:
    if not row.get("tags"):
        return []
    tags = _json(row["tags"])["nova_object.data"]["objects"]
    return sorted(tag["nova_object.data"]["tag"] for tag in tags)


def of_request_spec(row: dict[str, Any], mapping: dict[str, Any]) -> dict[str, Any]:
    """What a request spec knows of a server whose record cannot be read, as `view.unreachable_whole` takes it."""
    data = _json(row["spec"])["nova_object.data"]
    image = (data.get("image") or {}).get("nova_object.data", {})
    return {
        "uuid": row["instance_uuid"],
        "user_id": data.get("user_id") or mapping["user_id"],
        "image_ref": image.get("id") or "",
        "extra": {"flavor": _text({"cur": data["flavor"]})},
        "availability_zone": data.get("availability_zone"),
    }
