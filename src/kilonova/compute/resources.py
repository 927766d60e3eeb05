"""What this host has and what its instances take: the node's record and the claims of builds.

The truth about who may use what is in Placement, where the scheduler claimed it before a build comes here. The
tracker keeps the node's record (which schedulers and operators read), and refuses what Placement cannot judge:
NUMA placement and PCI devices.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import logging
import threading
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from kilonova.base import clock
from kilonova.compute import usage
from kilonova.compute.provider import Reporter
from kilonova.compute.store import Store
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.virt.driver import Driver, NodeResources
from kilonova.virt.hardware import numa

LOG = logging.getLogger(__name__)

AUDIT_ATTRS = ("system_metadata", "numa_topology", "flavor", "migration_context", "resources")
RATIOS = ("cpu", "ram", "disk")
NEVER = datetime.datetime.min.replace(tzinfo=datetime.UTC)
UPTIME_AGE = 600.0
"""Seconds after which the uptime alone is worth a write: it changes in every look."""


@dataclasses.dataclass(eq=False)
class Node:
    """A node of this host. `usages`, `moves` and `claims` are by instance uuid."""

    name: str
    record: objects.ComputeNode
    size: NodeResources
    usages: dict[str, usage.Usage] = dataclasses.field(default_factory=dict)
    moves: dict[str, usage.Usage] = dataclasses.field(default_factory=dict)
    """What migrations keep here for instances that live elsewhere, or for their other size."""
    claims: set[str] = dataclasses.field(default_factory=set)
    """Builds under way, which an audit must not forget although the record may not show them yet."""
    failed_builds: int = 0
    uptime: str | None = None
    written: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    written_at: float = 0.0
    """By `clock.monotonic`."""


class Tracker:
    """Thread-safe. `service` is this host's service record, set once it exists."""

    def __init__(self, conf: cfg.ConfigOpts, host: str, store: Store, driver: Driver, reporter: Reporter) -> None:
        self._conf = conf
        self._host = host
        self._store = store
        self._driver = driver
        self._reporter = reporter
        self.service: objects.Service | None = None
        self.nodes: dict[str, Node] = {}
        self._volume_backed: dict[str, bool] = {}
        self._touched: set[str] | None = None
        """Instances whose share changed here since an audit began to read the record; None while none reads."""
        self._lock = threading.RLock()
        self._writing = threading.Lock()

    # Looking

    def audit(self, ctxt: RequestContext) -> None:
        """Look at the hypervisor and the record, write what changed to the node's record and to Placement."""
        assert self.service is not None
        for name, uuid in self._driver.nodes().items():
            size = self._driver.resources(name)
            node = self._node(ctxt, name, uuid, size)
            node.uptime = self._uptime()
            self._recount(ctxt, node)
            self._write(ctxt, node)
            self._reporter.report(ctxt, uuid, name, self._driver, disabled=self.service.disabled)

    def _uptime(self) -> str | None:
        try:
            return self._driver.uptime()
        except NotImplementedError:
            return None

    def _node(self, ctxt: RequestContext, name: str, uuid: str, size: NodeResources) -> Node:
        known = self.nodes.get(name)
        if known is not None:
            known.size = size
            return known
        record = next(iter(self._store.nodes(ctxt.elevated("yes"), [uuid])), None)
        node = Node(name, record or self._create(ctxt, name, uuid, size), size)
        if record is not None:
            self._take_over(record)
        with self._lock:
            self.nodes[name] = node
        return node

    def _take_over(self, record: objects.ComputeNode) -> None:
        """A record that was deleted, or that an older service of this host left, is ours again."""
        assert self.service is not None
        if record.deleted:
            record.deleted, record.deleted_at = False, None
        if record.host != self._host:
            record.host = self._host
        if record.service_id != self.service.id:
            record.service_id = self.service.id

    def _create(self, ctxt: RequestContext, name: str, uuid: str, size: NodeResources) -> objects.ComputeNode:
        assert self.service is not None
        record = objects.ComputeNode(uuid=uuid, host=self._host, service_id=self.service.id, hypervisor_hostname=name)
        self._fill(record, size, {}, 0, initial=True)
        self._store.act(ctxt, record, "create")
        LOG.info("node %s (%s) was registered", name, uuid)
        return record

    def _recount(self, ctxt: RequestContext, node: Node) -> None:
        with self._lock:
            self._touched = set()
        try:
            found = self._store.instances_of_node(ctxt, self._host, node.name, AUDIT_ATTRS)
            self._learn_disks(ctxt, found)
            moves = self._moves(ctxt, node, {i.uuid: i for i in found if usage.counts(i)})
            with self._lock:
                fresh = {i.uuid: usage.of(i, self._volume_backed.get(i.uuid, False)) for i in found if usage.counts(i)}
                self._take(node, fresh, moves, self._touched)
        finally:
            with self._lock:
                self._touched = None

    def _take(
        self, node: Node, usages: dict[str, usage.Usage], moves: dict[str, usage.Usage], touched: set[str]
    ) -> None:
        """What was read is true, but of what changed here since: of that, what is known here."""
        for uuid in node.claims | touched:
            for read, known in ((usages, node.usages), (moves, node.moves)):
                if uuid in known:
                    read[uuid] = known[uuid]
                elif uuid in touched:
                    read.pop(uuid, None)
        node.usages, node.moves = usages, moves
        for uuid in set(self._volume_backed) - set(usages) - set(moves):
            del self._volume_backed[uuid]

    def _touch(self, uuid: str) -> None:
        if self._touched is not None:
            self._touched.add(uuid)

    def _moves(
        self, ctxt: RequestContext, node: Node, living: Mapping[str, objects.Instance]
    ) -> dict[str, usage.Usage]:
        """By instance uuid, what the newest migration of each keeps on the node."""
        migrations = self._store.migrations_of_node(ctxt, self._host, node.name)
        newest = {m.instance_uuid: m for m in sorted(migrations, key=_changed)}
        away = self._store.instances_by_uuid(ctxt, set(newest) - set(living), AUDIT_ATTRS)
        self._learn_disks(ctxt, away)
        here = (self._host, node.name)
        found = {}
        for instance in (*living.values(), *away):
            if (migration := newest.get(instance.uuid)) is not None:
                backed = self._volume_backed.get(instance.uuid, False)
                kept = usage.of_move(instance, migration, here, instance.uuid in living, backed)
                if kept is not None:
                    found[instance.uuid] = kept
        return found

    def _learn_disks(self, ctxt: RequestContext, found: list[objects.Instance]) -> None:
        unknown = [i for i in found if i.uuid not in self._volume_backed]
        if not unknown:
            return
        mappings = self._store.block_devices_of(ctxt, [i.uuid for i in unknown])
        for instance in unknown:
            self._volume_backed[instance.uuid] = volume_backed(instance, mappings.get(instance.uuid, ()))

    # Claiming

    def claim(
        self,
        ctxt: RequestContext,
        instance: objects.Instance,
        node_name: str | None,
        mappings: Any,
        limits: Any = None,
    ) -> None:
        """Take the instance on: counts it, and sets host, node and NUMA placement on it for the caller to save.

        Raises ComputeResourcesUnavailable for an unknown node, or NUMA or PCI needs that cannot be met.
        """
        with self._lock:
            node = self._claimable(instance, node_name)
            placed = self._place(instance, node, limits)
            backed = volume_backed(instance, mappings)
            self._volume_backed[instance.uuid] = backed
            if placed is not None:
                instance.numa_topology = placed
            instance.host = instance.launched_on = self._host
            instance.node = node.name
            instance.compute_id = node.record.id
            node.usages[instance.uuid] = usage.of(instance, backed)
            node.claims.add(instance.uuid)
            self._touch(instance.uuid)

    def settle(self, instance: objects.Instance) -> None:
        """The claim is the record's now."""
        with self._lock:
            for node in self.nodes.values():
                node.claims.discard(instance.uuid)
            self._touch(instance.uuid)
        self.update(instance)

    def update(self, instance: objects.Instance) -> None:
        """The instance's states changed."""
        with self._lock:
            for node in self.nodes.values():
                if instance.uuid in node.usages:
                    node.usages[instance.uuid] = dataclasses.replace(
                        node.usages[instance.uuid], vm_state=instance.vm_state, task_state=instance.task_state
                    )
                    self._touch(instance.uuid)

    def forget(self, uuid: str) -> None:
        """The instance takes nothing here any more; no error when it never did."""
        with self._lock:
            for node in self.nodes.values():
                node.usages.pop(uuid, None)
                node.moves.pop(uuid, None)
                node.claims.discard(uuid)
            self._volume_backed.pop(uuid, None)
            self._touch(uuid)

    def tracked(self) -> set[str]:
        with self._lock:
            return {uuid for node in self.nodes.values() for uuid in node.usages}

    def build_ended(self, node_name: str | None, failed: bool) -> None:
        """Count failed builds in a row; schedulers avoid a host with many."""
        node = self.nodes.get(node_name or "") or next(iter(self.nodes.values()), None)
        if node is not None and (not failed or self._conf.compute.consecutive_build_service_disable_threshold):
            node.failed_builds = node.failed_builds + 1 if failed else 0

    def _claimable(self, instance: objects.Instance, name: str | None) -> Node:
        node = self.nodes.get(name) if name else next(iter(self.nodes.values()), None)
        if node is None:
            raise exceptions.ComputeResourcesUnavailable(reason=f"host {self._host} has no node {name}")
        return node

    def _place(self, instance: objects.Instance, node: Node, limits: Any) -> objects.InstanceNUMATopology | None:
        requests = instance.pci_requests if instance.obj_attr_is_set("pci_requests") else None
        if requests is not None and requests.requests:
            raise exceptions.ComputeResourcesUnavailable(reason="this host has no PCI devices for guests")
        wanted = instance.numa_topology if instance.obj_attr_is_set("numa_topology") else None
        if wanted is None or not node.size.numa_topology:
            return None
        others = [u for uuid, u in node.usages.items() if uuid != instance.uuid]
        taken = [u.numa for u in (*others, *node.moves.values()) if u.numa is not None]
        placed = numa.place(numa.host_topology(node.size.numa_topology, taken), wanted, numa_limits(limits))
        if placed is None:
            raise exceptions.ComputeResourcesUnavailable(reason="the NUMA topology does not fit this host")
        return placed

    # Writing

    def flush(self, ctxt: RequestContext) -> None:
        """Write nodes whose usage changed since they were written."""
        for node in list(self.nodes.values()):
            self._write(ctxt, node)

    def set_disabled(self, ctxt: RequestContext, disabled: bool) -> None:
        """Tell Placement at once that the service was disabled or enabled."""
        assert self.service is not None
        self.service.disabled = disabled
        self.service.obj_reset_changes(["disabled"])
        for node in list(self.nodes.values()):
            self._reporter.set_disabled(ctxt, node.record.uuid, disabled)

    def close(self, ctxt: RequestContext) -> None:
        """Write what is left to write; the agent ends."""
        try:
            self.flush(ctxt)
        except Exception:
            LOG.warning("the node record of host %s is not up to date", self._host, exc_info=True)

    def _write(self, ctxt: RequestContext, node: Node) -> None:
        with self._writing:
            with self._lock:
                self._fill(node.record, node.size, node.usages, node.failed_builds, node.uptime, moves=node.moves)
                values = {
                    name: copy.deepcopy(getattr(node.record, name))
                    for name in _WRITTEN
                    if node.record.obj_attr_is_set(name)
                }
            recent = clock.monotonic() - node.written_at < UPTIME_AGE
            if recent and _without_uptime(values) == _without_uptime(node.written):
                node.record.obj_reset_changes()
                return
            # What was passed over in an earlier look is no change of the record any more.
            node.record.stats = values["stats"]
            self._store.act(ctxt, node.record, "save")
            node.written, node.written_at = values, clock.monotonic()

    def _fill(
        self,
        record: objects.ComputeNode,
        size: NodeResources,
        usages: Mapping[str, usage.Usage],
        failed_builds: int,
        uptime: str | None = None,
        initial: bool = False,
        moves: Mapping[str, usage.Usage] | None = None,
    ) -> None:
        for name, value in self._columns(size, usages, moves or {}, failed_builds, uptime).items():
            if not record.obj_attr_is_set(name) or getattr(record, name) != value:
                setattr(record, name, value)
        for ratio in RATIOS:
            name = f"{ratio}_allocation_ratio"
            value = getattr(self._conf, f"initial_{name}" if initial else name)
            if value:
                setattr(record, name, value)

    def _columns(
        self,
        size: NodeResources,
        usages: Mapping[str, usage.Usage],
        moves: Mapping[str, usage.Usage],
        failed_builds: int,
        uptime: str | None,
    ) -> dict[str, Any]:
        conf, held = self._conf, [*usages.values(), *moves.values()]
        memory_used = conf.reserved_host_memory_mb + sum(u.memory_mb for u in held)
        disk_used = int(conf.reserved_host_disk_mb / 1024 + sum(u.local_gb for u in held))
        stats = usage.stats(usages.values(), failed_builds) | ({} if uptime is None else {"uptime": uptime})
        topology = None
        if size.numa_topology:
            taken = [u.numa for u in held if u.numa is not None]
            topology = numa.dumps(numa.host_topology(size.numa_topology, taken))
        return {
            "vcpus": size.vcpus,
            "memory_mb": size.memory_mb,
            "local_gb": size.local_gb,
            "vcpus_used": conf.reserved_host_cpus + sum(u.vcpus for u in held),
            "memory_mb_used": memory_used,
            "local_gb_used": disk_used,
            "free_ram_mb": size.memory_mb - memory_used,
            "free_disk_gb": size.local_gb - disk_used,
            "disk_available_least": size.disk_available_least,
            "hypervisor_type": size.hypervisor_type,
            "hypervisor_version": size.hypervisor_version,
            "cpu_info": size.cpu_info or "",
            "host_ip": conf.my_ip,
            "numa_topology": topology,
            "running_vms": len(usages),
            "current_workload": usage.workload(stats),
            "stats": stats,
            "metrics": "[]",
            "supported_hv_specs": _specs(size),
            "pci_device_pools": objects.PciDevicePoolList(objects=[]),
        }


