"""Instance: its row and everything that hangs on it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.contract import exceptions, objects
from kilonova.db.cell import instances as records
from kilonova.db.cell import tables as t
from kilonova.db.objects import fault as faults
from kilonova.db.objects import hydrate, pairs, service, tag
from kilonova.db.objects.hydrate import Row, as_set
from kilonova.db.outcomes import DuplicateError, Missing, Stale
from kilonova.db.query import AT_ONCE

EXTRA_OBJECTS = {
    "device_metadata": "InstanceDeviceMetadata",
    "keypairs": "KeyPairList",
    "migration_context": "MigrationContext",
    "numa_topology": "InstanceNUMATopology",
    "resources": "ResourceList",
    "trusted_certs": "TrustedCerts",
    "vcpu_model": "VirtCPUModel",
}
FLAVORS = ("flavor", "old_flavor", "new_flavor")
EXTRA = frozenset({*EXTRA_OBJECTS, *FLAVORS, "pci_requests"})
JOINED = frozenset(
    {"metadata", "system_metadata", "info_cache", "security_groups", "pci_devices", "tags", "services", "fault"}
)
OPTIONAL = EXTRA | JOINED | {"ec2_ids"}
DEFAULT = ("metadata", "system_metadata", "info_cache", "security_groups", "flavor", "old_flavor", "new_flavor")
ALL = tuple(sorted(OPTIONAL))
PAIRS = {"metadata": t.INSTANCE_METADATA, "system_metadata": t.INSTANCE_SYSTEM_METADATA}


def load(
    tx: sa.Connection, uuid: str, expected: Collection[str] = DEFAULT, read_deleted: bool = False
) -> objects.Instance:
    """The instance with the optional attributes named. Raises InstanceNotFound."""
    query = sa.select(t.INSTANCES).where(t.INSTANCES.c.uuid == uuid)
    if not read_deleted:
        query = query.where(t.INSTANCES.c.deleted == 0)
    row = tx.execute(query).mappings().first()
    if row is None:
        raise exceptions.InstanceNotFound(instance_id=uuid)
    return load_many(tx, [row], expected)[0]


def load_many(tx: sa.Connection, rows: Sequence[Row], expected: Collection[str] = DEFAULT) -> list[objects.Instance]:
    """Instances from their rows; one statement per kind of attribute, however many rows."""
    found = [_bare(row) for row in rows]
    attach(tx, found, expected)
    return found


def _bare(row: Row) -> objects.Instance:
    instance = hydrate.fill(objects.Instance(), row, skip=OPTIONAL | {"cleaned", "deleted"})
    instance.deleted = bool(row["deleted"])
    instance.cleaned = row["cleaned"] == 1
    instance.obj_reset_changes()
    return instance


def attach(tx: sa.Connection, instances: Sequence[objects.Instance], expected: Collection[str]) -> None:
    """Read the optional attributes `expected` of all `instances` and set them."""
    for start in range(0, len(instances), AT_ONCE):
        _attach(tx, instances[start : start + AT_ONCE], expected)


def _attach(tx: sa.Connection, instances: Sequence[objects.Instance], expected: Collection[str]) -> None:
    uuids = [i.uuid for i in instances]
    for name in PAIRS.keys() & set(expected):
        found = pairs.read(tx, PAIRS[name], uuids)
        for instance in instances:
            setattr(instance, name, found.get(instance.uuid, {}))
    for name in _LOADERS.keys() & set(expected):
        _LOADERS[name](tx, instances, uuids)
    if EXTRA & set(expected):
        _attach_extra(tx, instances, uuids, EXTRA & set(expected))
    if "ec2_ids" in expected:
        _attach_ec2_ids(tx, instances, uuids)
    for instance in instances:
        instance.obj_reset_changes(fields=list(expected), recursive=True)


def _rows_of(tx: sa.Connection, table: sa.Table, uuids: Iterable[str], alive: bool = True) -> dict[Any, list[Row]]:
    query = sa.select(table).where(table.c.instance_uuid.in_(uuids))
    if alive:
        query = query.where(table.c.deleted == 0)
    return hydrate.grouped(tx.execute(query).mappings(), "instance_uuid")


def _attach_info_cache(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    # A deleted instance keeps its cache row, deleted with it: whoever cleans up after it needs to know the ports.
    found = _rows_of(tx, t.INSTANCE_INFO_CACHES, uuids, alive=False)
    for instance in instances:
        rows = found.get(instance.uuid)
        instance.info_cache = info_cache_object(rows[0]) if rows else None


def info_cache_object(row: Row) -> objects.InstanceInfoCache:
    cache = hydrate.fill(objects.InstanceInfoCache(), row, skip={"network_info"})
    cache.network_info = row["network_info"] or "[]"
    cache.obj_reset_changes()
    return cache


def _attach_security_groups(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    for instance in instances:
        instance.security_groups = objects.SecurityGroupList(objects=[])


def _attach_pci_devices(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    from kilonova.db.objects import pci

    found = _rows_of(tx, t.PCI_DEVICES, uuids)
    for instance in instances:
        devices = [pci.device(row) for row in found.get(instance.uuid, [])]
        instance.pci_devices = objects.PciDeviceList(objects=devices)


def _attach_tags(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    found = tag.read(tx, uuids)
    for instance in instances:
        instance.tags = objects.TagList(objects=found.get(instance.uuid, []))


def _attach_services(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    hosts = {i.host for i in instances if i.host}
    found = hydrate.grouped(service.rows_by_hosts(tx, hosts), "host") if hosts else {}
    for instance in instances:
        known = [service.from_row(row) for row in found.get(instance.host, [])]
        instance.services = objects.ServiceList(objects=known)


def _attach_fault(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    found = faults.latest(tx, uuids)
    for instance in instances:
        instance.fault = found.get(instance.uuid)


_LOADERS = {
    "info_cache": _attach_info_cache,
    "security_groups": _attach_security_groups,
    "pci_devices": _attach_pci_devices,
    "tags": _attach_tags,
    "services": _attach_services,
    "fault": _attach_fault,
}


def _attach_ec2_ids(tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str]) -> None:
    table = t.INSTANCE_ID_MAPPINGS
    rows = tx.execute(sa.select(table).where(table.c.uuid.in_(uuids), table.c.deleted == 0)).mappings()
    known = {row["uuid"]: row["id"] for row in rows}
    for instance in instances:
        number = known.get(instance.uuid)
        instance.ec2_ids = objects.EC2Ids(
            instance_id=f"i-{number:08x}" if number else None, ami_id=None, kernel_id=None, ramdisk_id=None
        )


def _attach_extra(
    tx: sa.Connection, instances: Sequence[objects.Instance], uuids: list[str], names: Collection[str]
) -> None:
    found = _rows_of(tx, t.INSTANCE_EXTRA, uuids, alive=False)
    for instance in instances:
        rows = found.get(instance.uuid)
        apply_extra(instance, rows[0] if rows else {}, names)


def apply_extra(instance: objects.Instance, row: Row, names: Collection[str]) -> None:
    """Set the attributes `names` from a row of instance_extra (an empty row: all None)."""
    for name in EXTRA_OBJECTS.keys() & set(names):
        setattr(instance, name, hydrate.parse(getattr(objects, EXTRA_OBJECTS[name]), row.get(name)) or _absent(name))
    if "pci_requests" in names:
        instance.pci_requests = pci_requests(instance.uuid, row.get("pci_requests"))
    if set(FLAVORS) & set(names) and row.get("flavor"):
        for name, flavor in kept_flavors(row["flavor"]).items():
            setattr(instance, name, flavor)


def kept_flavors(text: str) -> dict[str, objects.Flavor | None]:
    """The flavors that an instance keeps as JSON text: `flavor`, and those of a resize, `old_flavor`, `new_flavor`."""
    kept = json.loads(text)
    return {name: _flavor(kept.get(key)) for name, key in zip(FLAVORS, ("cur", "old", "new"), strict=True)}


def _absent(name: str) -> objects.KeyPairList | None:
    return objects.KeyPairList(objects=[]) if name == "keypairs" else None


def _flavor(primitive: dict[str, Any] | None) -> objects.Flavor | None:
    if not primitive:
        return None
    flavor = objects.Flavor.obj_from_primitive(primitive)
    for name, default in (("disabled", False), ("is_public", True)):
        if not flavor.obj_attr_is_set(name):
            setattr(flavor, name, default)
    flavor.obj_reset_changes()
    return flavor


PCI_REQUEST_FIELDS = ("count", "spec", "alias_name", "is_new", "numa_policy", "request_id", "requester_id")


def pci_requests(uuid: str, text: str | None) -> objects.InstancePCIRequests:
    """The requests that instance_extra keeps as a plain JSON list."""
    kept = [
        objects.InstancePCIRequest(
            count=r["count"],
            spec=r["spec"],
            alias_name=r["alias_name"],
            is_new=False,
            numa_policy=r.get("numa_policy", "legacy"),
            request_id=r["request_id"],
            requester_id=r.get("requester_id"),
        )
        for r in json.loads(text or "[]")
    ]
    found = objects.InstancePCIRequests(instance_uuid=uuid, requests=kept)
    found.obj_reset_changes(recursive=True)
    return found


def _pci_requests_text(requests: objects.InstancePCIRequests) -> str:
    return json.dumps(
        [{n: getattr(r, n) if r.obj_attr_is_set(n) else None for n in PCI_REQUEST_FIELDS} for r in requests.requests]
    )


def _flavors_text(instance: objects.Instance) -> str:
    kept: dict[str, Any] = {}
    for name, key in zip(FLAVORS, ("cur", "old", "new"), strict=True):
        flavor = getattr(instance, name) if instance.obj_attr_is_set(name) else None
        kept[key] = flavor.obj_to_primitive() if flavor else None
        if kept[key]:
            kept[key]["nova_object.data"]["description"] = None
    return json.dumps(kept)


def extra_values(instance: objects.Instance, names: Collection[str]) -> dict[str, Any]:
    """The columns of instance_extra for the attributes `names` that are set."""
    given = {n for n in names if n in EXTRA and instance.obj_attr_is_set(n)}
    values = {name: hydrate.dump(getattr(instance, name)) for name in EXTRA_OBJECTS.keys() & given}
    if "pci_requests" in given and instance.pci_requests is not None:
        values["pci_requests"] = _pci_requests_text(instance.pci_requests)
    if set(FLAVORS) & given:
        values["flavor"] = _flavors_text(instance)
    return values


def create(tx: sa.Connection, ctxt: Any, instance: objects.Instance) -> None:
    """Insert the instance and its parts. Raises ObjectActionError, InstanceExists."""
    if instance.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="create", reason="already created")
    if instance.obj_attr_is_set("deleted") and instance.deleted:
        raise exceptions.ObjectActionError(action="create", reason="already deleted")
    values = hydrate.changed_columns(instance, t.INSTANCES, skip=OPTIONAL | {"cleaned", "deleted"})
    cache = instance.info_cache if instance.obj_attr_is_set("info_cache") else None
    given = {name: getattr(instance, name) for name in PAIRS if instance.obj_attr_is_set(name)}
    new = {
        "vm_state": "building",
        "power_state": 0,
        **values,
        **given,
        "extra": extra_values(instance, EXTRA),
        "network_info": _network_text(cache) if cache is not None else "[]",
    }
    try:
        row = records.instance_create(tx, new)
    except DuplicateError as err:
        raise exceptions.InstanceExists(name=instance.uuid) from err
    expected = {n for n in OPTIONAL if instance.obj_attr_is_set(n)} | {"info_cache", "ec2_ids"}
    _reload(tx, instance, row, expected)


def _network_text(cache: objects.InstanceInfoCache) -> str:
    if not cache.obj_attr_is_set("network_info") or cache.network_info is None:
        return "[]"
    return str(cache.obj_to_primitive()["nova_object.data"]["network_info"])


def _reload(tx: sa.Connection, instance: objects.Instance, row: Row, expected: Collection[str]) -> None:
    fresh = load_many(tx, [row], expected)[0]
    for name in type(instance).fields:
        if fresh.obj_attr_is_set(name):
            setattr(instance, name, getattr(fresh, name))
    instance.obj_reset_changes(recursive=True)


def save(
    tx: sa.Connection,
    ctxt: Any,
    instance: objects.Instance,
    expected_vm_state: Any = None,
    expected_task_state: Any = None,
    admin_state_reset: bool = False,
) -> None:
    """Write what changed, in one compare-and-swap; of a deleted instance where the context reads those.

    Raises InstanceNotFound, UnexpectedTaskStateError, UnexpectedDeletingTaskStateError, InstanceUpdateConflict,
    ObjectActionError (node without compute_id).
    """
    changes = instance.obj_what_changed()
    if "node" in changes and "compute_id" not in changes:
        raise exceptions.ObjectActionError(action="save", reason="node changes without compute_id")
    values = hydrate.changed_columns(instance, t.INSTANCES, skip=OPTIONAL | {"deleted", "cleaned"})
    if "cleaned" in changes:
        values["cleaned"] = 1 if instance.cleaned else 0
    wanted = (as_set(expected_vm_state), as_set(expected_task_state))
    parts = changes & (JOINED | EXTRA)
    # Peers send a flavor along as changed that is not, even with an instance that is deleted by now.
    if values or wanted != (None, None) or parts - EXTRA:
        _swap(tx, instance.uuid, values, *wanted, deleted_too=getattr(ctxt, "read_deleted", "no") != "no")
    _save_parts(tx, instance, parts)
    row = tx.execute(sa.select(t.INSTANCES).where(t.INSTANCES.c.uuid == instance.uuid)).mappings().first()
    if row is None:
        raise exceptions.InstanceNotFound(instance_id=instance.uuid)
    hydrate.fill(instance, row, skip=OPTIONAL | {"cleaned", "deleted"})
    instance.obj_reset_changes(recursive=True)


def _swap(
    tx: sa.Connection,
    uuid: str,
    values: dict[str, Any],
    vm_states: tuple[Any, ...] | None,
    tasks: tuple[Any, ...] | None,
    deleted_too: bool,
) -> None:
    expect = {"vm_state": vm_states, "task_state": tasks}
    expect = {name: allowed for name, allowed in expect.items() if allowed is not None}
    outcome = records.instance_update(
        tx, uuid, values or {"updated_at": clock.naive_now()}, expect, deleted_too=deleted_too
    )
    if isinstance(outcome, Missing):
        raise exceptions.InstanceNotFound(instance_id=uuid)
    if isinstance(outcome, Stale):
        _raise_unexpected(uuid, outcome.current.get("vm_state"), outcome.current.get("task_state"), vm_states, tasks)


def _raise_unexpected(
    uuid: str, vm_state: str | None, task: str | None, vm_states: tuple[Any, ...] | None, tasks: tuple[Any, ...] | None
) -> None:
    if tasks is not None and task not in tasks:
        kind = (
            exceptions.UnexpectedDeletingTaskStateError if task == "deleting" else exceptions.UnexpectedTaskStateError
        )
        raise kind(instance_uuid=uuid, expected={"task_state": list(tasks)}, actual={"task_state": task})
    if vm_states is not None and vm_state not in vm_states:
        raise exceptions.InstanceUpdateConflict(
            instance_uuid=uuid, expected={"vm_state": list(vm_states)}, actual={"vm_state": vm_state}
        )


def _save_parts(tx: sa.Connection, instance: objects.Instance, changes: Collection[str]) -> None:
    for name in PAIRS.keys() & set(changes):
        pairs.replace(tx, PAIRS[name], instance.uuid, getattr(instance, name) or {})
    records.instance_extra_update(tx, instance.uuid, extra_values(instance, EXTRA & set(changes)))
    if "info_cache" in changes and instance.info_cache is not None:
        save_info_cache(tx, None, instance.info_cache)


def save_info_cache(tx: sa.Connection, ctxt: Any, cache: objects.InstanceInfoCache, update_cells: bool = True) -> None:
    """Write the network info of one instance, making the row when it is missing."""
    if "network_info" not in cache.obj_what_changed():
        return
    records.instance_info_cache_update(tx, cache.instance_uuid, _network_text(cache))
    cache.obj_reset_changes()


def refresh(tx: sa.Connection, ctxt: Any, instance: objects.Instance, use_slave: bool = False) -> None:
    """Read again every attribute that is set."""
    expected = {n for n in OPTIONAL if instance.obj_attr_is_set(n)}
    fresh = load(tx, instance.uuid, expected, read_deleted=getattr(ctxt, "read_deleted", "no") != "no")
    for name in type(instance).fields:
        if fresh.obj_attr_is_set(name):
            setattr(instance, name, getattr(fresh, name))
    instance.obj_reset_changes(recursive=True)


def destroy(tx: sa.Connection, ctxt: Any, instance: objects.Instance, hard_delete: bool = False) -> None:
    """Mark the instance and what belongs to it as deleted; with `hard_delete` remove every trace of it.

    Without a host the row must still have none (a scheduler may just have placed it): ObjectActionError otherwise.
    Raises InstanceNotFound when it is deleted already.
    """
    if not instance.obj_attr_is_set("id"):
        raise exceptions.ObjectActionError(action="destroy", reason="already destroyed")
    table = t.INSTANCES
    placed = instance.obj_attr_is_set("host") and instance.host
    outcome = records.instance_destroy(tx, instance.uuid, {} if placed else {"host": None})
    if isinstance(outcome, Missing):
        raise exceptions.InstanceNotFound(instance_id=instance.uuid)
    if isinstance(outcome, Stale):
        raise exceptions.ObjectActionError(action="destroy", reason="host changed")
    row = tx.execute(sa.select(table).where(table.c.uuid == instance.uuid)).mappings().one()
    hydrate.fill(instance, row, skip=OPTIONAL | {"cleaned", "deleted"})
    instance.deleted = True
    instance.obj_reset_changes(recursive=True)
    if hard_delete:
        records.instance_purge(tx, instance.uuid)
