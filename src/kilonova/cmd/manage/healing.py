"""Servers one by one: what each ought to hold in Placement, what it holds, and making the two agree."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kilonova.base import retry
from kilonova.clients.http import ServiceError
from kilonova.clients.placement.client import AllocationConflict, Allocations
from kilonova.cmd.manage.actions import Refused
from kilonova.cmd.manage.heal_ports import PortPlan, Ports, Unhealable
from kilonova.cmd.manage.session import Session
from kilonova.contract import context, exceptions, objects
from kilonova.db.cell import compute_nodes, instances
from kilonova.db.cells import Cell
from kilonova.db.engine import Tx
from kilonova.db.objects import bdm
from kilonova.db.objects import instance as instance_objects
from kilonova.scheduler.candidates import from_request
from kilonova.scheduler.claim import merged
from kilonova.scheduler.wishes import Wishes

NO_NODE, NOT_WRITTEN, DEVICES = 2, 3, 8
BATCH = 50
AGAIN = retry.Backoff(attempts=4, base=0.1, cap=1.0)
STANDING = ("host", "node", "task_state", "vm_state", "project_id", "user_id")
"""What must not change between looking and writing."""

UNCOUNTABLE = {"resources:VGPU": "virtual GPUs", "accel:device_profile": "accelerators"}
"""Extra specs whose devices only the host knows: which provider they come from cannot be told."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A server as its cell knows it."""

    record: objects.Instance
    volume_backed: bool

    @property
    def uuid(self) -> str:
        return str(self.record.uuid)

    def standing(self) -> dict[str, Any]:
        return {name: getattr(self.record, name) for name in STANDING}


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that a server shall hold, and `held`, what it holds."""

    held: Allocations
    resources: Mapping[str, Mapping[str, int]]
    ports: PortPlan

    def shown(self) -> str:
        return json.dumps({provider: dict(each) for provider, each in self.resources.items()}, sort_keys=True)


def servers(tx: Tx, uuid: str | None, limit: int, marker: str | None) -> list[Server]:
    """A batch of the cell's living servers, oldest first; with `uuid` only that one."""
    filters = {"deleted": False, **({"uuid": uuid} if uuid else {})}
    order = (("created_at", "asc"),)
    rows = instances.instance_list(tx, filters, order, limit, marker, columns=instances.COLUMNS)
    records = instance_objects.load_many(tx, rows, ("flavor", "system_metadata"))
    volumes = {
        device.instance_uuid: device.destination_type == "volume"
        for device in bdm.load(tx, [record.uuid for record in records])
        if device.boot_index == 0
    }
    return [Server(record, volumes.get(record.uuid, not record.image_ref)) for record in records]