_WRITTEN = (
    "host", "service_id", "deleted",
    "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb", "free_disk_gb",
    "disk_available_least", "hypervisor_type", "hypervisor_version", "cpu_info", "host_ip", "numa_topology",
    "running_vms", "current_workload", "stats", "cpu_allocation_ratio", "ram_allocation_ratio",
    "disk_allocation_ratio",
)  # fmt: skip
"""Columns whose change is worth a write."""


def _changed(migration: objects.Migration) -> datetime.datetime:
    """When it was last written."""
    return clock.aware(migration.updated_at or migration.created_at) or NEVER


def _without_uptime(values: Mapping[str, Any]) -> dict[str, Any]:
    stats = {name: value for name, value in (values.get("stats") or {}).items() if name != "uptime"}
    return {**values, "stats": stats}


def volume_backed(instance: objects.Instance, mappings: Any) -> bool:
    """Whether the root disk is a volume."""
    root = next((m for m in mappings or () if m.boot_index == 0), None)
    if root is not None:
        return root.destination_type == "volume"
    return not instance.image_ref


def numa_limits(limits: Any) -> objects.NUMATopologyLimits | None:
    """The scheduler's limits arrive as an object, as the dict it may be turned into, or not at all."""
    if limits is None:
        return None
    if isinstance(limits, Mapping):
        return limits.get("numa_topology")
    return limits.numa_topology if limits.obj_attr_is_set("numa_topology") else None


def _specs(size: NodeResources) -> list[objects.HVSpec]:
    return [objects.HVSpec(arch=arch, hv_type=kind, vm_mode=mode) for arch, kind, mode in size.supported_instances]
