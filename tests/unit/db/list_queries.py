"""Every query of db/ that gives a list, as services ask it of the databases of big_tables.py.

A query takes the transaction and how much is asked for (a page's length, a number of uuids ...): it must need as many
statements for much as for little. What a plan may read from end to end is named, of three kinds:

SMALL       tables that are small by nature: bounded by the hosts and cells of a cloud, by what an operator types in, or
            by what is under way at the moment; reading such a list whole is what it is for.
`no_index`  Nova's tables have no index for the question, and it is asked seldom (by a loop, an operator). An own
            index is no way out: the tables are Nova's.
`whole`     most of the table is asked for, by the caller's own words.

A query for everything there is has no plan worth a look; it is only counted, on few rows.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from tests.unit.db.big_tables import DAY, ROWS, host, project, scanned, uuid, watched

import kilonova.db.api
import kilonova.db.cell
import kilonova.db.objects
from kilonova.contract import context, objects
from kilonova.db import flows
from kilonova.db.api import (
    aggregates,
    build_requests,
    cell_mappings,
    flavors,
    host_mappings,
    instance_groups,
    instance_mappings,
    key_pairs,
    quotas,
    request_specs,
)
from kilonova.db.cell import (
    compute_nodes,
    explanations,
    host_changes,
    instance_actions,
    instances,
    migrations,
    services,
)
from kilonova.db.engine import Database, Tx
from kilonova.db.objects import (
    action,
    aggregate,
    bdm,
    build_request,
    build_request_list,
    compute_node,
    fault,
    flavor,
    group,
    instance_counts,
    keypair,
    mapping,
    migration,
    pci,
    request_spec,
    security_group,
    service,
    share,
    tag,
    task_log,
    vif,
)
from kilonova.db.objects import instances as instance_lists
from kilonova.flow.store import State

SMALL = frozenset(
    {
        "aggregates", "aggregate_hosts", "aggregate_metadata",  # an operator's groups of hosts
        "cell_mappings", "host_mappings",
        "compute_nodes", "services",  # bounded by hosts
        "flavors", "flavor_extra_specs", "flavor_projects", "security_groups",  # typed in
        "build_requests",  # under way
    }
)  # fmt: skip

GROUPS = "instance_groups instance_group_member instance_group_policy"
"""Of their tables only `uuid` and a member's `instance_uuid` have an index; MySQL makes those of its foreign keys."""

CTXT = context.admin()
PARTS = ("metadata", "system_metadata", "tags", "fault", "info_cache", "flavor", "block_device_mappings", "services")
EVERY_PART = ("metadata", "system_metadata", "info_cache", "fault", "tags", "pci_devices", "flavor", "services")
LATER = DAY + datetime.timedelta(days=6)


@dataclasses.dataclass(frozen=True)
class Query:
    """`ask(tx, much)`, and the tables that may be read from end to end; None: it is to give everything there is."""

    ask: Callable[[Tx, int], Any]
    whole: frozenset[str] | None


def _q(ask: Callable[[Tx, int], Any], *, no_index: str = "", whole: str = "") -> Query:
    return Query(ask, frozenset(f"{no_index} {whole}".split()))


def _everything(ask: Callable[[Tx], Any]) -> Query:
    """The plan of a query for everything says nothing."""
    return Query(lambda tx, _much: ask(tx), None)


def uuids(much: int) -> list[str]:
    return [uuid(n) for n in range(much)]


def hosts(much: int) -> list[str]:
    return [host(n) for n in range(much)]


def names(much: int) -> list[str]:
    """Of hosts as services and nodes have them."""
    return [f"text-{n}" for n in range(much)]


def _listed(**filters: Any) -> Callable[[Tx, int], Any]:
    wanted = {"deleted": False, "project_id": project(1), **filters}
    return lambda tx, much: instances.instance_list(tx, wanted, limit=much, parts=PARTS)


