"""Multi-step operations that the conductor drives."""

from __future__ import annotations

from kilonova.contract.rpc.table import Api, Method, Sent, Served

_METHODS = (
    Method(
        "attach_volume",
        (
            "instance, volume, device, disk_bus, device_type, tag=None, supports_multiattach=False, "
            "delete_on_termination=False, do_cast=False"
        ),
        either="do_cast",
        long=True,
        sent=(
            Sent(
                "1.26",
                ("instance, volume, device, disk_bus, device_type, tag, supports_multiattach, delete_on_termination"),
            ),
            Sent(up_to="1.25", refuses="ServiceTooOld"),
        ),
    ),
    Method(
        "build_instances",
        (
            "instances, image, filter_properties, admin_password, injected_files, requested_networks, "
            "security_groups, block_device_mapping, legacy_bdm=True, request_spec=None, host_lists=None"
        ),
        sent=(
            Sent(
                "1.19",
                (
                    "instances, image, filter_properties, admin_password, injected_files, requested_networks, "
                    "security_groups, request_spec, host_lists"
                ),
            ),
            Sent(
                "1.18",
                (
                    "instances, image, filter_properties, admin_password, injected_files, requested_networks, "
                    "security_groups, request_spec"
                ),
                up_to="1.18",
            ),
            Sent(
                "1.10",
                (
                    "instances, image, filter_properties, admin_password, injected_files, requested_networks, "
                    "security_groups"
                ),
                up_to="1.17",
            ),
            Sent("1.9", up_to="1.9"),
            Sent("1.8", up_to="1.8", forms={"requested_networks": "network_tuples"}),
            Sent(
                "1.5",
                (
                    "instances, image, filter_properties, admin_password, injected_files, requested_networks, "
                    "security_groups, block_device_mapping, legacy_bdm"
                ),
                up_to="1.6",
                forms={"requested_networks": "network_tuples"},
            ),
        ),
    ),
    Method(
        "cache_images",
        "aggregate, image_ids",
        sent=(
            Sent("1.21", "aggregate, image_ids"),
            Sent(up_to="1.20", refuses="NovaException"),
        ),
    ),
    Method(
        "confirm_snapshot_based_resize",
        "instance, migration, do_cast=True",
        either="do_cast",
        sent=(
            Sent("1.22", "instance, migration"),
            Sent(up_to="1.21", refuses="ServiceTooOld"),
        ),
    ),
    Method(
        "live_migrate_instance",
        "instance, scheduler_hint, block_migration, disk_over_commit, request_spec",
        sent=(Sent("1.15", "instance, scheduler_hint, block_migration, disk_over_commit, request_spec"),),
    ),
    Method(
        "migrate_server",
        (
            "instance, scheduler_hint, live, rebuild, flavor, block_migration, disk_over_commit, "
            "reservations=None, clean_shutdown=True, request_spec=None, host_list=None, do_cast=False"
        ),
        either="do_cast",
        long=True,
        sent=(
            Sent(
                "1.20",
                (
                    "instance, scheduler_hint, live, rebuild, flavor, block_migration, disk_over_commit, "
                    "reservations, clean_shutdown, request_spec, host_list"
                ),
            ),
            Sent(
                "1.13",
                (
                    "instance, scheduler_hint, live, rebuild, flavor, block_migration, disk_over_commit, "
                    "reservations, clean_shutdown, request_spec"
                ),
                up_to="1.19",
            ),
            Sent(
                "1.11",
                (
                    "instance, scheduler_hint, live, rebuild, flavor, block_migration, disk_over_commit, "
                    "reservations, clean_shutdown"
                ),
                up_to="1.12",
            ),
            Sent(
                "1.10",
                ("instance, scheduler_hint, live, rebuild, flavor, block_migration, disk_over_commit, reservations"),
                up_to="1.10",
            ),
            Sent("1.6", up_to="1.9"),
            Sent("1.4", up_to="1.5"),
        ),
    ),
    Method(
        "rebuild_instance",
        (
            "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
            "recreate=False, on_shared_storage=False, host=None, preserve_ephemeral=False, "
            "request_spec=None, reimage_boot_volume=False, target_state=None"
        ),
        sent=(
            Sent(
                "1.25",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, host, request_spec, reimage_boot_volume, "
                    "target_state"
                ),
            ),
            Sent(
                "1.24",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, host, request_spec, reimage_boot_volume"
                ),
                up_to="1.24",
                refuses="UnsupportedRPCVersion",
            ),
            Sent(
                "1.12",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, host, request_spec"
                ),
                up_to="1.23",
                refuses="UnsupportedRPCVersion",
            ),
            Sent(
                "1.8",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, host"
                ),
                up_to="1.11",
                refuses="UnsupportedRPCVersion",
                guarded=("reimage_boot_volume", "target_state"),
            ),
        ),
    ),
    Method(
        "revert_snapshot_based_resize",
        "instance, migration",
        sent=(
            Sent("1.23", "instance, migration"),
            Sent(up_to="1.22", refuses="ServiceTooOld"),
        ),
    ),
    Method(
        "schedule_and_build_instances",
        (
            "build_requests, request_specs, image, admin_password, injected_files, requested_networks, "
            "block_device_mapping, tags=None"
        ),
        sent=(
            Sent(
                "1.17",
                (
                    "build_requests, request_specs, image, admin_password, injected_files, requested_networks, "
                    "block_device_mapping, tags"
                ),
            ),
            Sent(
                "1.16",
                (
                    "build_requests, request_specs, image, admin_password, injected_files, requested_networks, "
                    "block_device_mapping"
                ),
                up_to="1.16",
            ),
        ),
    ),
    Method(
        "unshelve_instance",
        "instance, request_spec=None",
        sent=(
            Sent("1.14", "instance, request_spec"),
            Sent("1.3", "instance", up_to="1.13"),
        ),
    ),
)

