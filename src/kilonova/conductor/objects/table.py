"""What the object service serves: (object, method) -> the function of `db/objects` that does it.

Which of it a caller may do: docs/decisions/0013-who-may-act-on-objects.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kilonova.db.objects import (
    action,
    aggregate,
    bdm,
    build_request,
    build_request_list,
    compute_node,
    console_token,
    ec2,
    fault,
    flavor,
    group,
    instance,
    instance_counts,
    instance_parts,
    instances,
    keypair,
    mapping,
    migration,
    pci,
    quotas,
    request_spec,
    security_group,
    service,
    share,
    tag,
    task_log,
    vif,
    volume_usage,
)


class Served(msgspec.Struct, frozen=True):
    """`api` tells the database, `write` the kind of transaction; `whole`: it is given all databases instead."""

    fn: Callable[..., Any]
    write: bool = False
    api: bool = False
    whole: bool = False


def _read(fn: Callable[..., Any]) -> Served:
    return Served(fn)


def _write(fn: Callable[..., Any]) -> Served:
    return Served(fn, write=True)


def _api_read(fn: Callable[..., Any]) -> Served:
    return Served(fn, api=True)


def _api_write(fn: Callable[..., Any]) -> Served:
    return Served(fn, write=True, api=True)


def _whole(fn: Callable[..., Any]) -> Served:
    return Served(fn, whole=True)


def _extra(name: str) -> Served:
    def read(tx: Any, ctxt: Any, instance_uuid: str) -> Any:
        return getattr(instance.load(tx, instance_uuid, (name,), read_deleted=True), name)

    return Served(read)


METHODS: Mapping[str, Mapping[str, Served]] = {
    "Aggregate": {
        "add_host": _api_write(aggregate.add_host),
        "create": _api_write(aggregate.create),
        "delete_host": _api_write(aggregate.delete_host),
        "destroy": _api_write(aggregate.destroy),
        "save": _api_write(aggregate.save),
        "update_metadata": _api_write(aggregate.update_metadata),
    },
    "BlockDeviceMapping": {
        "create": _write(bdm.create),
        "destroy": _write(bdm.destroy),
        "save": _write(bdm.save),
        "update_or_create": _write(bdm.update_or_create),
    },
    "BuildRequest": {
        "create": _api_write(build_request.create),
        "destroy": _api_write(build_request.destroy),
        "save": _api_write(build_request.save),
    },
    "CellMapping": {
        "create": _api_write(mapping.create_cell_mapping),
        "destroy": _api_write(mapping.destroy_cell_mapping),
        "save": _api_write(mapping.save_cell_mapping),
    },
    "ComputeNode": {
        "create": _write(compute_node.create),
        "destroy": _write(compute_node.destroy),
        "save": _write(compute_node.save),
    },
    "ConsoleAuthToken": {
        "authorize": _write(console_token.authorize),
    },
    "EC2InstanceMapping": {
        "create": _write(ec2.create_instance_mapping),
    },
    "Flavor": {
        "_load_projects": _api_read(flavor.load_projects),
        "add_access": _api_write(flavor.add_access),
        "create": _api_write(flavor.create),
        "destroy": _api_write(flavor.destroy),
        "remove_access": _api_write(flavor.remove_access),
        "save_extra_specs": _api_write(flavor.save_extra_specs),
        "save_projects": _api_write(flavor.save_projects),
    },
    "HostMapping": {
        "create": _api_write(mapping.create_host_mapping),
        "destroy": _api_write(mapping.destroy_host_mapping),
        "save": _api_write(mapping.save_host_mapping),
    },
    "Instance": {
        "create": _write(instance.create),
        "delete_metadata_key": _write(instance_parts.delete_metadata_key),
        "destroy": _write(instance.destroy),
        "drop_migration_context": _write(instance_parts.drop_migration_context),
        "refresh": _read(instance.refresh),
        "save": _write(instance.save),
    },
    "InstanceAction": {
        "create": _write(action.create),
        "finish": _write(action.finish),
    },
    "InstanceActionEvent": {
        "create": _write(action.event_create),
        "finish": _write(action.event_finish_object),
        "finish_with_failure": _write(action.finish_event_object),
    },
    "InstanceFault": {
        "create": _write(fault.create),
    },
    "InstanceGroup": {
        "count_members_by_user": _read(instance_counts.members_by_user),
        "create": _api_write(group.create),
        "destroy": _api_write(group.destroy),
        "get_hosts": _read(instance_counts.hosts_of_group),
        "refresh": _api_read(group.refresh),
        "save": _api_write(group.save),
    },
    "InstanceInfoCache": {
        "delete": _write(instance_parts.delete_info_cache),
        "refresh": _read(instance_parts.refresh_info_cache),
        "save": _write(instance.save_info_cache),
    },
    "InstanceMapping": {
        "create": _api_write(mapping.create_instance_mapping),
        "destroy": _api_write(mapping.destroy_instance_mapping),
        "save": _api_write(mapping.save_instance_mapping),
    },
    "InstanceNUMATopology": {
        "create": _write(instance_parts.create_numa_topology),
    },
    "KeyPair": {
        "create": _api_write(keypair.create),
        "destroy": _api_write(keypair.destroy),
    },
    "Migration": {
        "create": _write(migration.create),
        "save": _write(migration.save),
    },
    "PciDevice": {
        "save": _write(pci.save),
    },
    "Quotas": {
        "commit": _read(quotas.nothing_to_end),
        "reserve": _read(quotas.reserve),
        "rollback": _read(quotas.nothing_to_end),
    },
    "RequestSpec": {
        "create": _api_write(request_spec.create),
        "destroy": _api_write(request_spec.destroy),
        "save": _api_write(request_spec.save),
    },
    "S3ImageMapping": {
        "create": _write(ec2.create_image_mapping),
    },
    "SecurityGroup": {
        "in_use": _read(security_group.in_use),
        "refresh": _read(security_group.refresh),
        "save": _write(security_group.save),
    },
    "Service": {
        "create": _write(service.create),
        "destroy": _write(service.destroy),
        "save": _write(service.save),
    },
    "ShareMapping": {
        "delete": _write(share.delete),
        "save": _write(share.save),
    },
    "Tag": {
        "create": _write(tag.create_one),
    },
    "TaskLog": {
        "begin_task": _write(task_log.begin_task),
        "end_task": _write(task_log.end_task),
    },
    "VirtualInterface": {
        "create": _write(vif.create),
        "destroy": _write(vif.destroy),
        "save": _write(vif.save),
    },
    "VolumeUsage": {
        "save": _write(volume_usage.save),
    },
}
"""Methods of an object that is sent along; what they change in it goes back."""

QUOTAS: Mapping[str, Served] = {
    "count": _whole(quotas.count),
    "count_as_dict": _whole(quotas.count_as_dict),
    "create_limit": _api_write(quotas.create_limit),
    "limit_check": _whole(quotas.limit_check),
    "limit_check_project_and_user": _whole(quotas.limit_check_project_and_user),
    "update_limit": _api_write(quotas.update_limit),
}
"""Of both kinds of quotas: those without reservations count and check all the same."""

CLASS_METHODS: Mapping[str, Mapping[str, Served]] = {
    "Aggregate": {
        "get_by_id": _api_read(aggregate.get_by_id),
        "get_by_uuid": _api_read(aggregate.get_by_uuid),
    },
    "AggregateList": {
        "get_all": _api_read(aggregate.get_all),
        "get_by_host": _api_read(aggregate.get_by_host),
        "get_by_metadata": _api_read(aggregate.get_by_metadata),
        "get_by_metadata_key": _api_read(aggregate.get_by_metadata_key),
    },
    "BlockDeviceMapping": {
        "get_by_volume": _read(bdm.get_by_volume),
        "get_by_volume_and_instance": _read(bdm.get_by_volume_and_instance),
        "get_by_volume_id": _read(bdm.get_by_volume_id),
    },
    "BlockDeviceMappingList": {
        "get_by_instance_uuid": _read(bdm.get_by_instance_uuid),
        "get_by_instance_uuids": _read(bdm.get_by_instance_uuids),
        "get_by_volume": _read(bdm.list_by_volume),
    },
    "BuildRequest": {
        "get_by_instance_uuid": _api_read(build_request.get_by_instance_uuid),
    },
    "BuildRequestList": {
        "get_all": _api_read(build_request.get_all),
        "get_by_filters": _api_read(build_request_list.get_by_filters),
    },
    "CellMapping": {
        "get_by_uuid": _api_read(mapping.get_cell_mapping),
    },
    "CellMappingList": {
        "get_all": _api_read(mapping.list_cell_mappings),
        "get_by_disabled": _api_read(mapping.list_cell_mappings_by_disabled),
    },
    "ComputeNode": {
        "get_by_host_and_nodename": _read(compute_node.get_by_host_and_nodename),
        "get_by_id": _read(compute_node.get_by_id),
        "get_by_nodename": _read(compute_node.get_by_nodename),
        "get_by_service_id": _read(compute_node.get_by_service_id),
        "get_by_uuid": _read(compute_node.get_by_uuid),
        "get_first_node_by_host_for_old_compat": _read(compute_node.get_first_node_by_host),
    },
    "ComputeNodeList": {
        "_get_by_service": _read(compute_node.get_all_by_service),
        "get_all": _read(compute_node.get_all),
        "get_all_by_host": _read(compute_node.get_all_by_host),
        "get_all_by_not_mapped": _read(compute_node.get_all_by_not_mapped),
        "get_all_by_uuids": _read(compute_node.get_all_by_uuids),
        "get_by_hypervisor": _read(compute_node.get_by_hypervisor),
        "get_by_pagination": _read(compute_node.get_by_pagination),
    },
    "ConsoleAuthToken": {
        "clean_console_auths_for_instance": _write(console_token.clean_for_instance),
        "clean_expired_console_auths": _write(console_token.clean_expired),
        "clean_expired_console_auths_for_host": _write(console_token.clean_expired_for_host),
        "validate": _read(console_token.validate),
    },
    "EC2Ids": {
        "get_by_instance": _write(ec2.ids_of),
    },
    "EC2InstanceMapping": {
        "get_by_id": _read(ec2.instance_mapping_by_id),
        "get_by_uuid": _read(ec2.instance_mapping_by_uuid),
    },
    "Flavor": {
        "get_by_flavor_id": _api_read(flavor.get_by_flavor_id),
        "get_by_id": _api_read(flavor.get_by_id),
        "get_by_name": _api_read(flavor.get_by_name),
    },
    "FlavorList": {
        "get_all": _api_read(flavor.get_all),
    },
    "HostMapping": {
        "get_by_host": _api_read(mapping.get_host_mapping),
    },
    "HostMappingList": {
        "get_all": _api_read(mapping.list_host_mappings),
        "get_by_cell_id": _api_read(mapping.list_host_mappings_by_cell),
    },
    "Instance": {
        "get_by_id": _read(instances.get_by_id),
        "get_by_uuid": _read(instances.get_by_uuid),
    },
    "InstanceAction": {
        "action_finish": _write(action.action_finish),
        "action_start": _write(action.action_start),
        "get_by_request_id": _read(action.get_by_request_id),
    },
    "InstanceActionEvent": {
        "event_finish": _write(action.event_finish),
        "event_finish_with_failure": _write(action.event_finish_with_failure),
        "event_start": _write(action.event_start),
        "get_by_id": _read(action.event_get_by_id),
    },
    "InstanceActionEventList": {
        "get_by_action": _read(action.events_get_by_action),
    },
    "InstanceActionList": {
        "get_by_instance_uuid": _read(action.get_by_instance_uuid),
    },
    "InstanceDeviceMetadata": {
        "get_by_instance_uuid": _extra("device_metadata"),
    },
    "InstanceFault": {
        "get_latest_for_instance": _read(fault.get_latest_for_instance),
    },
    "InstanceFaultList": {
        "get_by_instance_uuids": _read(fault.get_by_instance_uuids),
        "get_latest_by_instance_uuids": _read(fault.get_latest_by_instance_uuids),
    },
    "InstanceGroup": {
        "add_members": _api_write(group.add_members),
        "get_by_instance_uuid": _api_read(group.get_by_instance_uuid),
        "get_by_name": _api_read(group.get_by_name),
        "get_by_uuid": _api_read(group.get_by_uuid),
    },
    "InstanceGroupList": {
        "get_all": _api_read(group.get_all),
        "get_by_project_id": _api_read(group.get_by_project_id),
        "get_counts": _api_read(group.get_counts),
    },
    "InstanceInfoCache": {
        "get_by_instance_uuid": _read(instance_parts.get_info_cache),
    },
    "InstanceList": {
        "_get_active_by_window_joined": _read(instance_counts.get_active_by_window),
        "get_all": _read(instances.get_all),
        "get_by_filters": _read(instances.get_by_filters),
        "get_by_grantee_security_group_ids": _read(instances.get_by_grantee_security_group_ids),
        "get_by_host": _read(instances.get_by_host),
        "get_by_host_and_node": _read(instances.get_by_host_and_node),
        "get_by_host_and_not_type": _read(instances.get_by_host_and_not_type),
        "get_by_security_group_id": _read(instances.get_by_security_group_id),
        "get_count_by_vm_state": _read(instances.get_count_by_vm_state),
        "get_counts": _read(instance_counts.get_counts),
        "get_hung_in_rebooting": _read(instances.get_hung_in_rebooting),
        "get_uuids_by_host": _read(instances.get_uuids_by_host),
        "get_uuids_by_host_and_node": _read(instances.get_uuids_by_host_and_node),
        "get_uuids_by_hosts": _read(instances.get_uuids_by_hosts),
    },
    "InstanceMapping": {
        "get_by_instance_uuid": _api_read(mapping.get_instance_mapping),
    },
    "InstanceMappingList": {
        "get_by_cell_id": _api_read(mapping.list_instance_mappings_by_cell),
        "get_by_instance_uuids": _api_read(mapping.list_instance_mappings),
        "get_by_project_id": _api_read(mapping.list_instance_mappings_by_project),
        "get_counts": _api_read(mapping.count_instance_mappings),
    },
    "InstanceNUMATopology": {
        "get_by_instance_uuid": _extra("numa_topology"),
    },
    "InstancePCIRequests": {
        "get_by_instance_uuid": _extra("pci_requests"),
    },
    "KeyPair": {
        "destroy_by_name": _api_write(keypair.destroy_by_name),
        "get_by_name": _api_read(keypair.get_by_name),
    },
    "KeyPairList": {
        "get_by_user": _api_read(keypair.get_by_user),
        "get_count_by_user": _api_read(keypair.get_count_by_user),
    },
    "Migration": {
        "get_by_id": _read(migration.get_by_id),
        "get_by_id_and_instance": _read(migration.get_by_id_and_instance),
        "get_by_instance_and_status": _read(migration.get_by_instance_and_status),
        "get_by_uuid": _read(migration.get_by_uuid),
    },
    "MigrationContext": {
        "get_by_instance_uuid": _read(migration.context_of),
    },
    "MigrationList": {
        "get_by_filters": _read(migration.get_by_filters),
        "get_in_progress_and_error": _read(migration.get_in_progress_and_error),
        "get_in_progress_by_host_and_node": _read(migration.get_in_progress_by_host_and_node),
        "get_in_progress_by_instance": _read(migration.get_in_progress_by_instance),
        "get_unconfirmed_by_dest_compute": _read(migration.get_unconfirmed_by_dest_compute),
    },
    "PciDevice": {
        "get_by_dev_addr": _read(pci.get_by_dev_addr),
        "get_by_dev_id": _read(pci.get_by_dev_id),
    },
    "PciDeviceList": {
        "get_by_compute_node": _read(pci.get_by_compute_node),
        "get_by_instance_uuid": _read(pci.get_by_instance_uuid),
        "get_by_parent_address": _read(pci.get_by_parent_address),
    },
    "Quotas": {
        "check_deltas": _whole(quotas.check_deltas),
        **QUOTAS,
    },
    "QuotasNoOp": QUOTAS,
    "RequestSpec": {
        "get_by_instance_uuid": _api_read(request_spec.get_by_instance_uuid),
        "get_by_instance_uuids": _api_read(request_spec.get_by_instance_uuids),
    },
    "ResourceList": {
        "get_by_instance_uuid": _extra("resources"),
    },
    "S3ImageMapping": {
        "get_by_id": _read(ec2.image_mapping_by_id),
        "get_by_uuid": _read(ec2.image_mapping_by_uuid),
    },
    "SecurityGroup": {
        "get": _read(security_group.get),
        "get_by_name": _read(security_group.get_by_name),
    },
    "SecurityGroupList": {
        "get_all": _read(security_group.get_all),
        "get_by_instance": _read(security_group.get_by_instance),
        "get_by_project": _read(security_group.get_by_project),
        "get_counts": _read(security_group.get_counts),
    },
    "Service": {
        "get_by_args": _read(service.get_by_args),
        "get_by_compute_host": _read(service.get_by_compute_host),
        "get_by_host_and_binary": _read(service.get_by_args),
        "get_by_host_and_topic": _read(service.get_by_host_and_topic),
        "get_by_id": _read(service.get_by_id),
        "get_by_uuid": _read(service.get_by_uuid),
        "get_minimum_version": _read(service.get_minimum_version),
        "get_minimum_version_multi": _read(service.get_minimum_version_multi),
    },
    "ServiceList": {
        "get_all": _read(service.get_all),
        "get_all_computes_by_hv_type": _read(service.get_all_computes_by_hv_type),
        "get_by_binary": _read(service.get_by_binary),
        "get_by_host": _read(service.get_by_host),
        "get_by_topic": _read(service.get_by_topic),
    },
    "ShareMapping": {
        "get_by_instance_uuid_and_share_id": _read(share.get_by_instance_uuid_and_share_id),
    },
    "ShareMappingList": {
        "get_by_host_for_reconcile": _read(share.get_by_host_for_reconcile),
        "get_by_instance_uuid": _read(share.get_by_instance_uuid),
        "get_by_share_id": _read(share.get_by_share_id),
    },
    "Tag": {
        "destroy": _write(tag.destroy),
        "exists": _read(tag.exists),
    },
    "TagList": {
        "create": _write(tag.create),
        "destroy": _write(tag.destroy_all),
        "get_by_resource_id": _read(tag.get_by_resource_id),
    },
    "TaskLog": {
        "get": _read(task_log.get),
    },
    "TaskLogList": {
        "get_all": _read(task_log.get_all),
    },
    "TrustedCerts": {
        "get_by_instance_uuid": _extra("trusted_certs"),
    },
    "VirtCPUModel": {
        "get_by_instance_uuid": _extra("vcpu_model"),
    },
    "VirtualInterface": {
        "delete_by_instance_uuid": _write(vif.delete_by_instance_uuid),
        "get_by_address": _read(vif.get_by_address),
        "get_by_id": _read(vif.get_by_id),
        "get_by_instance_and_network": _read(vif.get_by_instance_and_network),
        "get_by_uuid": _read(vif.get_by_uuid),
    },
    "VirtualInterfaceList": {
        "get_all": _read(vif.get_all),
        "get_by_instance_uuid": _read(vif.get_by_instance_uuid),
    },
}
"""Methods of a class: what they find goes back, in the versions that the caller understands."""