API: dict[str, Query | list[Query]] = {
    "api.aggregates.aggregate_list": [
        _everything(lambda tx: aggregates.aggregate_list(tx)),
        _q(lambda tx, much: aggregates.aggregate_list(tx, ids=range(1, much + 1))),
        _q(lambda tx, much: aggregates.aggregate_list(tx, host=host(1))),
        _q(lambda tx, much: aggregates.aggregate_list(tx, key="text-1")),
    ],
    "api.aggregates.availability_zones_by_host": [
        _everything(lambda tx: aggregates.availability_zones_by_host(tx)),
        _q(lambda tx, much: aggregates.availability_zones_by_host(tx, hosts(much))),
    ],
    "api.build_requests.build_request_list": [
        _everything(lambda tx: build_requests.build_request_list(tx)),
        _q(lambda tx, much: build_requests.build_request_list(tx, project_id=project(1))),
    ],
    "api.build_requests.build_requests_among": _q(
        lambda tx, much: build_requests.build_requests_among(tx, uuids(much))
    ),
    "api.build_requests.build_request_old": _q(
        lambda tx, much: build_requests.build_request_old(tx, LATER, limit=much)
    ),
    "api.build_requests.build_request_unplaced": _q(
        lambda tx, much: build_requests.build_request_unplaced(tx, project(1))
    ),
    "api.build_requests.build_request_instances": _q(
        lambda tx, much: build_requests.build_request_instances(tx, uuids(much))
    ),
    "api.cell_mappings.cell_mapping_list": _everything(lambda tx: cell_mappings.cell_mapping_list(tx)),
    "api.cell_mappings.cell_mapping_uuids_of_project": _q(
        lambda tx, much: cell_mappings.cell_mapping_uuids_of_project(tx, project(1))
    ),
    "api.flavors.flavor_list": [
        _q(lambda tx, much: flavors.flavor_list(tx, is_public=True, project_id=project(1), limit=much)),
        _q(lambda tx, much: flavors.flavor_list(tx, limit=much, marker=uuid(1))),
    ],
    "api.flavors.flavor_access_list": _q(lambda tx, much: flavors.flavor_access_list(tx, 2)),
    "api.host_mappings.host_mapping_list": [
        _everything(lambda tx: host_mappings.host_mapping_list(tx)),
        _everything(lambda tx: host_mappings.host_mapping_list(tx, cell_id=1)),
        _q(lambda tx, much: host_mappings.host_mapping_list(tx, hosts=names(much))),
    ],
    "api.instance_groups.instance_group_uuids_by_member": _q(
        lambda tx, much: instance_groups.instance_group_uuids_by_member(tx, uuids(much))
    ),
    "api.instance_groups.instance_group_uuids_there": _q(
        lambda tx, much: instance_groups.instance_group_uuids_there(tx, uuids(much))
    ),
    "api.instance_groups.instance_group_list": [
        _q(lambda tx, much: instance_groups.instance_group_list(tx, limit=much), no_index=GROUPS),
        _q(lambda tx, much: instance_groups.instance_group_list(tx, project(1), limit=much), no_index=GROUPS),
    ],
    "api.instance_groups.instance_group_count": _q(
        lambda tx, much: instance_groups.instance_group_count(tx, project(1), project(1)), no_index="instance_groups"
    ),
    "api.instance_mappings.instance_mapping_list": _q(
        lambda tx, much: instance_mappings.instance_mapping_list(tx, uuids(much))
    ),
    "api.instance_mappings.instance_mapping_later_uuids": _q(
        lambda tx, much: instance_mappings.instance_mapping_later_uuids(tx, project(1), [uuid(ROWS - 2)])
    ),
    "api.instance_mappings.instance_mapping_list_by_project": _q(
        lambda tx, much: instance_mappings.instance_mapping_list_by_project(tx, project(1), queued_for_delete=False)
    ),
    "api.instance_mappings.instance_mapping_list_by_cell": _q(
        lambda tx, much: instance_mappings.instance_mapping_list_by_cell(tx, 1, limit=much),
        no_index="instance_mappings",
    ),
    "api.instance_mappings.instance_mapping_list_in_down_cells": [
        _q(
            lambda tx, much: instance_mappings.instance_mapping_list_in_down_cells(
                tx, [uuid(0)], project_id=project(1), limit=much
            )
        ),
        _q(
            lambda tx, much: instance_mappings.instance_mapping_list_in_down_cells(tx, [uuid(0)], limit=much),
            no_index="instance_mappings",
        ),
    ],
    "api.instance_mappings.instance_mapping_count": _q(
        lambda tx, much: instance_mappings.instance_mapping_count(tx, project(1), project(1))
    ),
    "api.key_pairs.key_pair_list": [
        _q(lambda tx, much: key_pairs.key_pair_list(tx, project(1), limit=much)),
        _q(lambda tx, much: key_pairs.key_pair_list(tx, project(1), limit=much, marker="text-1")),
    ],
    "api.quotas.quota_list_by_user": _q(lambda tx, much: quotas.quota_list_by_user(tx, project(1))),
    "api.request_specs.request_spec_list": _q(lambda tx, much: request_specs.request_spec_list(tx, uuids(much))),
    "objects.aggregate.get_all": _everything(lambda tx: aggregate.get_all(tx, CTXT)),
    "objects.aggregate.get_by_host": _q(lambda tx, much: aggregate.get_by_host(tx, CTXT, host(1), "text-1")),
    "objects.aggregate.get_by_metadata": _q(lambda tx, much: aggregate.get_by_metadata(tx, CTXT, "text-1", "text-1")),
    "objects.aggregate.get_by_metadata_key": _q(lambda tx, much: aggregate.get_by_metadata_key(tx, CTXT, "text-1")),
    "objects.build_request.get_all": _everything(lambda tx: build_request.get_all(tx, CTXT)),
    "objects.build_request_list.get_by_filters": _q(
        lambda tx, much: build_request_list.get_by_filters(tx, CTXT, {"project_id": project(1)}, limit=much)
    ),
    "objects.flavor.get_all": _q(lambda tx, much: flavor.get_all(tx, CTXT, limit=much)),
    "objects.group.get_all": _everything(lambda tx: group.get_all(tx, CTXT)),
    "objects.group.get_by_project_id": _q(
        lambda tx, much: group.get_by_project_id(tx, CTXT, project(1)), no_index=GROUPS
    ),
    "objects.group.get_counts": _q(
        lambda tx, much: group.get_counts(tx, CTXT, project(1), project(1)), no_index="instance_groups"
    ),
    "objects.keypair.get_by_user": _q(lambda tx, much: keypair.get_by_user(tx, CTXT, project(1), limit=much)),
    "objects.mapping.list_instance_mappings": _q(
        lambda tx, much: mapping.list_instance_mappings(tx, CTXT, uuids(much))
    ),
    "objects.mapping.list_cell_mappings": _everything(lambda tx: mapping.list_cell_mappings(tx, CTXT)),
    "objects.mapping.list_cell_mappings_by_disabled": _everything(
        lambda tx: mapping.list_cell_mappings_by_disabled(tx, CTXT, False)
    ),
    "objects.mapping.list_host_mappings": _everything(lambda tx: mapping.list_host_mappings(tx, CTXT)),
    "objects.mapping.list_host_mappings_by_cell": _everything(
        lambda tx: mapping.list_host_mappings_by_cell(tx, CTXT, 1)
    ),
    "objects.mapping.list_instance_mappings_by_cell": _everything(
        lambda tx: mapping.list_instance_mappings_by_cell(tx, CTXT, 1)
    ),
    "objects.mapping.list_instance_mappings_by_project": _q(
        lambda tx, much: mapping.list_instance_mappings_by_project(tx, CTXT, project(1))
    ),
    "objects.mapping.count_instance_mappings": _q(
        lambda tx, much: mapping.count_instance_mappings(tx, CTXT, project(1), project(1))
    ),
    "objects.request_spec.get_by_instance_uuids": _q(
        lambda tx, much: request_spec.get_by_instance_uuids(tx, CTXT, [uuid(-n - 1) for n in range(much)])
    ),
}
"""What is asked of the API database."""