_SERVED = (
    Served(
        "attach_volume",
        (
            "instance, volume, device, disk_bus, device_type, tag=None, supports_multiattach=False, "
            "delete_on_termination=False"
        ),
    ),
    Served(
        "build_instances",
        (
            "instances, image, filter_properties, admin_password, injected_files, requested_networks, "
            "security_groups, block_device_mapping=None, legacy_bdm=True, request_spec=None, "
            "host_lists=None"
        ),
    ),
    Served("cache_images", "aggregate, image_ids"),
    Served("confirm_snapshot_based_resize", "instance, migration"),
    Served("live_migrate_instance", "instance, scheduler_hint, block_migration, disk_over_commit, request_spec"),
    Served(
        "migrate_server",
        (
            "instance, scheduler_hint, live, rebuild, flavor, block_migration, disk_over_commit, "
            "reservations=None, clean_shutdown=True, request_spec=None, host_list=None"
        ),
        expected=(
            "ComputeHostNotFound",
            "ComputeServiceUnavailable",
            "DestinationHypervisorTooOld",
            "HypervisorUnavailable",
            "InstanceInvalidState",
            "InvalidCPUInfo",
            "InvalidHypervisorType",
            "InvalidLocalStorage",
            "InvalidSharedStorage",
            "MigrationPreCheckError",
            "NoValidHost",
            "UnableToMigrateToSelf",
            "UnsupportedPolicyException",
        ),
    ),
    Served(
        "rebuild_instance",
        (
            "instance, orig_image_ref, image_ref, injected_files, new_pass, orig_sys_metadata, bdms, "
            "recreate, on_shared_storage, preserve_ephemeral=False, host=None, request_spec=None, "
            "reimage_boot_volume=False, target_state=None"
        ),
    ),
    Served("revert_snapshot_based_resize", "instance, migration"),
    Served(
        "schedule_and_build_instances",
        (
            "build_requests, request_specs, image, admin_password, injected_files, requested_networks, "
            "block_device_mapping, tags=None"
        ),
    ),
    Served("unshelve_instance", "instance, request_spec=None"),
)

API = Api(
    name="compute_task",
    topic="conductor",
    version="1.26",
    namespace="compute_task",
    methods=_METHODS,
    served=_SERVED,
)