class Healer:
    """Heals the servers of one cell."""

    def __init__(
        self, session: Session, cell: Cell, tell: Callable[[str], object], *, dry_run: bool, force: bool, ports: bool
    ) -> None:
        self._cell = cell
        self._tell = tell
        self._dry_run = dry_run
        self._force = force
        self._ctxt = context.admin()
        self._placement = session.clients.placement
        self._ports = Ports(session.clients, tell) if ports else None
        self._nodes: dict[tuple[str, str], str | None] = {}

    def ports_of(self, batch: Sequence[Server]) -> dict[str, list[Any]]:
        """The ports of those servers that may need healing. Raises Refused."""
        uuids = [each.uuid for each in batch if _excuse(each) is None]
        return self._ports.of_servers(uuids) if self._ports and uuids else {}

    def heal(self, server: Server, ports: Sequence[Any]) -> bool:
        """Whether anything was written. Raises Unhealable for this server's sake, Refused when none can be healed."""
        excuse = _excuse(server)
        if excuse:
            self._tell(f"Server {server.uuid} {excuse}.")
            return False
        _check_devices(server)
        try:
            return retry.call(lambda: self._heal(server, ports), on=(AllocationConflict,), backoff=AGAIN)
        except AllocationConflict as exc:
            raise Unhealable(NOT_WRITTEN, "Others keep changing what it holds.") from exc
        except ServiceError as exc:
            if exc.status is not None and exc.status < 500:
                raise Unhealable(NOT_WRITTEN, f"Placement refuses: {exc.detail}") from exc
            raise Refused(NOT_WRITTEN, f"Placement does not answer as it must: {exc}") from exc

    def _heal(self, server: Server, ports: Sequence[Any]) -> bool:
        plan = self._plan(server, self._placement.allocations_get(self._ctxt, server.uuid), ports)
        if plan is None:
            self._tell(f"Server {server.uuid} holds what it ought to.")
            return False
        verb = "Update" if plan.held.allocations else "Create"
        if self._dry_run:
            self._tell(f"[dry-run] {verb} the allocations of server {server.uuid}: {plan.shown()}")
            return False
        if not self._unchanged(server):
            self._tell(f"Server {server.uuid} changed meanwhile; it is left alone.")
            return False
        self._write(server, plan)
        self._tell(f"{verb}d the allocations of server {server.uuid}: {plan.shown()}")
        return True

    def _plan(self, server: Server, held: Allocations, ports: Sequence[Any]) -> Plan | None:
        record = server.record
        present = held.resources()
        lacking = self._force or not present
        if lacking:
            present = {self._node(server): flavor_resources(server)}
        foreign = (held.project_id, held.user_id) != (record.project_id, record.user_id)
        of_ports = self._ports_plan(server, ports, present)
        if not (lacking or foreign or of_ports.resources):
            return None
        return Plan(held, merged(present, of_ports.resources), of_ports)

    def _ports_plan(self, server: Server, ports: Sequence[Any], present: Any) -> PortPlan:
        if self._ports is None or not ports:
            return PortPlan()
        return self._ports.plan(ports, server.record.flavor, self._node(server), present)

    def _node(self, server: Server) -> str:
        key = (server.record.host, server.record.node)
        if key not in self._nodes:
            found = self._cell.database.query(compute_nodes.compute_node_get_by_host, *key)
            self._nodes[key] = None if found is None else str(found["uuid"])
        uuid = self._nodes[key]
        if uuid is None:
            raise Unhealable(NO_NODE, f"There is no compute node {key[1]} of host {key[0]}.")
        return uuid

    def _unchanged(self, server: Server) -> bool:
        now = self._cell.database.query(instances.instance_get, server.uuid, columns=STANDING)
        return now is not None and {name: now[name] for name in STANDING} == server.standing()

    def _write(self, server: Server, plan: Plan) -> None:
        """The ports first: they are easier to take back than allocations."""
        if self._ports is not None:
            self._ports.write(plan.ports)
        try:
            taken = self._put(server, plan)
        except ServiceError:
            self._take_back(plan)
            raise
        if not taken:
            self._take_back(plan)
            raise Unhealable(NOT_WRITTEN, f"Placement has no room for {plan.shown()}.")

    def _put(self, server: Server, plan: Plan) -> bool:
        body = {provider: {"resources": dict(each)} for provider, each in plan.resources.items()}
        record = server.record
        generation = plan.held.generation
        return self._placement.allocations_put(
            self._ctxt, server.uuid, body, record.project_id, record.user_id, generation
        )

    def _take_back(self, plan: Plan) -> None:
        if self._ports is not None:
            self._ports.take_back(plan.ports)


def _excuse(server: Server) -> str | None:
    """Why nothing is to be done for the server."""
    if server.record.task_state is not None:
        return f"is busy: {server.record.task_state}"
    return "is on no host" if server.record.node is None else None


def _check_devices(server: Server) -> None:
    specs = Wishes(server.record.flavor, None).specs
    for name, what in UNCOUNTABLE.items():
        if specs.get(name):
            raise Unhealable(DEVICES, f"Its {what} cannot be healed: only its host knows which it has.")


def flavor_resources(server: Server) -> dict[str, int]:
    """{class: amount} by the server's own copy of its flavor, and its image. Raises Unhealable."""
    from kilonova.compute.guest import image_meta

    spec = objects.RequestSpec(
        flavor=server.record.flavor, image=image_meta(server.record), is_bfv=server.volume_backed
    )
    try:
        groups = from_request(spec, None).groups.values()
    except exceptions.NovaException as exc:
        raise Unhealable(NOT_WRITTEN, f"Its flavor and its image contradict each other: {exc}") from exc
    total: dict[str, int] = {}
    for group in groups:
        for name, amount in group.resources.items():
            total[name] = total.get(name, 0) + amount
    return total