CELL: dict[str, Query | list[Query]] = {
    "cell.compute_nodes.compute_node_list": [
        _q(lambda tx, much: compute_nodes.compute_node_list(tx, limit=much, marker=1)),
        _q(lambda tx, much: compute_nodes.compute_node_list(tx, hosts=names(much))),
        _q(lambda tx, much: compute_nodes.compute_node_list(tx, uuids=uuids(much))),
    ],
    "cell.explanations.server_traces": _q(lambda tx, much: explanations.server_traces(tx, uuids(much))),
    "cell.explanations.migrations": _q(lambda tx, much: explanations.migrations(tx, uuids(much))),
    "cell.explanations.devices": _q(lambda tx, much: explanations.devices(tx, uuids(much))),
    "cell.explanations.volumes_of_devices": _q(lambda tx, much: explanations.volumes_of_devices(tx, uuids(much))),
    "cell.explanations.node_uuids_after": _q(lambda tx, much: explanations.node_uuids_after(tx, uuid(ROWS // 2), much)),
    "cell.explanations.nodes": _everything(lambda tx: explanations.nodes(tx)),
    "cell.explanations.open_migrations": _q(lambda tx, much: explanations.open_migrations(tx, uuids(much))),
    "cell.explanations.servers_in_task": _q(
        lambda tx, much: explanations.servers_in_task(tx, ["rebooting", "deleting"], LATER, limit=much)
    ),
    "cell.explanations.servers_in_state": _q(
        lambda tx, much: explanations.servers_in_state(tx, "error", LATER, limit=much), no_index="instances"
    ),
    "cell.explanations.never_ran": _q(lambda tx, much: explanations.never_ran(tx, LATER, after=uuid(1), limit=much)),
    "cell.host_changes.host_changes": [
        _everything(lambda tx: host_changes.host_changes(tx, None)),
        _q(lambda tx, much: host_changes.host_changes(tx, LATER)),
    ],
    "cell.host_changes.instance_places": _q(lambda tx, much: host_changes.instance_places(tx, uuids(much))),
    "cell.host_changes.image_properties": _q(lambda tx, much: host_changes.image_properties(tx, uuids(much))),
    "cell.instance_actions.action_list": _q(
        lambda tx, much: instance_actions.action_list(tx, uuid(1), limit=much, changes_since=DAY)
    ),
    # MySQL makes an index for the foreign key, the others do not.
    "cell.instance_actions.event_list": _q(
        lambda tx, much: instance_actions.event_list(tx, 1), no_index="instance_actions_events"
    ),
    "cell.instances.instance_list": [
        _q(_listed()),
        _q(_listed(user_id=project(1), vm_state=["active", "stopped"])),
        _q(_listed(uuid=uuids(3))),
        _q(_listed(tags=["text-1"], metadata={"k": "text-1"})),
        _q(_listed(**{"tags-any": ["text-1", "text-2"], "not-tags": ["text-3"]})),
        _q(_listed(**{"changes-since": LATER})),
        _q(_listed(display_name="text-1.*")),
        _q(_listed(ip="10.0.0.*")),
        _q(lambda tx, much: instances.instance_list(tx, {"deleted": False}, limit=much, parts=PARTS)),
        _q(lambda tx, much: instances.instance_list(tx, {"deleted": False}, limit=much, marker=uuid(1))),
        _q(lambda tx, much: instances.instance_list(tx, {"changes-since": LATER}, limit=much)),
        _q(lambda tx, much: instances.instance_list(tx, {"deleted": False, "host": host(1)}, limit=much)),
        _q(
            lambda tx, much: instances.instance_list(
                tx, {"deleted": False, "host": hosts(much), "soft_deleted": True}, [("id", "asc")]
            )
        ),
        _q(
            lambda tx, much: instances.instance_list(
                tx, {"deleted": False, "project_id": project(1)}, [("display_name", "asc")], limit=much, marker=uuid(1)
            )
        ),
    ],
    # The usage of a period: whatever has not ended, or ended since; in an old cell that is most of what lives.
    "cell.instances.instance_list_in_use": [
        _q(lambda tx, much: instances.instance_list_in_use(tx, DAY, LATER, project(1), limit=much)),
        _q(lambda tx, much: instances.instance_list_in_use(tx, DAY, LATER, limit=much), whole="instances"),
    ],
    "cell.instances.instance_uuids": _q(
        lambda tx, much: instances.instance_uuids(tx, {"uuid": uuids(much), "deleted": True})
    ),
    "cell.instances.instance_uuids_by_host": _q(lambda tx, much: instances.instance_uuids_by_host(tx, hosts(much))),
    "cell.instances.instance_usage": _q(lambda tx, much: instances.instance_usage(tx, project(1), project(1))),
    "cell.instances.instances_among": _q(lambda tx, much: instances.instances_among(tx, uuids(much))),
    "cell.instances.instance_uuids_without_system_metadata": _q(
        lambda tx, much: instances.instance_uuids_without_system_metadata(tx, "k", much),
        whole="instances instance_system_metadata",
    ),
    "cell.instances.instance_flavors": [
        _q(lambda tx, much: instances.instance_flavors(tx, limit=much, after=50), whole="instances instance_extra"),
        _q(lambda tx, much: instances.instance_flavors(tx, project_id=project(1), limit=much)),
    ],
    "cell.migrations.migration_uuids_waiting": _q(
        lambda tx, much: migrations.migration_uuids_waiting(tx, uuid(1)), no_index="migrations"
    ),
    "cell.services.service_list": [
        _everything(lambda tx: services.service_list(tx)),
        _q(lambda tx, much: services.service_list(tx, binary="nova-compute", hosts=names(much))),
    ],
    "cell.services.service_minimum_version": _q(
        lambda tx, much: services.service_minimum_version(tx, ["nova-compute", "nova-conductor"])
    ),
    "objects.action.get_by_instance_uuid": _q(
        lambda tx, much: action.get_by_instance_uuid(tx, CTXT, uuid(1), limit=much)
    ),
    "objects.action.events_get_by_action": _q(
        lambda tx, much: action.events_get_by_action(tx, CTXT, 1), no_index="instance_actions_events"
    ),
    "objects.bdm.load": _q(lambda tx, much: bdm.load(tx, uuids(much))),
    "objects.bdm.get_by_instance_uuid": _q(lambda tx, much: bdm.get_by_instance_uuid(tx, CTXT, uuid(1))),
    "objects.bdm.get_by_instance_uuids": _q(lambda tx, much: bdm.get_by_instance_uuids(tx, CTXT, uuids(much))),
    "objects.bdm.list_by_volume": _q(lambda tx, much: bdm.list_by_volume(tx, CTXT, uuid(1))),
    "objects.compute_node.get_all": _everything(lambda tx: compute_node.get_all(tx, CTXT)),
    "objects.compute_node.get_all_by_host": _q(lambda tx, much: compute_node.get_all_by_host(tx, CTXT, "text-1")),
    "objects.compute_node.get_all_by_uuids": _q(lambda tx, much: compute_node.get_all_by_uuids(tx, CTXT, uuids(much))),
    "objects.compute_node.get_all_by_not_mapped": _everything(
        lambda tx: compute_node.get_all_by_not_mapped(tx, CTXT, 1)
    ),
    "objects.compute_node.get_by_hypervisor": _q(lambda tx, much: compute_node.get_by_hypervisor(tx, CTXT, "text-1")),
    "objects.compute_node.get_all_by_service": _q(lambda tx, much: compute_node.get_all_by_service(tx, CTXT, 1)),
    "objects.compute_node.get_by_pagination": _q(
        lambda tx, much: compute_node.get_by_pagination(tx, CTXT, limit=much, marker=1)
    ),
    "objects.fault.latest": _q(lambda tx, much: fault.latest(tx, uuids(much))),
    "objects.fault.get_latest_by_instance_uuids": _q(
        lambda tx, much: fault.get_latest_by_instance_uuids(tx, CTXT, uuids(much))
    ),
    "objects.fault.get_by_instance_uuids": _q(lambda tx, much: fault.get_by_instance_uuids(tx, CTXT, uuids(much))),
    "objects.instance_counts.get_counts": _q(
        lambda tx, much: instance_counts.get_counts(tx, CTXT, project(1), project(1))
    ),
    "objects.instance_counts.get_active_by_window": [
        _q(
            lambda tx, much: instance_counts.get_active_by_window(
                tx, CTXT, DAY.isoformat(), LATER.isoformat(), project_id=project(1), expected_attrs=EVERY_PART
            )
        ),
        _q(
            lambda tx, much: instance_counts.get_active_by_window(
                tx, CTXT, DAY.isoformat(), LATER.isoformat(), host=host(1), expected_attrs=EVERY_PART
            )
        ),
    ],
    "objects.instance_counts.hosts_of_group": _q(
        lambda tx, much: instance_counts.hosts_of_group(tx, CTXT, objects.InstanceGroup(members=uuids(much)))
    ),
    "objects.instances.get_by_host": _q(
        lambda tx, much: instance_lists.get_by_host(tx, CTXT, host(1), expected_attrs=EVERY_PART)
    ),
    "objects.instances.get_by_host_and_node": _q(
        lambda tx, much: instance_lists.get_by_host_and_node(tx, CTXT, host(1), host(1))
    ),
    "objects.instances.get_by_host_and_not_type": _q(
        lambda tx, much: instance_lists.get_by_host_and_not_type(tx, CTXT, host(1), 5)
    ),
    "objects.instances.get_all": _everything(lambda tx: instance_lists.get_all(tx, CTXT, EVERY_PART)),
    "objects.instances.get_hung_in_rebooting": _q(
        lambda tx, much: instance_lists.get_hung_in_rebooting(tx, CTXT, 60, EVERY_PART)
    ),
    "objects.instances.get_uuids_by_host": _q(lambda tx, much: instance_lists.get_uuids_by_host(tx, CTXT, host(1))),
    "objects.instances.get_uuids_by_host_and_node": _q(
        lambda tx, much: instance_lists.get_uuids_by_host_and_node(tx, CTXT, host(1), host(1))
    ),
    "objects.instances.get_uuids_by_hosts": _q(
        lambda tx, much: instance_lists.get_uuids_by_hosts(tx, CTXT, hosts(much))
    ),
    "objects.instances.get_by_filters": [
        _q(
            lambda tx, much: instance_lists.get_by_filters(
                tx, CTXT, {"deleted": False, "host": host(1)}, limit=much, expected_attrs=EVERY_PART
            )
        ),
        # What a host looks for that cleans up after servers deleted while it was away.
        _q(
            lambda tx, much: instance_lists.get_by_filters(
                tx, CTXT, {"deleted": True, "soft_deleted": False, "host": host(1), "cleaned": False}, limit=much
            )
        ),
    ],
    "objects.migration.get_in_progress_by_host_and_node": _q(
        lambda tx, much: migration.get_in_progress_by_host_and_node(tx, CTXT, host(1), host(1))
    ),
    "objects.migration.get_in_progress_and_error": _q(
        lambda tx, much: migration.get_in_progress_and_error(tx, CTXT, host(1), host(1))
    ),
    "objects.migration.get_in_progress_by_instance": _q(
        lambda tx, much: migration.get_in_progress_by_instance(tx, CTXT, uuid(1))
    ),
    "objects.migration.get_unconfirmed_by_dest_compute": _q(
        lambda tx, much: migration.get_unconfirmed_by_dest_compute(tx, CTXT, 60, host(1))
    ),
    "objects.migration.get_by_filters": [
        _q(lambda tx, much: migration.get_by_filters(tx, CTXT, {"instance_uuid": uuid(1)}, limit=much)),
        _q(lambda tx, much: migration.get_by_filters(tx, CTXT, {"host": host(1), "status": ["done"]}, limit=much)),
    ],
    "objects.pci.get_by_compute_node": _q(lambda tx, much: pci.get_by_compute_node(tx, CTXT, 1)),
    "objects.pci.get_by_instance_uuid": _q(lambda tx, much: pci.get_by_instance_uuid(tx, CTXT, uuid(1))),
    "objects.pci.get_by_parent_address": _q(lambda tx, much: pci.get_by_parent_address(tx, CTXT, 1, "text-0")),
    "objects.security_group.get_all": _everything(lambda tx: security_group.get_all(tx, CTXT)),
    "objects.security_group.get_by_project": _q(lambda tx, much: security_group.get_by_project(tx, CTXT, project(1))),
    "objects.security_group.get_by_instance": _q(
        lambda tx, much: security_group.get_by_instance(tx, CTXT, objects.Instance(uuid=uuid(1)))
    ),
    "objects.security_group.get_counts": _q(
        lambda tx, much: security_group.get_counts(tx, CTXT, project(1), project(1))
    ),
    "objects.service.rows_by_hosts": _q(lambda tx, much: service.rows_by_hosts(tx, names(much))),
    "objects.service.get_by_topic": _everything(lambda tx: service.get_by_topic(tx, CTXT, "compute")),
    "objects.service.get_by_binary": _everything(lambda tx: service.get_by_binary(tx, CTXT, "nova-compute")),
    "objects.service.get_by_host": _q(lambda tx, much: service.get_by_host(tx, CTXT, "text-1")),
    "objects.service.get_all": _everything(lambda tx: service.get_all(tx, CTXT)),
    "objects.service.get_all_computes_by_hv_type": _everything(
        lambda tx: service.get_all_computes_by_hv_type(tx, CTXT, "QEMU")
    ),
    "objects.share.get_by_instance_uuid": _q(lambda tx, much: share.get_by_instance_uuid(tx, CTXT, uuid(1))),
    "objects.share.get_by_share_id": _q(lambda tx, much: share.get_by_share_id(tx, CTXT, uuid(1))),
    "objects.share.get_by_host_for_reconcile": _q(lambda tx, much: share.get_by_host_for_reconcile(tx, CTXT, host(1))),
    "objects.tag.read": _q(lambda tx, much: tag.read(tx, uuids(much))),
    "objects.tag.get_by_resource_id": _q(lambda tx, much: tag.get_by_resource_id(tx, CTXT, uuid(1))),
    "objects.task_log.get_all": _q(lambda tx, much: task_log.get_all(tx, CTXT, "audit", DAY, DAY)),
    "objects.vif.get_all": _everything(lambda tx: vif.get_all(tx, CTXT)),
    "objects.vif.get_by_instance_uuid": _q(lambda tx, much: vif.get_by_instance_uuid(tx, CTXT, uuid(1))),
    "flows.active": _q(lambda tx, much: flows.active(tx, uuid(1))),
    "flows.active_subjects": _q(lambda tx, much: flows.active_subjects(tx, uuids(much))),
    "flows.known_subjects": _q(lambda tx, much: flows.known_subjects(tx, uuids(much))),
    "flows.history": _q(lambda tx, much: flows.history(tx, uuid(1))),
    "flows.events": _q(lambda tx, much: flows.events(tx, uuid(1))),
    "flows.by_state": _q(lambda tx, much: flows.by_state(tx, [State.STUCK, State.OFFERED], limit=much)),
}
"""What is asked of a cell's database."""

HELPERS = {
    "objects.instances.get_by_security_group_id": "refuses: the groups are Neutron's",
    "objects.instances.get_by_grantee_security_group_ids": "refuses: the groups are Neutron's",
    "objects.aggregate.load_many": "makes objects of rows that were read",
    "objects.flavor.load_many": "makes objects of rows that were read",
    "objects.group.load_many": "makes objects of rows that were read",
    "objects.instance.load_many": "reads the parts of rows; asked by every list of objects.instances",
    "objects.pairs.read": "reads metadata; asked by every list of objects.instances",
    "objects.group.add_members": "writes",
    "objects.tag.create": "writes",
}
"""Functions that give lists and are no queries of their own."""


def asked(inventory: dict[str, Query | list[Query]]) -> Iterator[tuple[str, Query]]:
    """Each question by name and number."""
    for name, entry in inventory.items():
        questions = entry if isinstance(entry, list) else [entry]
        yield from ((f"{name}/{number}", question) for number, question in enumerate(questions))


def every_list() -> set[str]:
    """The names of all functions of db/ that take a transaction and give a list, a set or a mapping."""
    found = set()
    for room in (kilonova.db.api, kilonova.db.cell, kilonova.db.objects):
        for part in pkgutil.iter_modules(room.__path__):
            if not part.ispkg:
                found |= _lists(importlib.import_module(f"{room.__name__}.{part.name}"))
    return found | _lists(flows)


def _lists(module: ModuleType) -> set[str]:
    name = module.__name__.removeprefix("kilonova.db.")
    return {f"{name}.{one}" for one, function in vars(module).items() if _gives_a_list(module, one, function)}


def _gives_a_list(module: ModuleType, name: str, function: Any) -> bool:
    if name.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
        return False
    signature = inspect.signature(function)
    takes_tx = next(iter(signature.parameters), None) == "tx"
    return takes_tx and any(word in str(signature.return_annotation) for word in ("list", "dict[", "set[", "List"))


def check_plans(databases: tuple[Database, Database]) -> None:
    """Ask everything of a big API database and a big cell; fails for whatever reads a table from end to end."""
    wrong = []
    for database, inventory in zip(databases, (API, CELL), strict=True):
        for name, question in asked(inventory):
            if question.whole is None:
                continue
            with watched(database) as statements:
                database.query(question.ask, 30)
            with database.read() as tx:
                for statement, parameters in statements:
                    read = scanned(tx, statement, parameters) - SMALL - question.whole
                    if read:
                        wrong.append((name, read, statement))
    assert not wrong, "\n".join(map(str, wrong))


def check_counts(little: tuple[Database, Database], much: tuple[Database, Database]) -> None:
    """Ask for little of small databases and for more of bigger ones; fails where that takes more statements."""
    wrong = []
    for number, inventory in enumerate((API, CELL)):
        for name, question in asked(inventory):
            counts = [_count(one[number], question, size) for one, size in ((little, 2), (much, 30))]
            if counts[0] != counts[1]:
                wrong.append((name, counts))
    assert not wrong, "\n".join(map(str, wrong))


def _count(database: Database, question: Query, much: int) -> int:
    with watched(database) as statements:
        database.query(question.ask, much)
    return len(statements)
